"""The machine's table: each row fires, each absent pair is refused, and a refusal moves nothing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

import pytest

from fsm_agent.core.events import Phase, Trigger
from fsm_agent.core.machine import FINAL, PHASES, TABLE, Row, fire, legal_triggers, stand
from fsm_agent.errors import IllegalTransition


@dataclass
class StandIn:
    """Just what the guards read of a run."""

    phase: Phase = "idle"
    passed_guard: str | None = None
    plan_valid: bool = False
    plan_unapproved: bool = False
    just_settled: bool = False
    quiet: bool = False
    can_start: bool = True
    any_ready: bool = True
    all_settled: bool = False
    cancel_asked: bool = False
    aborting: bool = False
    limit_passed: bool = False
    finalizer_left: bool = False
    has_unhandled_failure: bool = False
    pause_asked: bool = False
    waits_for_person: bool = False
    replan_due: bool = False
    executed: bool = False
    criteria_hold: bool | None = None


# For each row: a state in which its guard holds, and none before it in the table does.
STATES: dict[tuple[str, str, str, str | None], dict[str, Any]] = {
    ("start", "idle", "planning", None): {},
    ("planned", "planning", "paused", "plan_awaits_approval"): {"plan_valid": True, "plan_unapproved": True},
    ("planned", "planning", "executing", "plan_is_valid"): {"plan_valid": True},
    ("planning_failed", "planning", "failed", "no_valid_plan"): {},
    ("settled", "executing", "evaluating", "something_to_judge"): {"just_settled": True},
    ("evaluated", "evaluating", "cancelled", "cancel_is_done"): {"cancel_asked": True, "quiet": True},
    ("evaluated", "evaluating", "failed", "run_has_failed"): {"aborting": True, "quiet": True},
    ("evaluated", "evaluating", "planning", "replan_is_due"): {"replan_due": True},
    ("evaluated", "evaluating", "paused", "pause_is_due"): {"pause_asked": True, "quiet": True},
    ("evaluated", "evaluating", "completed", "all_settled_and_criteria_hold"): {
        "all_settled": True,
        "criteria_hold": True,
    },
    ("evaluated", "evaluating", "failed", "criterion_does_not_hold"): {"all_settled": True, "criteria_hold": False},
    ("evaluated", "evaluating", "executing", None): {},
    ("pause", "planning", "paused", None): {},
    ("resume", "paused", "planning", "left_in_planning"): {},
    ("resume", "paused", "executing", "left_in_executing"): {"plan_valid": True, "executed": True},
    ("cancel", "idle", "cancelled", "no_finalizer_left"): {},
    ("cancel", "planning", "cancelled", "no_finalizer_left"): {},
    ("cancel", "paused", "cancelled", "no_finalizer_left"): {},
    ("abort", "planning", "failed", "limit_passed_and_no_finalizer_left"): {"limit_passed": True},
    ("abort", "paused", "failed", "limit_passed_and_no_finalizer_left"): {"limit_passed": True},
}

# For each guarded (phase, trigger): a state in which no guard holds.
REFUSED: dict[tuple[str, str], dict[str, Any]] = {
    ("planning", "planned"): {},
    ("planning", "planning_failed"): {"plan_valid": True},
    ("executing", "settled"): {"quiet": True, "can_start": True},
    ("idle", "cancel"): {"finalizer_left": True},
    ("planning", "cancel"): {"finalizer_left": True},
    ("paused", "cancel"): {"finalizer_left": True},
    ("planning", "abort"): {"limit_passed": True, "finalizer_left": True},
    ("paused", "abort"): {"limit_passed": False},
}

PRESENT = {(row.source, row.trigger) for row in TABLE}
ABSENT = [pair for pair in product(PHASES, get_args(Trigger)) if pair not in PRESENT]


def key(row: Row) -> tuple[str, str, str, str | None]:
    return (row.trigger, row.source, row.dest, row.guard)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.source}-{row.trigger}-{row.dest}-{row.guard}")
def test_every_row_fires_by_its_own_guard(row: Row) -> None:
    run = StandIn(phase=row.source, **STATES[key(row)])
    assert fire(run, row.trigger) == row.guard
    assert run.phase == row.dest


def test_no_row_is_without_a_state_that_fires_it() -> None:
    assert set(STATES) == {key(row) for row in TABLE}


@pytest.mark.parametrize(("phase", "trigger"), ABSENT, ids=lambda value: value)
def test_every_absent_pair_is_refused(phase: Phase, trigger: Trigger) -> None:
    run = StandIn(phase=phase, quiet=True, plan_valid=True, just_settled=True)
    with pytest.raises(IllegalTransition) as refused:
        fire(run, trigger)
    assert run.phase == phase
    assert (refused.value.phase, refused.value.trigger) == (phase, trigger)
    assert refused.value.legal == legal_triggers(phase)


@pytest.mark.parametrize(("phase", "trigger"), REFUSED, ids=lambda value: value)
def test_a_trigger_whose_guards_all_fail_is_refused(phase: Phase, trigger: Trigger) -> None:
    run = StandIn(phase=phase, **REFUSED[phase, trigger])
    with pytest.raises(IllegalTransition) as refused:
        fire(run, trigger)
    assert run.phase == phase
    assert set(refused.value.guards) == {row.guard for row in TABLE if (row.source, row.trigger) == (phase, trigger)}
    assert all(guard in str(refused.value) for guard in refused.value.guards)


def test_a_trigger_that_nobody_knows_is_refused() -> None:
    run = StandIn()
    with pytest.raises(IllegalTransition, match="explode"):
        fire(run, "explode")  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize("phase", sorted(FINAL))
def test_final_phases_have_no_way_out(phase: Phase) -> None:
    assert legal_triggers(phase) == ()


def test_a_refusal_says_what_would_have_been_legal() -> None:
    with pytest.raises(IllegalTransition, match=r"'settled' is illegal in phase 'idle'.*legal: start, cancel"):
        fire(StandIn(), "settled")


def test_one_machine_serves_all_runs() -> None:
    first, second = StandIn(), StandIn()
    fire(first, "start")
    assert (first.phase, second.phase) == ("planning", "idle")


@pytest.mark.parametrize("phase", PHASES)
def test_a_run_that_is_taken_up_stands_in_its_phase_and_no_guard_is_asked(phase: Phase) -> None:
    run = StandIn()
    stand(run, phase)
    assert (run.phase, run.passed_guard) == (phase, None)


def test_a_run_cannot_stand_in_a_phase_that_is_none() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        stand(StandIn(), "nowhere")  # type: ignore[arg-type] # that is the point
