"""Which known names look like one that is not known: "did you mean …?"."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from difflib import SequenceMatcher
from itertools import islice, pairwise

MAX_SEARCHED = 1_000
"""Among more known names than this, only those one mistake away are found: a plan of 10,000 tasks can have
10,000 wrong references, and each asks."""

MAX_LETTERS = 60
"""Names are compared up to this length, so that a huge name costs no more than a long one."""

MAX_CANDIDATES = 30
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789_-."


def near(name: str, known: Iterable[str], most: int = 2) -> tuple[str, ...]:
    """Up to `most` of the `known` names that look like `name`, the nearest first; often none.

    Case counts little, and two letters that changed places count as one mistake. A call takes a millisecond, some with
    very long names. Give a large `known` as a set or a mapping: it is not copied.
    """
    names: Collection[str] = known if isinstance(known, Set | Mapping) else dict.fromkeys(known)
    if len(names) > MAX_SEARCHED:
        return tuple(islice(_one_mistake_away(name, names), most)) if len(name) <= MAX_LETTERS else ()
    wanted = name[:MAX_LETTERS].casefold()
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)  # the one that stays: its letters are indexed once
    enough = 0.5 if len(wanted) < 4 else 0.7
    ranked = []
    for candidate in _candidates(wanted, names):
        matcher.set_seq1(candidate[:MAX_LETTERS].casefold())
        likeness = matcher.ratio() if matcher.quick_ratio() >= enough else 0.0
        if likeness >= enough:
            ranked.append((-likeness, candidate))
    return tuple(candidate for _, candidate in heapq.nsmallest(most, ranked))


def did_you_mean(names: Sequence[str]) -> str:
    """The question in words; empty when there are no names."""
    return f"did you mean {' or '.join(map(repr, names))}?" if names else ""


def _candidates(wanted: str, names: Iterable[str]) -> list[str]:
    """The few names worth a closer look: about as long, and with the most letters and pairs of letters in common."""
    parts = {*wanted, *map("".join, pairwise(wanted))}
    fewest = (len(wanted) + 1) // 2
    most = 2 * len(wanted) + 1 if len(wanted) < MAX_LETTERS else 10 * MAX_LETTERS
    close = (text for text in names if fewest <= len(text) <= most)
    ranked = ((-sum(map(text.casefold().__contains__, parts)), text) for text in close)
    return [text for _, text in heapq.nsmallest(MAX_CANDIDATES, ranked)]


def _one_mistake_away(name: str, names: Collection[str]) -> Iterator[str]:
    """The known names that differ by a swap, by case, or by one letter too many, too few or wrong."""
    cuts = [(name[:place], name[place:]) for place in range(len(name) + 1)]
    letters = dict.fromkeys(_ALPHABET + name)
    guesses = dict.fromkeys(
        [left + right[1] + right[0] + right[2:] for left, right in cuts if len(right) > 1]
        + [name.lower(), name.upper(), name.capitalize()]
        + [left + right[1:] for left, right in cuts]
        + [left + letter + right for left, right in cuts for letter in letters]
        + [left + letter + right[1:] for left, right in cuts for letter in letters]
    )
    return (guess for guess in guesses if guess != name and guess in names)
