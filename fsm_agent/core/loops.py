"""What comes after a loop waits until the loop can jump no more.

A loop is *loud* while a task that jumps back in it is not settled. A task is *closed* while a loud loop that it is not
on lies before it, by dependencies and forward edges. Each task counts the closed or loud ones right before it, so that
a change costs only the edges that it travels along.
"""

from __future__ import annotations

import msgspec

from fsm_agent.core.packing import pack, unpack
from fsm_agent.plan.graph import Graph
from fsm_agent.plan.walks import reach


class GatesSnapshot(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a snapshot keeps of the gates."""

    loud: list[int]
    """For each loop, packed: how many of its jumping tasks are not settled."""
    before: list[int]
    """For each task after a loop, packed: how many closed or loud ones are right before it."""
    waiting: list[int] = []


class LoopGates:
    """The gates of one run. A plan without loops costs nothing."""

    __slots__ = ("_before", "_graph", "_jumpers", "_loud", "_waiting")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._jumpers = {place for places in graph.jumpers.values() for place in places}
        self._loud = {loop: len(places) for loop, places in graph.jumpers.items()}
        self._before: dict[int, int] = {}
        self._waiting: set[int] = set()
        if self._jumpers:
            self._count_all()

    def closed(self, place: int) -> bool:
        """Whether a loop before the task may still jump. The task is then given out again by `settled`."""
        if not self._before.get(place):
            return False
        self._waiting.add(place)
        return True

    def settled(self, place: int) -> list[int]:
        """A task has settled. Returns the tasks whose gate this opened."""
        if place not in self._jumpers:
            return []
        loop = self._graph.component_of[place]
        self._loud[loop] -= 1
        return [] if self._loud[loop] else self._spread(loop, -1)

    def unsettled(self, place: int) -> None:
        """A settled task is to run again."""
        if place not in self._jumpers:
            return
        loop = self._graph.component_of[place]
        self._loud[loop] += 1
        if self._loud[loop] == 1:
            self._spread(loop, +1)

    def dump(self) -> GatesSnapshot:
        """How the gates stand, for a snapshot."""
        before = self._before
        return GatesSnapshot(
            pack(self._loud.values()), pack(before[place] for place in sorted(before)), sorted(self._waiting)
        )

    def restore(self, kept: GatesSnapshot) -> None:
        """Stand as the snapshot says. Raises ValueError for one of another plan."""
        self._loud.update(zip(list(self._loud), unpack(kept.loud, len(self._loud)), strict=True))
        self._before.update(zip(sorted(self._before), unpack(kept.before, len(self._before)), strict=True))
        self._waiting = set(kept.waiting)

    def _spread(self, loop: int, change: int) -> list[int]:
        """A loop fell silent (change -1) or became loud (+1): tell what comes after it, and so on."""
        graph = self._graph
        todo = [
            target
            for member in graph.components[loop]
            if not self._before.get(member)
            for target in graph.successors[member]
            if graph.component_of[target] != loop
        ]
        opened = []
        while todo:
            place = todo.pop()
            was_closed = self._before[place] > 0
            self._before[place] += change
            if (self._before[place] > 0) == was_closed:
                continue
            if was_closed and place in self._waiting:
                self._waiting.discard(place)
                opened.append(place)
            todo.extend(target for target in graph.successors[place] if self._carries(place, target))
        return opened

    def _carries(self, place: int, target: int) -> bool:
        """Whether being closed makes a difference to this follower: a loud loop's own word counts already."""
        here = self._graph.component_of[place]
        return self._graph.component_of[target] == here or not self._loud.get(here)

    def _count_all(self) -> None:
        """At the start all loops are loud."""
        graph = self._graph
        component = graph.component_of
        first = [
            target
            for loop in graph.jumpers
            for member in graph.components[loop]
            for target in graph.successors[member]
            if component[target] != loop
        ]
        closed = reach(first, graph.successors)
        for place in closed:
            self._before[place] = 0
        for place, targets in enumerate(graph.successors):
            for target in targets:
                same = component[target] == component[place]
                if place in closed or (not same and self._loud.get(component[place])):
                    self._before[target] += 1
