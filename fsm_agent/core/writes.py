"""All writes to the context of one run, so that those of tasks that are rolled back can be undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from fsm_agent.plan.model import MergeRule

NOBODY = -1
"""The writer of what is nobody's to undo: the writes of compensations."""

Fold = Callable[[MergeRule, Any, list[Any]], Any]
"""What a key's value and some writes come to under a merge rule."""


@dataclass(slots=True)
class Write:
    """One committed write."""

    number: int
    writer: int
    value: Any


@dataclass(slots=True)
class _Key:
    """A key's value before all writes, and those, in the order in which they count."""

    base: Any
    writes: list[Write] = field(default_factory=list)


@dataclass(slots=True)
class Undone:
    """What undoing comes to: the new values of keys, and the keys that stay, each with the task that wrote it since."""

    values: dict[str, Any] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)
    left: dict[str, list[Write]] = field(default_factory=dict)
    """The writes of each changed key that still count."""


class WriteHistory:
    """Kept only where a plan has a rollback."""

    __slots__ = ("_fold", "_jumps", "_keys", "_number", "_rules")

    def __init__(self, rules: Mapping[str, MergeRule], fold: Fold) -> None:
        self._rules = rules
        self._fold = fold
        self._keys: dict[str, _Key] = {}
        self._jumps: dict[int, int] = {}
        self._number = 0

    def add(self, key: str, writer: int, value: Any, before: Any, behind: int = 0) -> None:
        """A write was committed; it counts before the last `behind` ones. `before` is the value until then."""
        known = self._keys.get(key)
        if known is None:
            known = self._keys[key] = _Key(before)
        self._number += 1
        known.writes.insert(len(known.writes) - behind, Write(self._number, writer, value))

    def jumped(self, target: int) -> None:
        """A loop jumped back to `target`: what was written until now stays, as loops have it."""
        self._jumps[target] = self._number

    def undone(self, members: Set[int], reachable: Callable[[int], Set[int]]) -> Undone:
        """What taking back comes to: all that the members wrote since a loop from outside last began them anew.

        Of keys under sum, append and union, their share is taken out. Any other key gets the value before their
        writes, newest first; where someone else has written it since, it stays. Nothing is changed yet.
        """
        begun = self._begun(members, reachable)
        undone = Undone()
        for key, known in self._keys.items():
            own = [write.writer in members and write.number > begun.get(write.writer, 0) for write in known.writes]
            if any(own):
                left = self._left(key, known.writes, own, undone)
                if len(left) < len(own):
                    undone.left[key] = left
                    undone.values[key] = self._value(key, known.base, left)
        return undone

    def forget(self, undone: Undone) -> None:
        """What was taken back was never written."""
        for key, left in undone.left.items():
            self._keys[key].writes = left

    def _left(self, key: str, writes: list[Write], own: list[bool], undone: Undone) -> list[Write]:
        if self._rules.get(key, "last") != "last":
            return [write for write, mine in zip(writes, own, strict=True) if not mine]
        left = len(own)
        while left and own[left - 1]:
            left -= 1
        if any(own[:left]) and writes[left - 1].writer != NOBODY:
            undone.kept[key] = writes[left - 1].writer
        return writes[:left]

    def _begun(self, members: Set[int], reachable: Callable[[int], Set[int]]) -> dict[int, int]:
        """For the members that a jump from outside has reset: the number of the last write before that."""
        begun: dict[int, int] = {}
        for target, number in self._jumps.items():
            if target not in members:
                for place in members & reachable(target):
                    begun[place] = max(number, begun.get(place, 0))
        return begun

    def _value(self, key: str, base: Any, writes: list[Write]) -> Any:
        rule = self._rules.get(key, "last")
        if rule == "last":
            return writes[-1].value if writes else base
        value = base
        for write in writes:
            value = self._fold(rule, value, [write.value])
        return value
