"""The law: the phases of a run, and the one table of transitions between them.

`transitions` is the machine. One instance serves all runs (building one is dear, and a run needs none of its own): a
run is only a model with a `phase`. Guards are predicates over the run, tried in the order of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast, get_args

from transitions import Event, EventData, Machine, MachineError, Transition

from fsm_agent.core import guards
from fsm_agent.core.events import Phase, Trigger
from fsm_agent.core.guards import Guarded
from fsm_agent.errors import IllegalTransition

Guard = Callable[[Guarded], bool]

PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
FINAL: Final[frozenset[Phase]] = frozenset({"completed", "failed", "cancelled"})
"""Phases that no trigger leaves."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: in `source`, `trigger` leads to `dest` if the guard holds (or there is none)."""

    trigger: Trigger
    source: Phase
    dest: Phase
    predicate: Guard | None = None

    @property
    def guard(self) -> str | None:
        """The guard's name."""
        return self.predicate.__name__ if self.predicate else None


TABLE: Final[tuple[Row, ...]] = (
    Row("start", "idle", "planning"),
    Row("planned", "planning", "paused", guards.plan_awaits_approval),
    Row("planned", "planning", "executing", guards.plan_is_valid),
    Row("planning_failed", "planning", "failed", guards.no_valid_plan),
    Row("settled", "executing", "evaluating", guards.something_to_judge),
    Row("evaluated", "evaluating", "cancelled", guards.cancel_is_done),
    Row("evaluated", "evaluating", "failed", guards.run_has_failed),
    Row("evaluated", "evaluating", "planning", guards.replan_is_due),
    Row("evaluated", "evaluating", "paused", guards.pause_is_due),
    Row("evaluated", "evaluating", "completed", guards.all_settled_and_criteria_hold),
    Row("evaluated", "evaluating", "failed", guards.criterion_does_not_hold),
    Row("evaluated", "evaluating", "executing"),
    Row("pause", "planning", "paused"),
    Row("resume", "paused", "planning", guards.left_in_planning),
    Row("resume", "paused", "executing", guards.left_in_executing),
    Row("cancel", "idle", "cancelled", guards.no_finalizer_left),
    Row("cancel", "planning", "cancelled", guards.no_finalizer_left),
    Row("cancel", "paused", "cancelled", guards.no_finalizer_left),
    Row("abort", "planning", "failed", guards.limit_passed_and_no_finalizer_left),
    Row("abort", "paused", "failed", guards.limit_passed_and_no_finalizer_left),
)


def _nowhere(_: Any) -> None:
    """Before the machine is built."""


class GuardedTransition(Transition):
    """The library's transition, through its own hook: a guard, which leaves its name with the run, and no callbacks.

    Work is never done in callbacks, so that none need be looked for: that makes a refused row cheap, and half of a
    trigger's cost goes. A guard goes in as a function, never as a name: the library imports names that are no methods.
    """

    def __init__(self, *args: Any, guard: Guard | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.guard = guard
        self._guard_name = guard.__name__ if guard is not None else None
        self.move: Callable[[Any], None] = _nowhere
        """The library's own way to set a model's state, to where this leads; there once the machine is built."""

    def execute(self, event_data: EventData) -> bool:
        """Take the transition if its guard holds."""
        return self.lets(event_data.model)

    def lets(self, run: Any) -> bool:
        """The same: of what the library hands over only the model, which is the run, is wanted."""
        if self.guard is not None and not self.guard(run):
            return False
        run.passed_guard = self._guard_name
        self.move(run)
        return True


class _PlainEvent(Event):
    """The library's trigger without what this machine has none of: a queue, and callbacks around each event.

    It tries the library's own transitions for the phase, in their order, and says so as the library does.
    """

    def trigger(self, model: Any, *_args: Any, **_kwargs: Any) -> bool:
        """Take the first transition that lets it. Raises MachineError where the phase has none for this trigger."""
        transitions: list[Any] | None = self.transitions.get(model.phase)
        if not transitions:
            raise MachineError(f"no transition for {self.name!r} in phase {model.phase!r}")
        for transition in transitions:  # noqa: SIM110 - `any` takes twice as long, and each task fires twice
            if transition.lets(model):
                return True
        return False


class _PhaseMachine(Machine):
    transition_cls = GuardedTransition
    event_cls = _PlainEvent


def _build() -> Machine:
    machine = _PhaseMachine(
        model=None, states=list(PHASES), initial=None, auto_transitions=False, model_attribute="phase"
    )
    for row in TABLE:
        machine.add_transition(row.trigger, row.source, row.dest, guard=row.predicate)
    for event in machine.events.values():
        transitions: list[Any] = [each for rows in event.transitions.values() for each in rows]
        for transition in transitions:
            transition.move = partial(machine.set_state, machine.get_state(transition.dest))
    return machine


_MACHINE: Final = _build()
_EVENTS: Final = _MACHINE.events
_ROWS: Final[dict[tuple[str, str], tuple[Row, ...]]] = {
    (row.source, row.trigger): tuple(r for r in TABLE if (r.source, r.trigger) == (row.source, row.trigger))
    for row in TABLE
}


def legal_triggers(phase: Phase) -> tuple[Trigger, ...]:
    """The triggers that the table has for a phase, in its order."""
    return tuple(dict.fromkeys(row.trigger for row in TABLE if row.source == phase))


def fire(run: Guarded, trigger: Trigger) -> str | None:
    """Fire a trigger on the run: the library moves it. Returns the name of the guard that let it through, if any.

    Raises IllegalTransition, with the phase unchanged, if the table has no such row or none of its guards holds.
    """
    event = _EVENTS.get(trigger)
    try:
        if event is not None and event.trigger(run):
            return run.passed_guard
    except MachineError:
        pass
    run.passed_guard = None
    raise _illegal(run, trigger)


def stand(run: Guarded, phase: Phase) -> None:
    """Put a run that was folded before into the phase in which it stood then. Raises ValueError if there is none such.

    No trigger is fired: those that led there were, when the run was folded.
    """
    _MACHINE.set_state(phase, run)


def _illegal(run: Guarded, trigger: str) -> IllegalTransition:
    tried = [row.guard for row in _ROWS.get((run.phase, cast("Trigger", trigger)), ()) if row.guard]
    return IllegalTransition(run.phase, trigger, legal_triggers(run.phase), tried)
