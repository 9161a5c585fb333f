"""Whether two runs stand alike, down to the last slot: of whatever a run is made of, and whatever is added to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import fields, is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import msgspec

from fsm_agent.core.turns import Turns
from fsm_agent.plan.graph import NONE

NOT_COMPARED = {
    "Run._plans": "where it has plans from, no state",
    "Run._results": "a cache, filled when somebody asks",
    "Schedule.changed": "what of that cache is out of date",
    "Failures._needed_by_high": "a cache, filled when somebody asks",
    "Turns._queue": "compared by whose turn it is",
    "Turns._parked": "compared by whose turn it is",
}
"""Slots that need not be alike, and why."""

PLAIN = (str, int, float, bool, type(None), Enum)
ABSENT = "<not there>"


def differences(left: Any, right: Any) -> list[str]:
    """Where two objects differ, as paths; nothing where they are alike."""
    return list(_compare(left, right, "", {}))


def turns_of(turns: Turns) -> list[int]:
    """Whose turn comes when, if all ready tasks are taken as soon as they can be, and end one after the other."""
    rest = deepcopy(turns)
    order: list[int] = []
    while True:
        place = rest.next()
        if place != NONE:
            rest.take(place)
            order.append(place)
        elif rest.running:
            rest.release(min(rest.running))
        else:
            return order


def _compare(left: Any, right: Any, path: str, seen: dict[int, Any]) -> Iterator[str]:
    if left is right or id(left) in seen:
        return
    if type(left) is not type(right):
        yield f"{path}: {type(left).__name__} and {type(right).__name__}"
    elif isinstance(left, PLAIN):
        if left != right:
            yield f"{path}: {left!r} and {right!r}"
    elif isinstance(left, (set, frozenset)):
        if left != right:
            yield f"{path}: {sorted(left ^ right)} in one of them only"
    else:
        seen[id(left)] = left  # kept, so that nothing else gets its id
        yield from _compare_parts(_parts(left), _parts(right), path, seen)


def _compare_parts(
    left: list[tuple[Any, Any]], right: list[tuple[Any, Any]], path: str, seen: dict[int, Any]
) -> Iterator[str]:
    if [name for name, _ in left] != [name for name, _ in right]:
        yield f"{path}: {[name for name, _ in left]} and {[name for name, _ in right]}"
        return
    for (name, value), (_, other) in zip(left, right, strict=True):
        yield from _compare(value, other, f"{path}.{name}", seen)


def _parts(value: Any) -> list[tuple[Any, Any]]:
    """What it is made of, by name, in its order."""
    if isinstance(value, (dict, Mapping, MappingProxyType)):
        return list(value.items())
    if isinstance(value, (list, tuple, deque)):
        return list(enumerate(value))
    if isinstance(value, msgspec.Struct):
        names: Any = value.__struct_fields__
    elif is_dataclass(value):
        names = [field.name for field in fields(value)]
    else:
        names = _slots(value)
    kinds = [kind.__name__ for kind in type(value).__mro__]
    skipped = {name for name in names if any(f"{kind}.{name}" in NOT_COMPARED for kind in kinds)}
    parts = [(name, getattr(value, name, ABSENT)) for name in names if name not in skipped]
    if isinstance(value, Turns):
        parts.append(("(whose turn)", turns_of(value)))
    return parts


def _slots(value: Any) -> list[str]:
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    names += vars(value) if hasattr(value, "__dict__") else []
    assert names, f"{type(value).__name__} has no slots to compare"
    return sorted(names)
