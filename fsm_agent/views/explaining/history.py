"""One pass over a run's events: the turns of one task, the jumps back that reset it, and when others settled."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fsm_agent.core import events as ev
from fsm_agent.core.run import Run
from fsm_agent.plan.graph import NONE, Graph
from fsm_agent.views.explaining.walks import above

_OPENERS: Final = (
    ev.TaskStarted,
    ev.TaskEvaluated,
    ev.TaskSkipped,
    ev.VisitRefused,
    ev.ApprovalAsked,
    ev.FilterApplied,
)
_QUIET: Final = (ev.Progress, ev.TaskLogged)
"""What a skill says of its work decides nothing."""
_VISITS: Final = frozenset({ev.TaskStarted, ev.TaskEvaluated, ev.VisitDiscarded})
_SETTLING: Final = frozenset({ev.TaskEvaluated, ev.TaskSkipped, ev.VisitRefused})
_FINAL_WORDS: Final = frozenset({"rejected", "expired", "done", "skip", "fail"})
"""Decisions that settle a task."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A back edge that fired: the event with which its source settled, and how often it was so for this task."""

    seq: int
    source: int
    target: int
    status: str
    round: int
    """The round that begins with it: 2 after the first jump."""


@dataclass(slots=True, eq=False)
class Turn:
    """One turn of the task, from where its condition is looked at to where it ends, in the events about it."""

    opening: ev.Event
    entered: ev.PhaseChanged | None
    """How the machine entered executing before it."""
    jump: Jump | None
    """The last jump that reset the task between the turn before and this one."""
    rerun: ev.ApprovalDecided | None = None
    """The decision by which the task has it again."""
    events: list[ev.Event] = field(default_factory=list)
    closed: bool = False

    @property
    def started(self) -> ev.TaskStarted | None:
        """The event with which its visit's calls began, if they did."""
        return next((event for event in self.events if isinstance(event, ev.TaskStarted)), None)


class History:
    """What the events tell of one task."""

    def __init__(self, events: Sequence[ev.Event], run: Run, task: str) -> None:
        """`run` is the run after these events."""
        self._compiled = run.compiled
        graph = run.compiled.graph
        self.turns: list[Turn] = []
        self.jump: Jump | None = None
        """The last jump that reset the task since its last turn."""
        self.entered: ev.PhaseChanged | None = None
        self.forked: ev.RunForked | None = None
        self.pause: ev.PauseAsked | None = None
        """The last one that was asked for."""
        self.ended = end_of(events, run)
        changes = (event.seq for event in reversed(events) if type(event) is ev.PhaseChanged)
        self.last_change: int | None = next(changes, None)
        """The `seq` of the last change of phase."""
        self._task = task
        self._settled: dict[str, list[int]] = {}
        self._visits: dict[str, int] = {}
        self._jumpers = _jumpers_over(graph, graph.index[task]) if graph.jumpers else frozenset()
        self.rounds = 1
        """One more than there were jumps that reset the task, or would have if it had run."""
        for event in events:
            self._take(event)

    def settled_before(self, task: str, seq: int) -> int | None:
        """The last event before `seq` with which a task settled; None where it follows from other tasks."""
        found = self._settled.get(task, [])
        place = bisect_left(found, seq)
        return found[place - 1] if place else None

    @property
    def last(self) -> Turn | None:
        """The task's last turn."""
        return self.turns[-1] if self.turns else None

    def _take(self, event: ev.Event) -> None:
        kind = type(event)
        if kind is ev.PhaseChanged:
            if event.dest == "executing":  # type: ignore[attr-defined] # its kind was just looked at
                self.entered = event  # type: ignore[assignment] # as above
            return
        if kind in _QUIET:
            return
        about = event.task
        if about is not None:
            if about == self._task:
                self._own(event)
            self._settle(event, about)
        else:
            self._of_the_run(event)

    def _of_the_run(self, event: ev.Event) -> None:
        if isinstance(event, ev.RunTakenUp):
            if self.last is not None and not self.last.closed:
                self.last.events.append(event)
        elif isinstance(event, ev.RunForked):
            self.forked = event
        elif isinstance(event, ev.PauseAsked):
            self.pause = event

    # The task's own turns -------------------------------------------------------------------------------------------

    def _own(self, event: ev.Event) -> None:
        turn = self.last
        if isinstance(event, _OPENERS) and (turn is None or turn.closed) and not _comes_after(event):
            turn = Turn(event, self.entered, self.jump, _rerun(turn) if self.jump is None else None)
            self.jump = None
            self.turns.append(turn)
        if turn is None:
            return  # a decision that came too late about a task that never had its turn
        turn.events.append(event)
        if isinstance(event, ev.ApprovalDecided):
            turn.closed = turn.closed or event.decision != "approved"
        elif isinstance(event, (ev.TaskEvaluated, ev.TaskSkipped, ev.VisitRefused, ev.VisitDiscarded)):
            turn.closed = True

    # All tasks ------------------------------------------------------------------------------------------------------

    def _settle(self, event: ev.Event, task: str) -> None:
        """How a task settles by this event, if it does: that may fire a back edge."""
        kind = type(event)
        if kind in _SETTLING or (isinstance(event, ev.ApprovalDecided) and event.decision in _FINAL_WORDS):
            self._settled.setdefault(task, []).append(event.seq)
        if not self._jumpers:
            return
        visit = getattr(event, "visit", 0)
        if kind in _VISITS or (isinstance(event, ev.ApprovalDecided) and event.decision in ("rejected", "expired")):
            self._visits[task] = max(visit, self._visits.get(task, 0))
        if isinstance(event, ev.TaskEvaluated):
            self._ended_as(event, task, event.status, erred=event.error is not None)
        elif isinstance(event, ev.ApprovalDecided):
            if event.decision == "done":
                self._ended_as(event, task, "SUCCEEDED")
            elif event.decision in ("rejected", "expired"):
                self._ended_as(event, task, "FAILED", erred=True)

    def _ended_as(self, event: ev.Event, task: str, status: str, *, erred: bool = False) -> None:
        """The rules of `Run._succeed` and `Failures.jump_target`, told from the events alone."""
        graph = self._compiled.graph
        place = graph.index.get(task, NONE)
        if place == NONE or (self.ended is not None and event.seq >= self.ended.seq):
            return
        if status == "SUCCEEDED":
            if graph.success_back[place]:
                self._jump(event, place, graph.on_success[place], status)
        elif graph.failure_back[place] and not (graph.decisions[place] and erred):
            target = graph.on_failure[place]
            if self._visits.get(graph.ids[target], 0) < self._compiled.tasks[target].task.max_visits:
                self._jump(event, place, target, status)

    def _jump(self, event: ev.Event, source: int, target: int, status: str) -> None:
        if (source, target) not in self._jumpers:
            return
        self.rounds += 1
        turn = self.last
        if turn is not None or self._compiled.graph.ids[target] == self._task:
            self.jump = Jump(event.seq, source, target, status, self.rounds)  # else it only made it wait longer
        if turn is not None and turn.started is None:
            turn.closed = True  # what was asked about it is withdrawn


def end_of(events: Sequence[ev.Event], run: Run) -> ev.Event | None:
    """The event with which the run began to end before its time: a cancel, a limit, a failure that aborts it."""
    ends = [run.cancelled, _end_by(events, run)]
    return min((event for event in ends if event is not None), key=lambda event: event.seq, default=None)


def _end_by(events: Sequence[ev.Event], run: Run) -> ev.Event | None:
    ending = run.ending
    if ending is None:
        return None
    for event in reversed(events):
        if event.task != ending.task:
            continue
        if ending.kind == "abort":
            found = isinstance(event, (ev.TaskEvaluated, ev.ApprovalDecided))
        elif ending.task is not None:
            found = isinstance(event, ev.VisitRefused)
        else:
            found = isinstance(event, ev.LimitPassed) and event.setting != "limits.cleanup_timeout"
        if found:
            return event
    return None


def _rerun(turn: Turn | None) -> ev.ApprovalDecided | None:
    """The decision with which a turn ended, if it says that there is to be another."""
    last = turn.events[-1] if turn is not None else None
    return last if isinstance(last, ev.ApprovalDecided) and last.decision == "rerun" else None


def _comes_after(event: ev.Event) -> bool:
    """Whether the event belongs to the turn before it, though that has ended."""
    if isinstance(event, ev.ApprovalAsked):
        return event.kind != "task"
    return isinstance(event, ev.FilterApplied) and event.when == "after"


def _jumpers_over(graph: Graph, place: int) -> frozenset[tuple[int, int]]:
    """The back edges that reset the task, each as its source and its target."""
    before = above(graph, place)
    edges = (
        (source, target)
        for places in graph.jumpers.values()
        for source in places
        for target, back in (
            (graph.on_success[source], graph.success_back[source]),
            (graph.on_failure[source], graph.failure_back[source]),
        )
        if back
    )
    return frozenset((source, target) for source, target in edges if target in before)
