"""Secrets in what is kept: in the store a hole stands in the place of each, and whoever goes on fills it.

Only the run's own secret inputs are known to be secret, in each form in which they may be written (`forms.py`).
Everything else is data. A hole bears the run's mark, which nobody outside of the store knows: no data from elsewhere
can pass for one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import structs

from fsm_agent.core import events as ev
from fsm_agent.forms import forms_of, leaves_of, number_text
from fsm_agent.jsonable import encode

EDGE: Final = "\uf8ff"
"""Begins and ends a hole: a character of the private use area."""
HIDDEN: Final = "***"
ALL_LEVELS: Final = 1_000
"""More levels of objects than any record has."""

DATA: Final[Mapping[type[ev.Event], tuple[str, ...]]] = {
    ev.RunStarted: ("goal", "labels"),
    ev.TaskStarted: ("parameters",),
    ev.AttemptFailed: ("error",),
    ev.TaskEvaluated: ("data", "error"),
    ev.ContextChanged: ("changes",),
    ev.VisitDiscarded: ("data", "error"),
    ev.CompensationStarted: ("parameters",),
    ev.Compensated: ("data", "error", "changes"),
    ev.RolledBack: ("undone", "kept"),
    ev.ApprovalAsked: ("parameters", "error"),
    ev.ApprovalHandedOn: ("message",),
    ev.ApprovalDecided: ("by", "why", "result"),
    ev.DecisionIgnored: ("by", "why", "message"),
    ev.CriteriaJudged: ("output", "error"),
    ev.PauseAsked: ("by", "why"),
    ev.CancelAsked: ("by", "why"),
    ev.Progress: ("text",),
    ev.TaskLogged: ("message", "fields"),
    ev.FilterApplied: ("why",),
}
"""What skills and people said, in events. Much of it was masked when it was recorded; here nothing relies on that."""

RECORDS: Final[Mapping[type[ev.Event], tuple[str, ...]]] = {
    ev.PlanAdopted: ("inputs", "author", "reason"),
    ev.PlanRejected: ("message", "problems"),
    ev.RunFinished: ("reason",),
}
"""The same, where the keys of the outermost objects are the program's or the plan's own: those stay."""


class Holes:
    """The secrets of one run, by its mark."""

    def __init__(self, mark: str, secrets: Mapping[str, Any]) -> None:
        """`secrets` are the values of the secret inputs, by name, as far as they are known."""
        self._texts: dict[str, str] = {}
        """What stands in each hole."""
        self._whole: dict[str, str] = {}
        within: dict[str, str] = {}
        for name, secret in secrets.items():
            for place, leaf in enumerate(leaves_of(secret)):
                for form in forms_of(leaf):
                    hole = f"{EDGE}{mark}/{name.replace(EDGE, '')}/{place}/{form.word}{EDGE}"
                    self._texts[hole] = form.text
                    self._whole.setdefault(form.text, hole)
                    if form.within:
                        within.setdefault(form.text, hole)
        longest_first = sorted(within, key=len, reverse=True)
        self._within = re.compile("|".join(map(re.escape, longest_first))) if within else None
        self._needles = tuple(_needles(self._whole))
        self._pattern = re.compile(f"{EDGE}{re.escape(mark)}/[^{EDGE}]*{EDGE}")
        self._number = f"{EDGE}{mark}#{EDGE}"
        """Begins the text that stands for a number."""

    def may_be_in(self, body: str) -> bool:
        """Whether a secret may be in an encoded text: quickly told, and never wrong where it says no."""
        return any(needle in body for needle in self._needles)

    def punched(self, event: ev.Event) -> ev.Event:
        """The event as it is kept: without the secrets."""
        return _changed(event, self._punch)

    def filled(self, event: ev.Event) -> ev.Event:
        """The event as it was: with the secrets that are known; others are shown as `***`."""
        return _changed(event, self._fill)

    def punched_record(self, record: Any, named: int = 1) -> Any:
        """Plain data as it is kept. The keys of the outermost `named` levels of objects are the program's own."""
        return _walked(record, self._punch, named)

    def filled_record(self, record: Any, named: int = 1) -> Any:
        """The same data as it was."""
        return _walked(record, self._fill, named)

    def _punch(self, leaf: Any) -> Any:
        if isinstance(leaf, str):
            return self._punched_text(leaf)
        text = number_text(leaf)
        punched = self._punched_text(text)
        return leaf if punched is text else self._number + punched

    def _punched_text(self, text: str) -> str:
        hole = self._whole.get(text)
        if hole is not None:
            return hole
        if self._within is None or self._within.search(text) is None:
            return text
        return self._within.sub(lambda found: self._whole[found.group()], text)

    def _fill(self, leaf: Any) -> Any:
        if not isinstance(leaf, str) or EDGE not in leaf:
            return leaf
        if leaf.startswith(self._number):
            return _number_of(self._filled_text(leaf[len(self._number) :]))
        return self._filled_text(leaf)

    def _filled_text(self, text: str) -> str:
        return self._pattern.sub(lambda found: self._texts.get(found.group(), HIDDEN), text)


def _needles(texts: Iterable[str]) -> Iterable[str]:
    """What is to be searched for in encoded text, to find any of these. None of them is within another one."""
    found: list[str] = []
    for text in sorted(texts, key=len):
        for needle in dict.fromkeys((encode(text).decode()[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])):
            if not any(shorter in needle for shorter in found):
                found.append(needle)
    return found


def _number_of(text: str) -> Any:
    """The number that is written so; hidden where a part of it is not known."""
    try:
        number = json.loads(text)
    except ValueError:
        return HIDDEN
    return number if isinstance(number, (int, float)) else HIDDEN


def _changed(event: ev.Event, change: Callable[[Any], Any]) -> ev.Event:
    kind = type(event)
    named = 1 if kind in RECORDS else 0
    changes = {}
    for field in (RECORDS if named else DATA).get(kind, ()):
        before = getattr(event, field)
        after = _walked(before, change, named)
        if after is not before:
            changes[field] = after
    return structs.replace(event, **changes) if changes else event


def _walked(value: Any, change: Callable[[Any], Any], named: int = 0) -> Any:
    """Plain data with each leaf changed, and each key below `named` levels; the very same where nothing changes."""
    if isinstance(value, dict):
        deeper = max(0, named - 1)
        pairs = [(key if named else change(key), _walked(item, change, deeper)) for key, item in value.items()]
        same = all(new is old and item is value[old] for (new, item), old in zip(pairs, value, strict=True))
        return value if same else dict(pairs)
    if isinstance(value, (list, tuple)):
        items = [_walked(item, change, named) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, ev.TaskError):
        message, kind = change(value.message), _walked(value.type, change)
        same = message is value.message and kind is value.type
        return value if same else structs.replace(value, message=message, type=kind)
    return value if value is None or isinstance(value, bool) else change(value)
