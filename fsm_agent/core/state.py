"""What a run is at one moment, and what the machine's guards and `decide` ask of it. Nothing here changes anything."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from fsm_agent.core import events as ev
from fsm_agent.core.approvals import Approvals
from fsm_agent.core.calls import Call
from fsm_agent.core.context import SharedContext
from fsm_agent.core.failures import Ending, Failures
from fsm_agent.core.machine import FINAL
from fsm_agent.core.nodes import Node
from fsm_agent.core.rollback import Rollback, Rollbacks
from fsm_agent.core.schedule import Schedule, ScheduleSnapshot
from fsm_agent.plan.compiled import CompiledPlan, CompiledTask

PlanSource = Callable[[ev.PlanAdopted], CompiledPlan]
"""Gives the compiled plan that an event speaks of, by its digest."""

_NO_GRANTS: frozenset[str] = frozenset()
_NOWHERE: frozenset[int] = frozenset()


class RunSnapshot(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """What a snapshot keeps of a run. Where the journal has something, its event's `seq` stands here instead."""

    phase: ev.Phase
    seq: int
    schedule: ScheduleSnapshot | None = None
    """Absent before a plan was adopted."""
    views: list[int] = []
    """Places of the tasks whose visit is open."""
    calls: list[int] = []
    """Places of the tasks between the start of a visit and its verdict."""
    interrupted: list[int] = []
    limited: list[int] = []
    """Places of the tasks whose error says that a limit ended them."""
    trace: int = 0
    """How long the trace is."""

    open: list[int] = []
    """The open questions, and the ids of those among them that the approver left to a person."""
    handed_on: list[str] = []
    approved: list[tuple[int, int]] = []
    """Places of tasks that may run now, and the questions that were answered so."""
    started: int | None = None
    rejection: int | None = None
    judged: int | None = None
    cancelled: int | None = None

    ending: Ending | None = None
    cleanup: list[int] | None = None
    _plan_approved: bool = False
    active_for: float = 0.0
    active_since: float | None = None
    at: float = 0.0
    cleaning: int | None = None
    cleanup_over: bool = False
    discarded_calls: int = 0
    executed: bool = False
    is_ending: bool = False
    just_settled: bool = False
    passed_guard: str | None = None
    pause_asked: bool = False
    replan_due: bool = False
    to_ask: list[int] = []
    total_visits: int = 0
    unrun_finalizers: list[str] = []

    def pointed(self) -> frozenset[int]:
        """The events that it speaks of."""
        rare = [seq for seq in (self.started, self.rejection, self.judged, self.cancelled) if seq is not None]
        return frozenset((*self.open, *rare, *(seq for _, seq in self.approved)))


AS_THEY_ARE: Final = (
    "_plan_approved", "active_for", "active_since", "at", "cleaning", "cleanup_over", "discarded_calls", "ending",
    "executed", "is_ending", "just_settled", "passed_guard", "pause_asked", "replan_due", "seq", "to_ask",
    "total_visits", "unrun_finalizers",
)  # fmt: skip
"""What a snapshot keeps under the name that it has in the run."""


class RunState:
    """The state of one run."""

    __slots__ = (
        "_approved", "_cleanup", "_plan_approved", "_plans", "_results", "active_for", "active_since", "approvals",
        "at", "calls", "cancelled", "cleaning", "cleanup_over", "compiled", "context", "discarded_calls", "ending",
        "executed", "failures", "grants", "inputs", "interrupted", "is_ending", "judged", "just_settled",
        "max_task_runs", "moved", "passed_guard", "pause_asked", "phase", "plan_digest", "plan_version", "rejection",
        "replan_due", "rollbacks", "run_id", "running", "schedule", "secrets", "seq", "started", "to_ask",
        "total_visits", "trace", "unrun_finalizers",
    )  # fmt: skip

    # There once a plan was adopted.
    compiled: CompiledPlan
    schedule: Schedule
    context: SharedContext
    failures: Failures

    def __init__(self, run_id: str, plans: PlanSource, secrets: dict[str, Any] | None = None) -> None:  # noqa: PLR0915 - a line each
        self.run_id = run_id
        self.phase: ev.Phase = "idle"
        self.passed_guard: str | None = None
        self.seq = 0
        self.at = 0.0
        """When the last event was, in seconds since 1970."""
        self.active_for = 0.0
        """For how many seconds the run was under way in earlier spans: not paused, and with somebody to drive it."""
        self.active_since: float | None = None
        """When the present span began; None while paused."""
        self.started: ev.RunStarted | None = None
        self.grants: frozenset[str] = _NO_GRANTS
        """The permissions that the run was granted."""
        self.secrets = secrets or {}
        self.inputs: dict[str, Any] = {}
        """All inputs, secret ones too: for expressions and calls only, never for records."""
        self.moved: set[int] | None = None
        """Where somebody watches the tasks: places of those that stand differently since that was last looked at."""
        self.trace: list[tuple[str, str]] = []
        self.approvals = Approvals()
        self.plan_version = 0
        self.plan_digest: str | None = None
        self.rejection: ev.PlanRejected | None = None
        self.judged: ev.CriteriaJudged | None = None
        self.total_visits = 0
        self.max_task_runs = 0
        self.discarded_calls = 0
        self.running: set[int] = set()
        """Places of the tasks whose call is under way, reset ones included."""
        self.calls: dict[int, Call] = {}
        """The visits of tasks between their start and their verdict, by place."""
        self.interrupted: frozenset[int] = _NOWHERE
        """Places of those among them that wait for a person, or go on with the visit at their next turn."""
        self.just_settled = False
        self.pause_asked = False
        self.cancelled: ev.CancelAsked | None = None
        """Who asked for the end of the run, and why."""
        self.executed = False
        self.replan_due = False
        self.rollbacks: Rollbacks | None = None
        """What it takes to go back; only where the plan has a rollback."""
        self.ending: Ending | None = None
        self.is_ending = False
        """Cancelled, aborted, or past a limit: nothing new starts but finalizers."""
        self.cleaning: int | None = None
        """The finalizer that runs now."""
        self.cleanup_over = False
        self.unrun_finalizers: list[str] = []
        self.to_ask: list[int] = []
        """Tasks that a person is to be asked about, and was not yet: they failed, or were interrupted."""
        self._cleanup: deque[int] | None = None
        self._plans = plans
        self._plan_approved = False
        self._results: dict[str, Any] = {}
        self._approved: dict[int, ev.ApprovalAsked] = {}

    # What the machine's guards and `decide` ask ---------------------------------------------------------------------

    @property
    def plan_valid(self) -> bool:
        """A plan was adopted and not rejected since."""
        return self.plan_version > 0 and self.rejection is None

    @property
    def plan_unapproved(self) -> bool:
        """A person must agree to the plan, and has not yet."""
        return self.started is not None and self.started.plan_approval and not self._plan_approved

    @property
    def quiet(self) -> bool:
        """Nothing runs, and nobody in this process is being asked."""
        return not self.running and not (self.approvals.open and self.approvals.with_approver)

    @property
    def can_start(self) -> bool:
        """Something could be started now."""
        if self.pause_asked or self.is_ending or not self.plan_version:
            return False
        back = self.going_back
        return self.schedule.turns.next() >= 0 if back is None else not back.asked

    @property
    def any_ready(self) -> bool:
        """Some task is ready, or to be rolled back, whatever it waits for."""
        if not self.plan_version:
            return False
        return self.schedule.turns.any_ready or (self.rollbacks is not None and self.rollbacks.current is not None)

    @property
    def going_back(self) -> Rollback | None:
        """The rollback that is due or under way: nothing else starts."""
        return self.rollbacks.current if self.rollbacks is not None else None

    @property
    def cancel_asked(self) -> bool:
        """Someone asked for the end of the run."""
        return self.cancelled is not None

    @property
    def all_settled(self) -> bool:
        """Every task is settled."""
        return self.plan_version > 0 and self.schedule.unsettled == 0

    @property
    def aborting(self) -> bool:
        """An unhandled failure aborts the run, or a limit was passed."""
        return self.ending is not None

    @property
    def limit_passed(self) -> bool:
        """A limit of the run was passed."""
        return self.ending is not None and self.ending.kind == "limit"

    @property
    def waits_for_person(self) -> bool:
        """A decision is open that nobody in this process makes."""
        return bool(self.approvals.open) and self.approvals.with_person

    @property
    def has_unhandled_failure(self) -> bool:
        """Every task is settled, and a failure among them is not handled."""
        return self.all_settled and self.failures.unhandled() is not None

    @property
    def criteria_hold(self) -> bool | None:
        """Whether every judged criterion holds; None before they were judged."""
        if self.judged is None:
            return None
        return self.judged.error is None and "not_met" not in self.judged.verdicts

    @property
    def finalizer_left(self) -> bool:
        """A finalizer still has to run before the run may end."""
        return self.next_finalizer() is not None

    def next_finalizer(self) -> int | None:
        """The finalizer whose turn it is, once the run is ending and nothing runs."""
        if not (self.is_ending and self.executed) or self.cleanup_over:
            return None
        if self._cleanup is None:
            if self.running:
                return None
            chosen, self.unrun_finalizers = self.failures.finalizers()
            self._cleanup = deque(chosen)
        return self._cleanup[0] if self._cleanup else None

    @property
    def final(self) -> bool:
        """The run is over."""
        return self.phase in FINAL

    @property
    def goal(self) -> str | None:
        """What the run is for: as given when it was asked for, else the plan's."""
        if self.started is not None and self.started.goal is not None:
            return self.started.goal
        return self.compiled.plan.goal if self.plan_version else None

    def node(self, task: str) -> Node:
        """The state of a task, by its id."""
        return self.schedule.nodes[self.compiled.graph.index[task]]

    def all_results(self) -> dict[str, Any]:
        """The results of all tasks, kept up to date from the first time on. Not to be changed."""
        schedule, ids = self.schedule, self.compiled.graph.ids
        changed: Iterable[int] = schedule.changed if schedule.changed is not None else range(len(ids))
        for place in changed:
            self._results[ids[place]] = schedule.nodes[place].result()
        schedule.changed = set()
        return self._results

    def task(self, place: int) -> CompiledTask:
        """The plan's task at a place."""
        return self.compiled.tasks[place]

    def approved(self, place: int) -> ev.ApprovalAsked | None:
        """What a person agreed to for the task's next visit."""
        return self._approved.get(place)

    def active_time(self, now: float) -> float:
        """For how many seconds the run has been under way. Time in *paused*, and without a driver, does not count."""
        return self.active_for + (max(0.0, now - self.active_since) if self.active_since is not None else 0.0)

    def dump(self) -> RunSnapshot:
        """All that its events do not hold, for a snapshot."""
        nodes = self.schedule.nodes if self.plan_version else ()
        as_they_are: dict[str, Any] = {name: getattr(self, name) for name in AS_THEY_ARE}
        return RunSnapshot(
            phase=self.phase,
            schedule=self.schedule.dump() if self.plan_version else None,
            views=self.context.owners() if self.plan_version else [],
            calls=list(self.calls),
            interrupted=sorted(self.interrupted),
            limited=[node.place for node in nodes if node.error is not None and node.error.kind == "limit"],
            trace=len(self.trace),
            open=[asked.seq for asked in self.approvals.open.values()],
            handed_on=list(self.approvals.handed_on),
            approved=[(place, asked.seq) for place, asked in self._approved.items()],
            started=self.started.seq if self.started is not None else None,
            rejection=self.rejection.seq if self.rejection is not None else None,
            judged=self.judged.seq if self.judged is not None else None,
            cancelled=self.cancelled.seq if self.cancelled is not None else None,
            cleanup=list(self._cleanup) if self._cleanup is not None else None,
            **as_they_are,
        )
