"""Where things stand in a file: a tree of lines beside the data, made only when there is a problem to point at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fsm_agent.plan.findings import Finding, Path, Step, shown
from fsm_agent.plan.spellings import PLAN_SPELLINGS, TASK_SPELLINGS, normal_path

MOST_DUPLICATES = 1_000
"""How many duplicate keys are told."""


class Token(NamedTuple):
    """One piece of a JSON or YAML text, whose brackets are known to match. Lines and columns are 1-based."""

    kind: str
    """`{ } [ ]`, `key` or `scalar`."""
    value: Any
    line: int
    column: int


@dataclass(slots=True)
class Place:
    """Where one value stands, and what it holds. In a mapping a value counts as standing where its key does."""

    line: int
    keys: dict[str, Place] = field(default_factory=dict)
    items: list[Place] = field(default_factory=list)


def places_of(tokens: Iterator[Token]) -> tuple[Place, list[Finding]]:
    """The tree of places of a text, and its duplicate keys."""
    duplicates: list[Finding] = []
    return _place(next(tokens), tokens, (), duplicates), duplicates


def line_of(root: Place, finding: Finding) -> int:
    """The line of what the finding points at, or of the nearest thing around it, in whatever spelling it stands."""
    if not finding.path:
        return root.line
    place, line = root, root.line
    for depth, step in enumerate(finding.path):
        names: tuple[Step, ...] = (step, *_spellings(finding.path[:depth], step))
        if finding.written is not None and depth == len(finding.path) - 1:
            names = (finding.written, *names)
        found = _first(_layers(root), names) if depth == 0 else _inside(place, names)
        if found is None:
            break
        place, line = found, found.line
    return line


def _place(token: Token, tokens: Iterator[Token], path: Path, duplicates: list[Finding]) -> Place:
    place = Place(token.line)
    if token.kind == "{":
        for key in tokens:
            if key.kind == "}":
                break
            if key.value in place.keys and len(duplicates) < MOST_DUPLICATES:
                duplicates.append(_duplicate((*path, key.value), key))
            value = _place(next(tokens), tokens, (*path, key.value), duplicates)
            value.line = key.line
            place.keys[key.value] = value
    elif token.kind == "[":
        for item in tokens:
            if item.kind == "]":
                break
            place.items.append(_place(item, tokens, (*path, len(place.items)), duplicates))
    return place


def _duplicate(path: Path, key: Token) -> Finding:
    message = f"the key {shown(str(key.value))} stands twice in one mapping"
    hint = "keep one of the two: the other would be lost"
    return Finding("duplicate_key", normal_path(path), message, hint=hint, line=key.line, column=key.column)


def _layers(root: Place) -> list[Place]:
    """The mapping that the plan stands in, and those in its wrapper `plan: {…}`; of a bare list, one with its tasks."""
    if root.items:
        return [Place(root.line, {"tasks": root})]
    layers = [root]
    while (inner := layers[-1].keys.get("plan")) and inner.keys:
        layers.append(inner)
    return layers


def _spellings(above: Path, step: Step) -> tuple[str, ...]:
    spellings: Mapping[str, tuple[str, ...]] = {}
    if not above:
        spellings = PLAN_SPELLINGS
    elif len(above) == 2 and above[0] == "tasks":
        spellings = TASK_SPELLINGS
    own = spellings.get(str(step), ())
    return (*own, "name", *TASK_SPELLINGS["name"]) if above and step == "id" else own


def _first(places: list[Place], names: tuple[Step, ...]) -> Place | None:
    # from the inside out: the wrapper itself is called `plan`, which is also a spelling of `tasks`
    return next((found for place in reversed(places) if (found := _inside(place, names))), None)


def _inside(place: Place, names: tuple[Step, ...]) -> Place | None:
    for name in names:
        if isinstance(name, int):
            return place.items[name] if name < len(place.items) else None
        if name in place.keys:
            return place.keys[name]
    return None
