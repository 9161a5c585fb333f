"""The guards of the machine: small named predicates over a run. Synchronous, without I/O, changing nothing."""

from __future__ import annotations

from typing import Protocol

from fsm_agent.core.events import Phase


class Guarded(Protocol):
    """What the guards read of a run."""

    phase: Phase
    passed_guard: str | None

    @property
    def plan_valid(self) -> bool:
        """A plan passed all checks, and was not rejected."""

    @property
    def plan_unapproved(self) -> bool:
        """A person must agree to the plan, and has not yet."""

    @property
    def just_settled(self) -> bool:
        """A task has settled since the last evaluation."""

    @property
    def quiet(self) -> bool:
        """Nothing runs, and nobody in this process is being asked."""

    @property
    def can_start(self) -> bool:
        """Something could be started now."""

    @property
    def any_ready(self) -> bool:
        """Some task is ready, whatever it waits for."""

    @property
    def all_settled(self) -> bool:
        """Every task is settled."""

    @property
    def cancel_asked(self) -> bool:
        """Someone asked for the end of the run."""

    @property
    def aborting(self) -> bool:
        """An unhandled failure aborts the run, or a limit was passed."""

    @property
    def limit_passed(self) -> bool:
        """A limit of the run was passed."""

    @property
    def finalizer_left(self) -> bool:
        """A finalizer still has to run before the run may end."""

    @property
    def has_unhandled_failure(self) -> bool:
        """Every task is settled, and a failure among them is not handled."""

    @property
    def pause_asked(self) -> bool:
        """Someone asked for a pause."""

    @property
    def waits_for_person(self) -> bool:
        """A decision is open."""

    @property
    def executed(self) -> bool:
        """The plan was taken up: the run has been executing."""

    @property
    def replan_due(self) -> bool:
        """A new plan was asked for, and the budget for it is not spent."""

    @property
    def criteria_hold(self) -> bool | None:
        """Whether every judged criterion holds; None before they were judged."""


def plan_awaits_approval(run: Guarded) -> bool:
    """The plan is valid, must be approved by a person, and is not yet."""
    return run.plan_valid and run.plan_unapproved


def plan_is_valid(run: Guarded) -> bool:
    """The plan is valid."""
    return run.plan_valid


def no_valid_plan(run: Guarded) -> bool:
    """There is no valid plan, or it was rejected."""
    return not run.plan_valid


def something_to_judge(run: Guarded) -> bool:
    """A task has just settled, or none runs and none can be started."""
    return run.just_settled or (run.quiet and not run.can_start)


def cancel_is_done(run: Guarded) -> bool:
    """Cancel was asked, nothing runs, and no finalizer is left."""
    return run.cancel_asked and run.quiet and not run.finalizer_left


def run_has_failed(run: Guarded) -> bool:
    """An abort or a limit has run its course; or all is settled with a failure not handled; or the run is stalled."""
    if not run.quiet:
        return False
    if run.aborting:
        return not run.finalizer_left
    return run.has_unhandled_failure or is_stalled(run)


def is_stalled(run: Guarded) -> bool:
    """Nothing runs, can start, or waits, and yet a task is not settled. A bug of the engine, never of a plan."""
    if run.any_ready or run.all_settled or run.waits_for_person or run.cancel_asked or run.pause_asked:
        return False
    return run.quiet


def replan_is_due(run: Guarded) -> bool:
    """A replan is due and the budget for it is not spent."""
    return run.replan_due


def pause_is_due(run: Guarded) -> bool:
    """A pause was asked and nothing runs, or nothing can run until a person decides."""
    if not (run.pause_asked or run.waits_for_person) or run.cancel_asked or run.aborting or not run.quiet:
        return False
    return run.pause_asked or not run.can_start


def all_settled_and_criteria_hold(run: Guarded) -> bool:
    """Every task is settled and every criterion that was judged holds."""
    return run.all_settled and run.criteria_hold is True


def criterion_does_not_hold(run: Guarded) -> bool:
    """Every task is settled and a criterion does not hold."""
    return run.all_settled and run.criteria_hold is False


def left_in_planning(run: Guarded) -> bool:
    """The pause came before the plan was taken up."""
    return not left_in_executing(run)


def left_in_executing(run: Guarded) -> bool:
    """The plan was taken up before the pause."""
    return run.plan_valid and not run.plan_unapproved and run.executed


def no_finalizer_left(run: Guarded) -> bool:
    """No finalizer is left."""
    return not run.finalizer_left


def limit_passed_and_no_finalizer_left(run: Guarded) -> bool:
    """A limit was passed, and no finalizer is left."""
    return run.limit_passed and not run.finalizer_left
