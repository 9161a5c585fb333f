"""What to do next: a function of the run alone. Going on and resuming are the same call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fsm_agent.core.commands import (
    AskAboutCompensation,
    AskAboutPlan,
    AskAboutTask,
    Begin,
    BeginRollback,
    Command,
    Compensate,
    End,
    FinishRollback,
    Fire,
    Judge,
    MakePlan,
    Rest,
    StopCalls,
    Wait,
)
from fsm_agent.core.events import Phase
from fsm_agent.core.rollback import Rollback
from fsm_agent.core.run import Run

_START: Final = Fire("start")
_PLANNED: Final = Fire("planned")
_PLANNING_FAILED: Final = Fire("planning_failed")
_SETTLED: Final = Fire("settled")
_EVALUATED: Final = Fire("evaluated")
_PAUSE: Final = Fire("pause")
_RESUME: Final = Fire("resume")
_CANCEL: Final = Fire("cancel")
_ABORT: Final = Fire("abort")
_WAIT: Final = Wait()
_BEGIN_ROLLBACK: Final = BeginRollback()
_FINISH_ROLLBACK: Final = FinishRollback()


def decide(run: Run) -> Command:
    """The next command: a trigger that is due, something to start or to ask, or to wait."""
    return _BY_PHASE[run.phase](run)


def _idle(run: Run) -> Command:
    return _CANCEL if run.cancel_asked else _START


def _planning(run: Run) -> Command:
    if run.cancel_asked:
        return _CANCEL
    if run.limit_passed:
        return _ABORT
    if run.rejection is not None:
        return _PLANNING_FAILED
    if run.plan_valid:
        if run.plan_unapproved and not run.approvals.open:
            return AskAboutPlan()
        return _PLANNED if run.quiet else _WAIT
    return _PAUSE if run.pause_asked else MakePlan()


def _executing(run: Run) -> Command:
    if run.to_ask:
        return AskAboutTask(run.to_ask[0])
    if run.just_settled:
        return _SETTLED
    if run.is_ending:
        return _cleaning_up(run)
    if run.going_back is not None:
        return _going_back(run, run.going_back)
    if not run.pause_asked:
        place = run.schedule.turns.next()
        if place >= 0:
            return Begin(place)
    return _SETTLED if run.quiet else _WAIT


def _going_back(run: Run, back: Rollback) -> Command:
    """What runs is waited for; then one compensation after the other, and what fails waits for a person."""
    if run.running:
        return _WAIT
    if run.pause_asked or back.asked:
        return _SETTLED if run.quiet else _WAIT
    if not back.begun:
        return _BEGIN_ROLLBACK
    if back.failed is not None:
        return AskAboutCompensation(back.queue[0])
    return Compensate(back.queue[0]) if back.queue else _FINISH_ROLLBACK


def _cleaning_up(run: Run) -> Command:
    """Calls are stopped first; then the finalizers run, one at a time."""
    if run.running:
        return _WAIT if run.cleaning is not None and not run.cleanup_over else StopCalls()
    place = run.next_finalizer()
    return _SETTLED if place is None else Begin(place)


def _evaluating(run: Run) -> Command:
    if run.to_ask:
        return AskAboutTask(run.to_ask[0])
    if run.all_settled and run.judged is None and not (run.is_ending or run.pause_asked):
        return Judge() if not run.has_unhandled_failure else _EVALUATED
    return _EVALUATED


def _paused(run: Run) -> Command:
    """A cancel or a limit ends the run from here; with finalizers left it resumes first."""
    if run.is_ending and run.finalizer_left:
        return _RESUME
    if run.cancel_asked:
        return _CANCEL
    return _ABORT if run.limit_passed else Rest()


def _over(_: Run) -> Command:
    return End()


_BY_PHASE: Final[dict[Phase, Callable[[Run], Command]]] = {
    "idle": _idle,
    "planning": _planning,
    "executing": _executing,
    "evaluating": _evaluating,
    "paused": _paused,
    "completed": _over,
    "failed": _over,
    "cancelled": _over,
}
