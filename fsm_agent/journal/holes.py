"""Secrets that a skill returned or wrote: in the store a hole stands in their place, and whoever goes on fills it.

Only the run's own secret inputs are known to be secret. Everything else that a skill returns is data. A hole bears the
run's mark, which nobody outside of the store knows: no data from elsewhere can pass for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import structs

from fsm_agent.core import events as ev

EDGE: Final = "\uf8ff"
"""Begins and ends a hole: a character of the private use area."""
HIDDEN: Final = "***"
_SHORTEST_WITHIN: Final = 4
"""A shorter secret is one only where it is the whole value, as for what is shown."""

_FIELDS: Final[Mapping[type[ev.Event], str]] = {
    ev.TaskEvaluated: "data",
    ev.VisitDiscarded: "data",
    ev.ContextChanged: "changes",
    ev.ApprovalDecided: "result",
    ev.CriteriaJudged: "output",
}
"""Where skills' data stands in events. All other texts were masked when they were recorded."""


class Holes:
    """The secrets of one run, by its mark."""

    def __init__(self, mark: str, secrets: Mapping[str, Any]) -> None:
        """`secrets` are the values of the secret inputs, by name, as far as they are known."""
        leaves = [(f"{EDGE}{mark}/{name}", leaf) for name, secret in secrets.items() for leaf in _leaves(secret)]
        self._holes = {f"{name}/{place}{EDGE}": leaf for place, (name, leaf) in enumerate(leaves)}
        self._by_leaf: dict[tuple[type, Any], str] = {}
        for hole, leaf in self._holes.items():
            self._by_leaf.setdefault((type(leaf), leaf), hole)
        texts = sorted((leaf for _, leaf in leaves if isinstance(leaf, str)), key=len, reverse=True)
        within = [re.escape(text) for text in texts if len(text) >= _SHORTEST_WITHIN]
        self._texts = re.compile("|".join(within)) if within else None
        self._pattern = re.compile(f"{EDGE}{re.escape(mark)}/[^{EDGE}]*{EDGE}")

    def punched(self, event: ev.Event) -> ev.Event:
        """The event as it is kept: without the secrets."""
        return _changed(event, self._punch)

    def filled(self, event: ev.Event) -> ev.Event:
        """The event as it was: with the secrets that are known; others are shown as `***`."""
        return _changed(event, self._fill)

    def _punch(self, leaf: Any) -> Any:
        hole = self._by_leaf.get((type(leaf), leaf))
        if hole is not None:
            return hole
        if self._texts is not None and isinstance(leaf, str):
            return self._texts.sub(lambda found: self._by_leaf[str, found.group()], leaf)
        return leaf

    def _fill(self, leaf: Any) -> Any:
        if not isinstance(leaf, str) or EDGE not in leaf:
            return leaf
        if self._pattern.fullmatch(leaf):
            return self._holes.get(leaf, HIDDEN)
        return self._pattern.sub(lambda found: str(self._holes.get(found.group(), HIDDEN)), leaf)


def _changed(event: ev.Event, change: Callable[[Any], Any]) -> ev.Event:
    field = _FIELDS.get(type(event))
    if field is None:
        return event
    before = getattr(event, field)
    after = _walked(before, change)
    return event if after is before else structs.replace(event, **{field: after})


def _walked(value: Any, change: Callable[[Any], Any]) -> Any:
    """Plain data with each leaf (and each key) changed; the very same where nothing changes."""
    if isinstance(value, dict):
        pairs = [(change(key), _walked(item, change)) for key, item in value.items()]
        same = all(new is old and item is value[old] for (new, item), old in zip(pairs, value, strict=True))
        return value if same else dict(pairs)
    if isinstance(value, list):
        items = [_walked(item, change) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value if value is None or isinstance(value, bool) else change(value)


def _leaves(secret: Any) -> Iterator[str | int | float]:
    """The texts and numbers in a secret, in their order. An empty text is no secret."""
    if isinstance(secret, dict):
        for item in secret.values():
            yield from _leaves(item)
    elif isinstance(secret, list):
        for item in secret:
            yield from _leaves(item)
    elif secret is not None and not isinstance(secret, bool) and secret != "":
        yield secret
