"""Going back: what a run must remember for it, what it does meanwhile, and what each event changes in that.

A task has failed, and its recovery is `rollback`. Nothing starts any more, what runs is waited for; then the tasks that
succeeded are undone by their compensations, one at a time, the last one first; then all of them run again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fsm_agent.core import events as ev
from fsm_agent.core.approvals import approval_id
from fsm_agent.core.calls import Call, interruption
from fsm_agent.core.schedule import Hold
from fsm_agent.core.writes import NOBODY, Undone
from fsm_agent.plan.compiled import CompiledPlan, CompiledTask
from fsm_agent.plan.ways_back import WayBack, way_back

if TYPE_CHECKING:
    from fsm_agent.core.run import Run


@dataclass(slots=True)
class Rollback:
    """One rollback that is due or under way."""

    place: int
    """The task that failed."""
    way: WayBack
    hold: Hold
    begun: bool = False
    queue: deque[int] = field(default_factory=deque)
    """Tasks still to be compensated, in turn."""
    compensated: list[int] = field(default_factory=list)
    calling: int | None = None
    """The task whose compensation is called at the moment."""
    call: Call | None = None
    """That call."""
    attempts: int = 0
    """Calls that were made of the compensation whose turn it is, since a person last wanted it called again."""
    questions: int = 0
    """How often a person was asked about the compensation whose turn it is."""
    failed: ev.TaskError | None = None
    """Why that compensation failed: a person must look."""
    asked: bool = False
    """A person is being asked about it."""


@dataclass(frozen=True, slots=True)
class RollbackReport:
    """What came of one rollback. `kept`: keys of the context that stay, each with the task that wrote it since."""

    task: str
    to: str | None
    compensated: tuple[str, ...]
    not_compensated: tuple[str, ...]
    undone: tuple[str, ...]
    kept: dict[str, str]
    finished: bool

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        lists = {name: list(getattr(self, name)) for name in ("compensated", "not_compensated", "undone")}
        return {"task": self.task, "to": self.to, **lists, "kept": dict(self.kept), "finished": self.finished}


class Rollbacks:
    """The rollbacks of one run, and what it remembers for them. Only for plans that have one."""

    __slots__ = ("_compiled", "_order", "calls", "count", "due", "late", "reports")

    def __init__(self, compiled: CompiledPlan) -> None:
        self._compiled = compiled
        self._order: dict[int, None] = {}
        self.due: list[Rollback] = []
        """The one under way, and those that come after it."""
        self.count = 0
        """How many there have been, the one under way included."""
        self.calls: dict[int, Call] = {}
        """The last calls of tasks with a compensation: what they were called with, as recorded."""
        self.late: dict[int, Any] = {}
        """The data of visits that succeeded after their task was to go back: discarded, and to be undone as well."""
        self.reports: list[RollbackReport] = []

    @property
    def current(self) -> Rollback | None:
        """The one under way."""
        return self.due[0] if self.due else None

    def compensation(self, place: int) -> CompiledTask | None:
        """What undoes the task at this place."""
        return self._compiled.tasks[place].compensation

    def started(self, place: int, call: Call) -> None:
        """A task is about to be called."""
        if self.compensation(place) is not None:
            self.calls[place] = call

    def succeeded(self, place: int) -> None:
        """A task has succeeded: it is the first to be undone."""
        if self.compensation(place) is not None:
            self._order.pop(place, None)
            self._order[place] = None

    def discarded(self, place: int, event: ev.VisitDiscarded) -> None:
        """A visit came to its end after its task was to go back. If it succeeded, its effect is there."""
        if event.status == "SUCCEEDED" and any(place in back.way.members for back in self.due):
            self.succeeded(place)
            if self.compensation(place) is not None:
                self.late[place] = event.data

    def in_turn(self, run: Run, back: Rollback) -> list[int]:
        """The tasks to be compensated, in turn."""
        nodes = run.schedule.nodes
        return [
            place
            for place in reversed(self._order)
            if place in back.way.members and (place in self.late or nodes[place].status == "SUCCEEDED")
        ]

    def over(self, back: Rollback) -> None:
        """The tasks of this rollback have not run."""
        for place in back.way.members.intersection(self._order):
            del self._order[place]
            self.late.pop(place, None)


# What comes of a failure ----------------------------------------------------------------------------------------------


def refusal(run: Run, place: int) -> str | None:
    """Why the failed task is not rolled back, although its recovery says so; None where it is."""
    rollbacks, plan, graph = _rollbacks(run), run.compiled.plan, run.compiled.graph
    if rollbacks.count >= plan.limits.max_rollbacks:
        return f"it is not rolled back: limits.max_rollbacks allows {plan.limits.max_rollbacks}"
    way = way_back(plan, graph, place)
    for again in (place, way.task):
        if again is not None and run.schedule.nodes[again].visits >= (most := plan.tasks[again].max_visits):
            return f"it is not rolled back: task {graph.ids[again]!r} has had {most} visits (max_visits: {most})"
    return None


def fall_due(run: Run, place: int) -> WayBack:
    """The task has failed and is to go back: nothing starts, and what runs of those that run again does not count."""
    rollbacks = _rollbacks(run)
    way = way_back(run.compiled.plan, run.compiled.graph, place)
    rollbacks.due.append(Rollback(place, way, run.schedule.suspend(place, way.members)))
    if len(rollbacks.due) == 1:
        rollbacks.count += 1
    return way


def next_due(run: Run) -> tuple[int, str] | None:
    """One rollback is over, and the next one begins; or its task, and why it does not."""
    rollbacks = _rollbacks(run)
    if not rollbacks.due:
        return None
    place = rollbacks.due[0].place
    why = refusal(run, place)
    if why is None:
        rollbacks.count += 1
        return None
    del rollbacks.due[0]
    return place, why


def leave(run: Run) -> None:
    """The run is ending. A task that was undone has not run, with all that it wrote; the others stay as they are."""
    rollbacks = _rollbacks(run)
    for back in rollbacks.due:
        members = frozenset(back.compensated)
        undone = run.context.undone(members, run.compiled.graph.reachable)
        run.context.undo(undone)
        rollbacks.reports.append(_report(run, back, undone, finished=False))
        for place in back.compensated:
            run.schedule.undo_quietly(place)
        if run.schedule.nodes[back.place].status == "PENDING":
            run.schedule.settle_quietly(back.place, "FAILED")
    rollbacks.due.clear()


def reports(run: Run) -> list[dict[str, Any]]:
    """What came of each rollback, that of the one under way included."""
    if run.rollbacks is None:
        return []
    under_way = [_report(run, back, Undone(), finished=False) for back in run.rollbacks.due]
    return [report.to_json() for report in (*run.rollbacks.reports, *under_way)]


# The events of a rollback ---------------------------------------------------------------------------------------------


def begin(run: Run) -> ev.RollbackStarted:
    """The rollback that is due begins: nothing runs any more."""
    rollbacks, back = _rollbacks(run), _current(run)
    ids = run.compiled.graph.ids
    tasks = tuple(ids[place] for place in rollbacks.in_turn(run, back))
    return ev.RollbackStarted(task=ids[back.place], to=back.way.to, tasks=tasks)


def finish(run: Run) -> ev.RolledBack:
    """All is compensated: the tasks run again, and what they wrote is taken back."""
    back, ids = _current(run), run.compiled.graph.ids
    undone = run.context.undone(back.way.members, run.compiled.graph.reachable)
    kept = {key: ids[writer] for key, writer in undone.kept.items()}
    return ev.RolledBack(task=ids[back.place], to=back.way.to, undone=tuple(undone.values), kept=kept)


def _started(run: Run, event: ev.RollbackStarted) -> None:
    back, index = _current(run), run.compiled.graph.index
    back.begun = True
    back.queue.extend(index[task] for task in event.tasks)


def _compensation_started(run: Run, event: ev.CompensationStarted) -> None:
    back, place = _current(run), run.compiled.graph.index[event.task]
    back.calling = place
    back.call = Call(event.visit, attempts=event.attempt, idempotent=event.idempotent)
    back.attempts = event.attempt
    run.schedule.turns.take(place)
    run.context.open_view(place)


def _compensated(run: Run, event: ev.Compensated) -> None:
    back = _current(run)
    _call_ended(run, back)
    run.just_settled = True
    if event.changes:
        run.context.commit(NOBODY, event.changes)
    if event.status == "SUCCEEDED":
        _next(back)
    else:
        back.failed = event.error
    if run.is_ending:
        leave(run)


def go_back(run: Run) -> None:
    """The members have not run, and have written nothing."""
    rollbacks, back = _rollbacks(run), _current(run)
    graph = run.compiled.graph
    undone = run.context.undone(back.way.members, graph.reachable)
    run.context.undo(undone)
    rollbacks.reports.append(_report(run, back, undone, finished=True))
    rollbacks.over(back)
    del rollbacks.due[0]
    run.schedule.go_back(back.hold, _active(run, back.way))


def interrupted(run: Run, event: ev.TaskInterrupted) -> None:
    """Nobody knows what the call of a compensation came to: it is called again, or a person must look."""
    back = _current(run)
    _call_ended(run, back)
    if event.then != "again":
        back.failed = interruption(event.attempt)


def question_about_compensation(run: Run, place: int) -> ev.ApprovalAsked:
    """The question to a person about the compensation that failed."""
    back, task = _current(run), run.compiled.graph.ids[place]
    visit = run.schedule.nodes[place].visits
    name = approval_id(run.run_id, task, visit, None, f"compensation {back.questions}")
    return ev.ApprovalAsked(approval=name, kind="compensation", task=task, visit=visit, error=back.failed)


def asked(run: Run) -> None:
    """A person is asked about the compensation that failed."""
    back = _current(run)
    back.asked = True
    back.questions += 1


def decided(run: Run, event: ev.ApprovalDecided) -> None:
    """A person has looked: it is called again, or the task is undone."""
    back = _current(run)
    back.failed, back.asked, back.attempts = None, False, 0
    if event.decision == "done":
        _next(back)


CHANGES: dict[type[ev.Event], Callable[[Run, Any], None]] = {
    ev.RollbackStarted: _started,
    ev.CompensationStarted: _compensation_started,
    ev.Compensated: _compensated,
}


def _active(run: Run, way: WayBack) -> list[int]:
    """The named task; of a layer, the first tasks that a jump had led to before."""
    if way.task is not None:
        return [way.task]
    if way.to is None:
        return []
    return [place for place in way.heads(run.compiled.graph) if run.schedule.nodes[place].forced]


def _next(back: Rollback) -> None:
    back.compensated.append(back.queue.popleft())
    back.attempts = back.questions = 0


def _call_ended(run: Run, back: Rollback) -> None:
    place, back.calling = back.calling, None
    if back.call is not None:
        back.attempts = back.call.attempts
        back.call = None
    if place is not None:
        run.schedule.turns.release(place)
        run.context.close_view(place)


def _report(run: Run, back: Rollback, undone: Undone, *, finished: bool) -> RollbackReport:
    ids = run.compiled.graph.ids
    return RollbackReport(
        ids[back.place],
        back.way.to,
        tuple(ids[place] for place in back.compensated),
        tuple(ids[place] for place in back.queue),
        tuple(undone.values),
        {key: ids[writer] for key, writer in undone.kept.items()},
        finished,
    )


def _rollbacks(run: Run) -> Rollbacks:
    if run.rollbacks is None:
        raise AssertionError("the plan has no rollback")
    return run.rollbacks


def _current(run: Run) -> Rollback:
    back = run.going_back
    if back is None:
        raise AssertionError("no rollback is under way")
    return back
