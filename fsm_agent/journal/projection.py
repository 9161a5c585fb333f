"""The rows by which people see how tasks stand: what has changed since the last commit, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from fsm_agent.core import events as ev
from fsm_agent.core.run import Run
from fsm_agent.journal.records import TaskRow

_UNSEEN = frozenset({"PENDING", "READY"})
"""A task that stands so, and of which nothing was ever asked or done, needs no row."""


class Projection:
    """Watches the tasks of one run."""

    __slots__ = ("_marks", "_moved", "_run", "_seen")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._moved: set[int] = set()
        self._seen: set[int] | None = None if run.plan_version else set()
        """Tasks that have a row; None where that is not known: the run was read from a store."""
        self._marks: dict[int, list[int | None]] = {}
        run.watch(self._moved)

    def note(self, events: Iterable[ev.Event]) -> None:
        """Note which events tell of a visit's approval, start and end."""
        run = self._run
        for event in events:
            kind = _MARKS.get(type(event))
            if kind is not None and event.task is not None:
                place = run.compiled.graph.index[event.task]
                self._marks.setdefault(place, [None, None, None])[kind] = event.seq
                self._moved.add(place)

    def rows(self) -> tuple[TaskRow, ...]:
        """The rows to be written."""
        if not self._moved:
            return ()
        run = self._run
        nodes, ids = run.schedule.nodes, run.compiled.graph.ids
        rows = []
        for place in self._moved:
            node = nodes[place]
            if self._seen is not None and place not in self._seen and not self._has_history(place):
                continue
            marks = self._marks.get(place, _NO_MARKS)
            rows.append(
                TaskRow(place, ids[place], node.status, node.reason, node.visits, node.attempts, node.retried, *marks)
            )
        return tuple(rows)

    def _has_history(self, place: int) -> bool:
        """Whether there is more to show of a task than that its turn has not come: a jump may have reset it since."""
        node = self._run.schedule.nodes[place]
        return node.status not in _UNSEEN or node.visits > 0 or place in self._marks

    def written(self) -> None:
        """The rows are in the store."""
        if self._seen is not None:
            self._seen |= self._moved
        self._moved.clear()
        self._marks.clear()


_NO_MARKS: tuple[None, None, None] = (None, None, None)
_MARKS: dict[type[ev.Event], int] = {ev.ApprovalAsked: 0, ev.TaskStarted: 1, ev.TaskEvaluated: 2}
