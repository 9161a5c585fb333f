"""The engine against the slow reference interpreter, and against plans whose verdicts were worked out by hand."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsm_agent.core.result import RunResult
from fsm_agent.engine.simulation import simulate
from fsm_agent.plan.catalog import ANY_SKILL
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.plan.loader import check_plan
from tests.reference import interpret, outcomes_for, plans, random_plan, raw_plans, validity

DATA = Path(__file__).parent.parent / "data"


def cases(file: str, *keys: str) -> list[Any]:
    document = json.loads((DATA / file).read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["name"]) for key in keys for case in document[key]]


def compiled(plan: dict[str, Any]) -> CompiledPlan:
    checked = check_plan(plan, ANY_SKILL)
    assert checked.compiled is not None, checked.problems
    return checked.compiled


def verdict_of(result: RunResult) -> dict[str, Any]:
    return {
        "phase": result.phase,
        "trace": [tuple(entry) for entry in result.trace],
        # A paused run shows READY tasks; the page has no word on that, the reference calls them PENDING.
        "status": {
            task: (task_result.status.replace("READY", "PENDING"), task_result.reason)
            for task, task_result in result.tasks.items()
        },
        "visits": {task: task_result.visits for task, task_result in result.tasks.items()},
        "context": result.context,
        "reason_kind": result.reason and result.reason["kind"],
        "outcome": result.outcome,
        "compensated": [task for each in result.rollbacks for task in each["compensated"]],
        "kept": [key for each in result.rollbacks for key in sorted(each["kept"])],
    }


def expected(case: dict[str, Any]) -> dict[str, Any]:
    want = dict(case["expect"])
    if "trace" in want:
        want["trace"] = [tuple(entry) for entry in want["trace"]]
    if "status" in want:
        want["status"] = {task: tuple(status) for task, status in want["status"].items()}
    return want


@pytest.mark.parametrize("case", cases("natural_plans.json", "cases"))
def test_a_natural_plan_comes_out_as_the_page_says(case: dict[str, Any]) -> None:
    got = verdict_of(simulate(compiled(case["plan"]), case["outcomes"]))
    want = expected(case)
    assert {key: got[key] for key in want} == want


@pytest.mark.parametrize("case", cases("hand_cases.json", "cases", "choices"))
def test_a_plan_worked_out_by_hand_comes_out_so(case: dict[str, Any]) -> None:
    got = verdict_of(simulate(compiled(case["plan"]), case["outcomes"]))
    want = expected(case)
    assert {key: got[key] for key in want} == want


def both(plan: dict[str, Any], outcomes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    reference = interpret(plan, outcomes)
    want = {
        "phase": reference.phase,
        "trace": [tuple(entry) for entry in reference.trace],
        "status": dict(reference.status),
        "visits": reference.visits,
        "context": reference.context,
        "reason_kind": reference.reason_kind,
        "outcome": reference.outcome,
        "compensated": reference.compensated,
        "kept": reference.kept,
    }
    return verdict_of(simulate(compiled(plan), outcomes)), want


@given(st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_plans_end_as_in_the_reference_interpreter(data: st.DataObject) -> None:
    plan = data.draw(plans())
    got, want = both(plan, data.draw(outcomes_for(plan)))
    assert got == want


@pytest.mark.parametrize("block", range(8))
def test_seeded_plans_end_as_in_the_reference_interpreter(block: int) -> None:
    for seed in range(block * 250, block * 250 + 250):
        plan, outcomes = random_plan(random.Random(seed))
        got, want = both(plan, outcomes)
        assert got == want, f"seed {seed}"


@pytest.mark.parametrize("seed", [504, 1423, 33472])
def test_plans_on_which_the_two_once_differed_end_alike(seed: int) -> None:
    plan, outcomes = random_plan(random.Random(seed))
    got, want = both(plan, outcomes)
    assert got == want


@given(raw_plans())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_plans_are_refused_for_cycles_and_loops_without_exit(plan: dict[str, Any]) -> None:
    found = {problem.rule for problem in check_plan(plan, ANY_SKILL).problems}
    assert found & {"cycle", "no_exit_loop"} == validity(plan)


@given(st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_script_gives_the_same_run_twice(data: st.DataObject) -> None:
    plan = data.draw(plans())
    outcomes = data.draw(outcomes_for(plan))
    shape = compiled(plan)
    assert simulate(shape, outcomes) == simulate(shape, outcomes)
