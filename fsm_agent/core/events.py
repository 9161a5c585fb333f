"""What happened: facts in the past tense, one frozen record each. The journal is a list of them, and the truth.

A run's state is what `evolve` makes of its events, one after the other. What evaluated an expression, called something
or was told by someone is an event; what follows from the state alone is not. Listeners get these records. They hold
plain data only, so that no cycle runs through them and the garbage collector need not look at them (`gc=False`).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA_VERSION = 1
"""Grows when a record changes in a way that an older reader would misunderstand."""

Phase = Literal["idle", "planning", "executing", "evaluating", "paused", "completed", "failed", "cancelled"]
Trigger = Literal[
    "start", "planned", "planning_failed", "settled", "evaluated", "pause", "resume", "cancel", "abort"
]  # fmt: skip
ApprovalKind = Literal["task", "plan", "failed", "interrupted", "compensation"]
TakenUpFor = Literal["resume", "recover", "decide", "cancel"]
Verdict = Literal["approved", "rejected", "expired", "rerun", "done", "skip", "fail"]


class TaskError(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Why a task failed. `kind` is one of the error kinds; `type` the exception's class, where there was one."""

    kind: str
    message: str
    type: str | None = None
    attempt: int | None = None

    def with_words(self, words: str) -> TaskError:
        """The same error with more to say."""
        return TaskError(self.kind, f"{self.message}; {words}", self.type, self.attempt)

    def to_json(self) -> dict[str, Any]:
        """All four fields as plain data."""
        return {"kind": self.kind, "type": self.type, "message": self.message, "attempt": self.attempt}


class Event(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    tag_field="type",
    kw_only=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """What all events have: their place in the run's journal, the time of day (seconds since 1970), and the run."""

    seq: int = 0
    at: float = 0.0
    run_id: str = ""

    @property
    def type(self) -> str:
        """The event's name, as in its JSON."""
        return str(self.__struct_config__.tag)

    @property
    def task(self) -> str | None:
        """The task it is about, if any."""
        return None

    def to_json(self) -> dict[str, Any]:
        """The event as plain JSON data, with its type."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data


class RunStarted(Event, frozen=True, gc=False, tag="run_started"):
    """A run was asked for."""

    goal: str | None = None
    grants: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    max_parallel: int | None = None
    deadline: float | None = None
    plan_approval: bool = False
    schema_version: int = SCHEMA_VERSION


class PlanAdopted(Event, frozen=True, gc=False, tag="plan_adopted"):
    """A plan passed all checks and is the run's plan from now on. Secret inputs are not in it, only their names."""

    version: int
    digest: str
    inputs: dict[str, Any] = {}
    secrets: tuple[str, ...] = ()
    author: str = "person"
    reason: str | None = None
    workers: dict[str, str] = {}
    """The engine's kinds of workers and their skills, besides the plan's own."""
    default_skill: str | None = None
    """The engine's skill for tasks that name nobody."""
    guarded: tuple[str, ...] = ()
    """Finalizers that need approval by the risk of their skills: the plan alone does not tell."""
    mark: str = ""
    """Where there are secrets: what stands in a store for those that skills returned bears this mark."""


class RunTakenUp(Event, frozen=True, gc=False, tag="run_taken_up"):
    """Somebody drives the run from now on who did not before: after a pause, or after its driver was gone."""

    driver: str
    why: TakenUpFor = "resume"


class RunForked(Event, frozen=True, gc=False, tag="run_forked"):
    """The run began as a copy of another one's first `upto` events. What that one does is its own matter."""

    source: str
    upto: int


class PlanRejected(Event, frozen=True, gc=False, tag="plan_rejected"):
    """No plan was found, or the one that was made is not valid."""

    message: str
    problems: tuple[dict[str, Any], ...] = ()


class PhaseChanged(Event, frozen=True, gc=False, tag="phase_changed"):
    """The machine took a transition, let through by this guard."""

    trigger: Trigger
    source: Phase
    dest: Phase
    guard: str | None = None


class TaskStarted(Event, frozen=True, gc=False, tag="task_started"):
    """A visit began: the skill is about to be called."""

    task: str
    visit: int
    parameters: dict[str, Any] | None = None
    """As rendered; absent where the approval or the plan holds the very same."""
    seal: str = ""
    """A keyed digest of the true parameters, where secrets are left out of the record."""
    idempotent: bool = False
    """Whether a second call did no harm when this one was made: what the skill says later counts for later calls."""


class AttemptStarted(Event, frozen=True, gc=False, tag="attempt_started"):
    """A further call of a visit is about to be made: a retry, the fallback, or one more after an interruption."""

    task: str
    visit: int
    attempt: int
    fallback: bool = False
    idempotent: bool = False


class TaskInterrupted(Event, frozen=True, gc=False, tag="task_interrupted"):
    """The process that made a call has died, or lost the run; what the call came to is not known.

    `then`: the call is made `again` (the skill is idempotent), the `fallback` has its turn, or a person is to be
    asked (`ask`).
    """

    task: str
    visit: int
    attempt: int
    then: Literal["again", "fallback", "ask"]


class AttemptFailed(Event, frozen=True, gc=False, tag="attempt_failed"):
    """An attempt failed and the next one follows after `delay` seconds (a fallback: at once)."""

    task: str
    visit: int
    attempt: int
    error: TaskError
    then: Literal["retry", "fallback"] = "retry"
    delay: float = 0.0


class CallAbandoned(Event, frozen=True, gc=False, tag="call_abandoned"):
    """A call goes on after its time or its cancellation; what it comes to is dropped."""

    task: str
    visit: int
    attempt: int
    why: Literal["timeout", "cancelled"]


class LoopBlocked(Event, frozen=True, gc=False, tag="loop_blocked"):
    """An async skill held up the event loop, and with it everything else, for `seconds`."""

    task: str
    visit: int
    seconds: float


class TaskEvaluated(Event, frozen=True, gc=False, tag="task_evaluated"):
    """A visit was judged. `attempts` are its calls; `failed_calls` those of them that were tried again."""

    task: str
    visit: int
    status: Literal["SUCCEEDED", "FAILED"]
    attempts: int = 0
    retried: int = 0
    data: Any = None
    error: TaskError | None = None
    fallback_used: bool = False
    verified: bool | None = None


class ContextChanged(Event, frozen=True, gc=False, tag="context_changed"):
    """A succeeded visit's writes were committed: the values as written, before any merge rule."""

    task: str
    visit: int
    changes: dict[str, Any]


class TaskSkipped(Event, frozen=True, gc=False, tag="task_skipped"):
    """The task's condition was false at its turn."""

    task: str
    reason: Literal["condition"] = "condition"


class VisitRefused(Event, frozen=True, gc=False, tag="visit_refused"):
    """A visit that would be one too many was not started."""

    task: str
    setting: Literal["max_visits", "limits.max_task_runs"]
    count: int


class VisitDiscarded(Event, frozen=True, gc=False, tag="visit_discarded"):
    """A visit ended after a jump had reset its task: it counts for nothing, the task runs again."""

    task: str
    visit: int
    status: Literal["SUCCEEDED", "FAILED"]
    attempts: int = 0
    retried: int = 0
    data: Any = None
    error: TaskError | None = None


class RollbackStarted(Event, frozen=True, gc=False, tag="rollback_started"):
    """A failed task goes back, and nothing runs any more. `tasks` are undone by their compensations, in this order."""

    task: str
    to: str | None = None
    """A task or a layer; None for the plan's start."""
    tasks: tuple[str, ...] = ()


class CompensationStarted(Event, frozen=True, gc=False, tag="compensation_started"):
    """A visit of the task is about to be undone: its compensation is called. `attempt` goes on after interruptions."""

    task: str
    visit: int
    attempt: int = 1
    parameters: dict[str, Any] | None = None
    idempotent: bool = False


class Compensated(Event, frozen=True, gc=False, tag="compensated"):
    """A compensation was judged. `changes` are its own writes to the context; they stay."""

    task: str
    visit: int
    status: Literal["SUCCEEDED", "FAILED"]
    attempts: int = 0
    retried: int = 0
    data: Any = None
    error: TaskError | None = None
    changes: dict[str, Any] = {}


class RolledBack(Event, frozen=True, gc=False, tag="rolled_back"):
    """The tasks run again, and what they wrote to the context is taken back.

    `undone` are the keys of which something was taken back, `kept` those that stay, each with the task that wrote it
    since.
    """

    task: str
    to: str | None = None
    undone: tuple[str, ...] = ()
    kept: dict[str, str] = {}


class ApprovalAsked(Event, frozen=True, gc=False, tag="approval_asked"):
    """The run needs a person's word. `approver` where a callable was there to be asked first."""

    approval: str
    kind: ApprovalKind
    task: str | None = None
    visit: int = 0
    item: int | None = None
    risk: str | None = None
    parameters: dict[str, Any] | None = None
    digest: str = ""
    expires_at: float | None = None
    approver: bool = False
    error: TaskError | None = None


class ApprovalHandedOn(Event, frozen=True, gc=False, tag="approval_handed_on"):
    """The approver callable gave no answer (or failed): a person must."""

    approval: str
    task: str | None = None
    message: str = ""


class ApprovalDecided(Event, frozen=True, gc=False, tag="approval_decided"):
    """Someone decided. `result` is the data that a person gives for a task that is done."""

    approval: str
    decision: Verdict
    task: str | None = None
    visit: int = 0
    by: str | None = None
    why: str | None = None
    result: Any = None


class DecisionIgnored(Event, frozen=True, gc=False, tag="decision_ignored"):
    """Somebody decided from afar, and when that arrived there was nothing to decide any more. `message` says why."""

    approval: str
    decision: Verdict
    task: str | None = None
    by: str | None = None
    why: str | None = None
    message: str = ""


class CriteriaJudged(Event, frozen=True, gc=False, tag="criteria_judged"):
    """At the end: the verdict on each criterion, and the run's output. `error` where one of them erred."""

    verdicts: tuple[Literal["met", "not_met", "not_judged"], ...] = ()
    output: Any = None
    error: TaskError | None = None


class PauseAsked(Event, frozen=True, gc=False, tag="pause_asked"):
    """Someone asked for a pause, or a recovery did."""

    by: str | None = None
    why: str | None = None


class CancelAsked(Event, frozen=True, gc=False, tag="cancel_asked"):
    """Someone asked for the end of the run."""

    by: str | None = None
    why: str | None = None


class LimitPassed(Event, frozen=True, gc=False, tag="limit_passed"):
    """A bound of the run was passed."""

    setting: Literal["limits.deadline", "limits.cleanup_timeout"]
    count: float


class Progress(Event, frozen=True, gc=False, tag="progress"):
    """A skill told how far it is: a share from 0 to 1."""

    task: str
    visit: int
    attempt: int
    share: float
    text: str = ""


class TaskLogged(Event, frozen=True, gc=False, tag="task_logged"):
    """A skill added a line to its task's log."""

    task: str
    visit: int
    attempt: int
    message: str
    fields: dict[str, Any] = {}


class FilterApplied(Event, frozen=True, gc=False, tag="filter_applied"):
    """A filter of the skill changed or refused parameters or a result."""

    task: str
    visit: int
    filter: str
    when: Literal["before", "after"]
    what: Literal["changed", "refused"]
    why: str = ""


class RunFinished(Event, frozen=True, gc=False, tag="run_finished"):
    """The run is in a final phase."""

    phase: Phase
    outcome: str
    reason: dict[str, Any] | None = None


AnyEvent = (
    RunStarted
    | PlanAdopted
    | RunTakenUp
    | RunForked
    | PlanRejected
    | PhaseChanged
    | TaskStarted
    | AttemptStarted
    | AttemptFailed
    | TaskInterrupted
    | CallAbandoned
    | LoopBlocked
    | TaskEvaluated
    | ContextChanged
    | TaskSkipped
    | VisitRefused
    | VisitDiscarded
    | RollbackStarted
    | CompensationStarted
    | Compensated
    | RolledBack
    | ApprovalAsked
    | ApprovalHandedOn
    | ApprovalDecided
    | DecisionIgnored
    | CriteriaJudged
    | PauseAsked
    | CancelAsked
    | LimitPassed
    | Progress
    | TaskLogged
    | FilterApplied
    | RunFinished
)
"""Every event there is."""
