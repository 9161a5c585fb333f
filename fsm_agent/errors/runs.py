"""Errors of runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from fsm_agent.errors.root import FsmAgentError


class IllegalTransition(FsmAgentError):
    """A trigger that does not exist in this phase, or none of whose guards holds. The phase is unchanged.

    `legal` are the triggers that the phase has; `guards` are those that were tried and refused.
    """

    code = "illegal_transition"

    def __init__(
        self, phase: str, trigger: str, legal: Sequence[str], guards: Sequence[str] = (), detail: str = ""
    ) -> None:
        self.phase = phase
        self.trigger = trigger
        self.legal = tuple(legal)
        self.guards = tuple(guards)
        if detail:
            why = detail
        elif guards:
            why = f"none of its guards holds ({', '.join(guards)})"
        else:
            why = "the table has no such row"
        could = ", ".join(self.legal) or "nothing: the phase is final"
        super().__init__(f"trigger {trigger!r} is illegal in phase {phase!r}: {why}; legal: {could}")


class RunError(FsmAgentError):
    """Something about a run."""

    code = "run"


class UnknownRun(RunError):
    """No run of that id is known here."""

    code = "unknown_run"


class RunExists(RunError):
    """A run of that id is there already."""

    code = "run_exists"


class RunNotActive(RunError):
    """The run has ended, or is driven already."""

    code = "run_not_active"


class DecisionRefused(RunError):
    """A decision that fits no waiting approval, fits several, or comes second."""

    code = "decision_refused"


class RunHeld(RunError):
    """Another process drives the run. `holder` says who, `until` when its lease runs out (seconds since 1970)."""

    code = "run_held"

    def __init__(self, run_id: str, holder: str, until: float) -> None:
        self.run_id = run_id
        self.holder = holder
        self.until = until
        moment = datetime.fromtimestamp(until, UTC).isoformat(timespec="seconds")
        super().__init__(
            f"run {run_id!r} is driven by {holder}, whose lease holds until {moment}",
            hint="pause or cancel it, or wait: a driver that is gone loses its lease then",
        )


class LeaseLost(RunError):
    """Another process has taken the run over. This one can write nothing more of it, and has stopped what it ran."""

    code = "lease_lost"

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"run {run_id!r} was taken over by another process", hint="its journal tells how it goes on there"
        )


class MissingSecret(RunError):
    """A run cannot go on before its secret inputs are given again: they are in no store. `names` are those missing."""

    code = "missing_secret"

    def __init__(self, run_id: str, names: Sequence[str], ways: str) -> None:
        self.run_id = run_id
        self.names = tuple(names)
        inputs = "input" if len(self.names) == 1 else "inputs"
        super().__init__(
            f"run {run_id!r} needs its secret {inputs} again: {', '.join(self.names)}; secrets are not stored",
            hint=ways,
        )


class UnknownTask(RunError):
    """The run's plan has no task of that id, or the run has no plan yet. `suggestions` are up to two near ids."""

    code = "unknown_task"

    def __init__(self, message: str, *, suggestions: Sequence[str] = (), hint: str = "") -> None:
        self.suggestions = tuple(suggestions)
        super().__init__(message, hint=hint)
