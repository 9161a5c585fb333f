"""Each event about a task in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fsm_agent.core import events as ev
from fsm_agent.views.explaining.case import Case, moment
from fsm_agent.views.explaining.facts import Fact, Kind, counted, listed

_UNTOLD: Final = frozenset({ev.TaskSkipped})
"""What the facts about expressions say already."""

_THEN: Final = {
    "again": "the skill is idempotent, so that it is called again",
    "fallback": "its fallback has its turn",
    "ask": "a person must say what is to become of it",
}
_QUESTIONS: Final[dict[ev.ApprovalKind, str]] = {
    "task": "a person must agree to this visit",
    "plan": "a person must agree to the plan",
    "failed": "it failed, and a person must say what is to become of it",
    "interrupted": "it was interrupted, and a person must say what is to become of it",
    "compensation": "it could not be undone, and a person must look",
}
_VERDICTS: Final[dict[ev.Verdict, str]] = {
    "approved": "approved",
    "rejected": "rejected",
    "expired": "nobody decided in time",
    "rerun": "to be run again",
    "done": "declared done",
    "skip": "to be skipped",
    "fail": "left failed",
}


def tell(case: Case, event: ev.Event) -> Fact | None:
    """The fact that an event is; None for what is told otherwise."""
    if type(event) in _UNTOLD:
        return None
    teller = _TELLERS.get(type(event))
    if teller is None:
        return Fact("event", event.type.replace("_", " "), event.seq)
    told = teller(case, event)
    if told is None:
        return None
    kind, text = told
    return Fact(kind, text, event.seq)


_Told = tuple[Kind, str]


def _attempt_started(_: Case, _event: ev.AttemptStarted) -> None:
    """What failed or was interrupted before has said that it follows."""


def _attempt_failed(case: Case, event: ev.AttemptFailed) -> _Told:
    next_one = "its fallback had its turn" if event.then == "fallback" else f"the next one {event.delay:g} s later"
    return "attempt", f"attempt {event.attempt} failed ({case.error(event.error)}); {next_one}"


def _interrupted(_: Case, event: ev.TaskInterrupted) -> _Told:
    text = f"attempt {event.attempt} of visit {event.visit} was interrupted: its process died or lost the run"
    return "attempt", f"{text}; {_THEN[event.then]}"


def _abandoned(_: Case, event: ev.CallAbandoned) -> _Told:
    words = {"timeout": "took too long", "cancelled": "was cancelled"}
    return "attempt", f"the call of attempt {event.attempt} {words[event.why]} and went on; what it came to is dropped"


def _blocked(_: Case, event: ev.LoopBlocked) -> _Told:
    return "attempt", f"its call held up everything else for {event.seconds:g} s"


def _evaluated(case: Case, event: ev.TaskEvaluated) -> _Told:
    notes = [f"after {counted(event.attempts, 'attempt')}"] if event.attempts else []
    if event.fallback_used:
        notes.append("by its fallback")
    if event.error is not None:
        notes.append(case.error(event.error))
    return "visit", " · ".join([f"visit {event.visit}: {event.status}", *notes])


def _refused(_: Case, event: ev.VisitRefused) -> _Told:
    number = "task run" if event.setting == "limits.max_task_runs" else "visit"
    return "visit", f"{number} {event.count + 1} was not started: {event.setting} allows {event.count}"


def _discarded(case: Case, event: ev.VisitDiscarded) -> _Told:
    failed = f" ({case.error(event.error)})" if event.error is not None else ""
    text = f"visit {event.visit} ended {event.status}{failed} and counts for nothing: the task had been reset meanwhile"
    return "visit", text


def _asked(_: Case, event: ev.ApprovalAsked) -> _Told:
    notes = [f"approval {event.approval}"]
    if event.risk:
        notes.append(f"risk {event.risk}")
    if event.digest:
        notes.append(f"digest {event.digest}")
    if event.expires_at is not None:
        notes.append(f"expires {moment(event.expires_at)}")
    if event.approver:
        notes.append("the approver is asked first")
    return "approval", " · ".join([f"{_QUESTIONS[event.kind]} (visit {event.visit})", *notes])


def _handed_on(case: Case, event: ev.ApprovalHandedOn) -> _Told:
    why = f": {case.said(event.message)}" if event.message else ""
    return "approval", f"the approver left approval {event.approval} to a person{why}"


def _decided(case: Case, event: ev.ApprovalDecided) -> _Told:
    return "approval", f"approval {event.approval}: {_VERDICTS[event.decision]}{case.by(event.by, event.why)}"


def _ignored(case: Case, event: ev.DecisionIgnored) -> _Told:
    why = f" ({case.said(event.message)})" if event.message else ""
    text = f"a decision on approval {event.approval} came too late: {_VERDICTS[event.decision]}"
    return "approval", text + case.by(event.by, event.why) + why


def _changed(_: Case, event: ev.ContextChanged) -> _Told:
    return "context", f"it wrote to the context: {listed(map(repr, event.changes), len(event.changes))}"


def _filtered(case: Case, event: ev.FilterApplied) -> _Told:
    what = "its parameters" if event.when == "before" else "its result"
    return "filter", f"filter {case.said(event.filter)} {event.what} {what}" + (
        f": {case.said(event.why)}" if event.why else ""
    )


def _taken_up(case: Case, event: ev.RunTakenUp) -> _Told:
    return "driver", f"the run was taken up by {case.said(event.driver)} ({event.why})"


def _back_began(_: Case, event: ev.RollbackStarted) -> _Told:
    to = f"task or layer {event.to!r}" if event.to is not None else "the plan's start"
    undone = (
        f"undone in this order: {listed(event.tasks, len(event.tasks))}" if event.tasks else "nothing is to be undone"
    )
    return "event", f"its failure sends the run back to {to}; {undone}"


def _compensating(_: Case, event: ev.CompensationStarted) -> _Told:
    return "event", f"its compensation was called, to undo visit {event.visit}"


def _compensated(case: Case, event: ev.Compensated) -> _Told:
    error = f" ({case.error(event.error)})" if event.error is not None else ""
    return "event", f"the compensation of visit {event.visit}: {event.status}{error}"


def _back(_: Case, event: ev.RolledBack) -> _Told:
    undone = f"; taken back: {listed(event.undone, len(event.undone))}" if event.undone else ""
    kept = f"; written by others since, and kept: {listed(event.kept, len(event.kept))}" if event.kept else ""
    return "event", f"the run went back, and what lies behind runs again{undone}{kept}"


_TELLERS: Final[dict[type[ev.Event], Callable[[Case, Any], _Told | None]]] = {
    ev.TaskStarted: lambda _, event: ("visit", f"visit {event.visit} began"),
    ev.AttemptStarted: _attempt_started,
    ev.AttemptFailed: _attempt_failed,
    ev.TaskInterrupted: _interrupted,
    ev.CallAbandoned: _abandoned,
    ev.LoopBlocked: _blocked,
    ev.TaskEvaluated: _evaluated,
    ev.VisitRefused: _refused,
    ev.VisitDiscarded: _discarded,
    ev.RollbackStarted: _back_began,
    ev.CompensationStarted: _compensating,
    ev.Compensated: _compensated,
    ev.RolledBack: _back,
    ev.ApprovalAsked: _asked,
    ev.ApprovalHandedOn: _handed_on,
    ev.ApprovalDecided: _decided,
    ev.DecisionIgnored: _ignored,
    ev.ContextChanged: _changed,
    ev.FilterApplied: _filtered,
    ev.RunTakenUp: _taken_up,
}
"""How each event is told; one of another kind is told by its name."""
