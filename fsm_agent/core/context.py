"""The context: data that the tasks of a run share, with snapshot reads, conflict detection and merge rules.

A visit reads what was committed when it began. What it writes is committed when it is judged. Two visits are
*concurrent* when each began before the other was judged: exactly then one finds the other's view open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from fsm_agent.core.writes import Undone, WriteHistory
from fsm_agent.jsonable import copy_plain
from fsm_agent.plan.model import MergeRule

MISSING: Any = object()
"""Stands for a key that is not there."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})
"""Most visits are never overtaken: they share this."""


class View:
    """The context as it was when one visit began."""

    __slots__ = ("others", "owner", "shadow", "shared")

    def __init__(self, owner: int, shared: SharedContext) -> None:
        self.owner = owner
        self.shared = shared
        self.shadow: Mapping[str, Any] = _NOTHING
        """Values from before the visit began, of keys that were written since."""
        self.others: Mapping[str, list[tuple[int, Any]]] = _NOTHING
        """What concurrent visits committed: key → (writer, value as written), at most two different values."""

    def overtaken(self, key: str, before: Any, writer: int, value: Any) -> None:
        """A concurrent visit commits a write."""
        if self.shadow is _NOTHING:
            self.shadow, self.others = {}, {}
        self.shadow.setdefault(key, before)  # type: ignore[attr-defined] # its own dict by now
        _remember(self.others.setdefault(key, []), writer, value)  # type: ignore[attr-defined] # as above

    def get(self, key: str, default: Any = None) -> Any:
        """A fresh copy of the value, or the default."""
        # Read the shared value first: a commit fills the shadow before it changes what is shared, so that a thread
        # which comes in between finds one or the other, never the later value.
        value = self.shared.values.get(key, MISSING)
        value = self.shadow.get(key, value)
        return default if value is MISSING else copy_plain(value)

    def values(self, writes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """All of it, with the visit's own writes on top. Not to be changed."""
        if not self.shadow and not writes:
            return self.shared.values
        merged = {**self.shared.values, **self.shadow, **(writes or {})}
        return {key: value for key, value in merged.items() if value is not MISSING}


@dataclass(slots=True)
class _Segment:
    """One committed write under a merge rule that may still have concurrent ones to come."""

    place: int
    value: Any
    open_views: set[int]


@dataclass(slots=True)
class _Merging:
    """A key under a merge rule: a settled base, and the writes whose order is not final."""

    base: Any
    segments: list[_Segment] = field(default_factory=list)


class SharedContext:
    """The committed context of a run, with its open views."""

    __slots__ = ("_history", "_merging", "_rules", "_views", "values")

    def __init__(self, values: dict[str, Any], rules: Mapping[str, MergeRule], *, undoable: bool = False) -> None:
        """With `undoable`, writes are remembered so that they can be undone."""
        self.values = values
        self._rules = rules
        self._history = WriteHistory(rules, _fold) if undoable else None
        self._views: dict[int, View] = {}
        self._merging: dict[str, _Merging] = {}

    def open_view(self, owner: int) -> View:
        """A visit begins."""
        view = self._views[owner] = View(owner, self)
        return view

    def view_of(self, owner: int) -> View:
        """The open view of a visit."""
        return self._views[owner]

    def owners(self) -> list[int]:
        """Whose views are open."""
        return list(self._views)

    def keep_views(self, owners: Collection[int]) -> None:
        """Close all views but these. Raises LookupError if one of them is not open."""
        for owner in [owner for owner in self._views if owner not in owners]:
            self.close_view(owner)
        if len(self._views) != len(owners):
            raise LookupError("a visit that is under way has no view")

    def close_view(self, owner: int) -> None:
        """The visit is judged, or its outcome is dropped."""
        self._views.pop(owner, None)
        if self._merging:
            self._settle_merges(owner)

    def conflict(self, owner: int, writes: Mapping[str, Any]) -> tuple[str, int] | None:
        """The first key that a concurrent visit wrote differently, with that visit; None where all is well."""
        others = self._views[owner].others
        if not others:
            return None
        for key, value in writes.items():
            if key in others and key not in self._rules:
                for writer, written in others[key]:
                    if not same(written, value):
                        return key, writer
        return None

    def unmergeable(self, writes: Mapping[str, Any]) -> str | None:
        """Why a write does not fit its key's merge rule; None where all do."""
        if not self._rules:
            return None
        for key, value in writes.items():
            rule = self._rules.get(key)
            if rule == "sum" and not (_is_number(value) and _is_number(self.values.get(key, 0))):
                return f"the merge rule of context key {key!r} is sum: both sides must be numbers"
            if rule in ("append", "union") and not isinstance(self.values.get(key, []), list):
                return f"the merge rule of context key {key!r} is {rule}: its value must be a list"
        return None

    def commit(self, owner: int, writes: Mapping[str, Any]) -> None:
        """Make a judged visit's writes visible to all that begin from now on."""
        others = [view for view in self._views.values() if view.owner != owner]
        if not others and not self._rules and self._history is None:
            self.values.update(writes)
            return
        for key, value in writes.items():
            before = self.values.get(key, MISSING)
            for view in others:
                view.overtaken(key, before, owner, value)
            rule = self._rules.get(key, "last")
            behind = 0
            if rule == "last":
                self.values[key] = value
            else:
                self.values[key], behind = self._merge(key, rule, owner, value, {view.owner for view in others})
            if self._history is not None:
                self._history.add(key, owner, value, before, behind)

    def jumped(self, target: int) -> None:
        """A loop jumped back: for those that are undone later, what was written until now stays."""
        if self._history is not None:
            self._history.jumped(target)

    def undone(self, members: Set[int], reachable: Callable[[int], Set[int]]) -> Undone:
        """What taking back the writes of these tasks comes to. `reachable`: the tasks that a jump to one resets."""
        return Undone() if self._history is None else self._history.undone(members, reachable)

    def undo(self, undone: Undone) -> None:
        """Take them back; nothing may be running. A key that was not there before is removed."""
        if self._history is not None:
            self._history.forget(undone)
        for key, value in undone.values.items():
            if value is MISSING:
                self.values.pop(key, None)
            else:
                self.values[key] = value

    def _merge(self, key: str, rule: MergeRule, owner: int, value: Any, open_views: set[int]) -> tuple[Any, int]:
        """The key's new value, and how many writes this one counts before though it came later."""
        merging = self._merging.get(key)
        if merging is None:
            if not open_views:
                return _fold(rule, self.values.get(key, MISSING), [value]), 0
            merging = self._merging[key] = _Merging(self.values.get(key, MISSING))
        segments = merging.segments
        at = len(segments)
        while at and owner in segments[at - 1].open_views and segments[at - 1].place > owner:
            at -= 1
        segments.insert(at, _Segment(owner, value, open_views))
        return _fold(rule, merging.base, [segment.value for segment in segments]), len(segments) - 1 - at

    def _settle_merges(self, closed: int) -> None:
        for key, merging in list(self._merging.items()):
            for segment in merging.segments:
                segment.open_views.discard(closed)
            if not any(segment.open_views for segment in merging.segments):
                del self._merging[key]


def same(left: Any, right: Any) -> bool:
    """Whether two plain values are the same data: `1`, `1.0` and `true` are three."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(item, right[key]) for key, item in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def _remember(seen: list[tuple[int, Any]], writer: int, value: Any) -> None:
    if len(seen) < 2 and not any(same(value, known) for _, known in seen):
        seen.append((writer, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _fold(rule: MergeRule, base: Any, values: list[Any]) -> Any:
    if rule == "sum":
        addends = values if base is MISSING else [base, *values]
        # A number that is not known (a secret one, where nobody has given it again) makes a sum that is not known.
        unknown = [value for value in addends if not _is_number(value)]
        return unknown[0] if unknown else sum(addends)
    merged = [] if base is MISSING else list(base)
    if rule == "append":
        return merged + values
    seen = {_stamp(item) for item in merged}
    for value in values:
        for item in value if isinstance(value, list) else [value]:
            stamp = _stamp(item)
            if stamp not in seen:
                seen.add(stamp)
                merged.append(item)
    return merged


def _stamp(value: Any) -> bytes:
    """Equal for the same data, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True).encode()
