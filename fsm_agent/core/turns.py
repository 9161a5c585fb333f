"""Whose turn it is among the tasks that are ready: priority, place in the plan, slots and locks."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from fsm_agent.plan.graph import NONE, Graph

_NO_LOCKS: frozenset[str] = frozenset()


class Turns:
    """The queue of ready tasks of one run, and what the running ones hold.

    A task whose lock is taken is parked at that lock, so that it is not looked at again before the lock is free.
    """

    __slots__ = ("_locked", "_locks", "_parked", "_queue", "_ranks", "_size", "_waiting", "max_parallel", "running")

    def __init__(self, graph: Graph, max_parallel: int) -> None:
        self._size = len(graph.ids)
        self._ranks = graph.ranks
        self._locks = graph.locks
        self.max_parallel = max_parallel
        self.running: set[int] = set()
        self._waiting: set[int] = set()
        self._queue: list[int] = []
        self._parked: dict[str, list[int]] = {}
        self._locked: set[str] | frozenset[str] = set() if graph.locks else _NO_LOCKS

    @property
    def any_ready(self) -> bool:
        """Whether some task is ready, whatever it waits for."""
        return bool(self._waiting)

    def all_ready(self) -> list[int]:
        """The tasks that are ready, in no order."""
        return list(self._waiting)

    def add(self, place: int) -> None:
        """The task is ready."""
        self._waiting.add(place)
        heappush(self._queue, self._ranks[place])

    def drop(self, place: int) -> None:
        """The task is not ready any more, without having run."""
        if place in self._waiting:
            self._waiting.discard(place)
            for lock in self._locks.get(place, ()):
                self._unpark(lock)

    def clear(self) -> set[int]:
        """Nothing is ready any more. Returns what was."""
        dropped, self._waiting = self._waiting, set()
        self._queue.clear()
        self._parked.clear()
        return dropped

    def take(self, place: int) -> None:
        """The task runs: it takes a slot and its locks."""
        self._waiting.discard(place)
        self.running.add(place)
        if place in self._locks and isinstance(self._locked, set):
            self._locked.update(self._locks[place])

    def release(self, place: int) -> None:
        """The task runs no more."""
        self.running.discard(place)
        if isinstance(self._locked, set):
            for lock in self._locks.get(place, ()):
                self._locked.discard(lock)
                self._unpark(lock)

    def restore(self, ready: Iterable[int], running: Iterable[int]) -> None:
        """Begin with these. Which of them waits at which lock follows, and shows when their turn comes."""
        for place in running:
            self.take(place)
        for place in ready:
            self.add(place)

    def next(self) -> int:
        """The ready task that could start now, or NONE."""
        if len(self.running) >= self.max_parallel:
            return NONE
        while self._queue:
            rank = self._queue[0]
            place = rank % self._size
            if place in self._waiting:
                busy = self._busy_lock(place)
                if busy is None:
                    return place
                heappop(self._queue)
                self._park(place, busy)
            else:
                heappop(self._queue)
        return NONE

    def _busy_lock(self, place: int) -> str | None:
        if not self._locked:
            return None
        return next((lock for lock in self._locks.get(place, ()) if lock in self._locked), None)

    def _park(self, place: int, busy: str) -> None:
        heappush(self._parked.setdefault(busy, []), self._ranks[place])
        for lock in self._locks[place]:
            if lock not in self._locked:
                self._unpark(lock)

    def _unpark(self, lock: str) -> None:
        """Give the best task that waits for this lock another turn."""
        parked = self._parked.get(lock)
        while parked:
            rank = heappop(parked)
            if rank % self._size in self._waiting:
                heappush(self._queue, rank)
                return
