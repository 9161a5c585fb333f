"""Walks over directed graphs: reachability, components, paths. No recursion: a plan may be one long chain."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar


class Arc(Protocol):
    """Anything with a source and a target."""

    @property
    def source(self) -> int:
        """Where it begins."""

    @property
    def target(self) -> int:
        """Where it ends."""


A = TypeVar("A", bound=Arc)


def reach(starts: Iterable[int], follows: Sequence[Iterable[int]]) -> set[int]:
    """All that can be reached from the starts, themselves included."""
    found = set(starts)
    todo = list(found)
    while todo:
        for target in follows[todo.pop()]:
            if target not in found:
                found.add(target)
                todo.append(target)
    return found


def path_between(start: int, end: int, follows: Mapping[int, Sequence[A]], within: Collection[int]) -> list[A]:
    """A shortest non-empty path of arcs from start to end, or nothing. Start and end may be the same."""
    came: dict[int, A] = {}
    todo = deque([start])
    while todo:
        for arc in follows.get(todo.popleft(), ()):
            if arc.target in within and arc.target not in came:
                came[arc.target] = arc
                if arc.target == end:
                    return _back_to(start, came, arc)
                todo.append(arc.target)
    return []


def _back_to(start: int, came: Mapping[int, A], last: A) -> list[A]:
    path = [last]
    while path[-1].source != start:
        path.append(came[path[-1].source])
    return path[::-1]


def components(follows: Sequence[Sequence[int]]) -> list[list[int]]:
    """The strongly connected components, by Tarjan's algorithm (1972), each sorted; successors come first."""
    size = len(follows)
    number = [0] * size  # 0: not seen yet
    low = [0] * size
    on_stack = [False] * size
    stack: list[int] = []
    found: list[list[int]] = []
    count = 0
    for root in range(size):
        if number[root]:
            continue
        count += 1
        number[root] = low[root] = count
        stack.append(root)
        on_stack[root] = True
        work = [(root, iter(follows[root]))]
        while work:
            place, rest = work[-1]
            for target in rest:
                if not number[target]:
                    count += 1
                    number[target] = low[target] = count
                    stack.append(target)
                    on_stack[target] = True
                    work.append((target, iter(follows[target])))
                    break
                if on_stack[target]:
                    low[place] = min(low[place], number[target])
            else:
                work.pop()
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[place])
                if low[place] == number[place]:
                    found.append(_pop_component(place, stack, on_stack))
    return found


def _pop_component(root: int, stack: list[int], on_stack: list[bool]) -> list[int]:
    members = []
    while True:
        place = stack.pop()
        on_stack[place] = False
        members.append(place)
        if place == root:
            members.sort()
            return members
