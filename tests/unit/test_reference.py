"""The reference interpreter: natural plans, cases worked out by hand, and what must hold of every random plan."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import Graph, Verdict, interpret, outcomes_for, plans, random_plan, raw_plans, validity
from tests.reference.expression import ExpressionError, evaluate

DATA = Path(__file__).parents[1] / "data"
NATURAL = json.loads((DATA / "natural_plans.json").read_text(encoding="utf-8"))["cases"]
HAND = json.loads((DATA / "hand_cases.json").read_text(encoding="utf-8"))

SETTLED = {"SUCCEEDED", "FAILED", "SKIPPED"}
steady = settings(max_examples=150, deadline=None, derandomize=True, database=None)


def named(case: dict[str, Any]) -> str:
    return str(case["name"])


def as_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict with lists for tuples, as the data files have it."""
    document: dict[str, Any] = json.loads(json.dumps(asdict(verdict)))
    return document


def check(case: dict[str, Any]) -> None:
    verdict = as_json(interpret(case["plan"], case["outcomes"]))
    assert {key: verdict[key] for key in case["expect"]} == case["expect"]
    assert validity(case["plan"]) == set()


@pytest.mark.parametrize("case", NATURAL, ids=named)
def test_a_natural_plan_ends_as_given(case: dict[str, Any]) -> None:
    check(case)


@pytest.mark.parametrize("case", HAND["cases"], ids=named)
def test_a_case_worked_out_by_hand_ends_as_given(case: dict[str, Any]) -> None:
    check(case)


@pytest.mark.parametrize("case", HAND["choices"], ids=named)
def test_an_open_question_is_answered_as_chosen(case: dict[str, Any]) -> None:
    check(case)


def assert_sound(plan: dict[str, Any], verdict: Verdict) -> None:
    """What the page promises of every run, whatever the plan."""
    assert verdict.phase in {"completed", "failed", "paused"}
    assert verdict.reason_kind != "stalled"
    statuses = {status for status, _ in verdict.status.values()}
    assert statuses <= SETTLED | {"PENDING", "WAITING_APPROVAL"}
    if verdict.phase == "completed":
        assert statuses <= SETTLED
    assert ("WAITING_APPROVAL" in statuses) == (verdict.phase == "paused")
    assert (verdict.reason_kind is None) == (verdict.phase != "failed")
    started = Counter(name for name, what in verdict.trace if what != "skip")
    assert {name: count for name, count in verdict.visits.items() if count} == started
    assert all(count <= limit(plan, name) for name, count in started.items())


def limit(plan: dict[str, Any], name: str) -> int:
    return next(int(task.get("max_visits", 10)) for task in plan["tasks"] if task["id"] == name)


def test_random_plans_always_end_soundly_and_the_same_twice() -> None:
    for seed in range(600):
        plan, outcomes = random_plan(random.Random(seed))
        verdict = interpret(plan, outcomes)
        assert_sound(plan, verdict)
        assert interpret(plan, outcomes) == verdict
        assert random_plan(random.Random(seed)) == (plan, outcomes)


@steady
@given(st.data())
def test_drawn_plans_always_end_soundly(data: st.DataObject) -> None:
    plan = data.draw(plans())
    outcomes = data.draw(outcomes_for(plan))
    assert_sound(plan, interpret(plan, outcomes))


@steady
@given(plans())
def test_drawn_plans_are_valid_and_of_1_to_12_tasks(plan: dict[str, Any]) -> None:
    assert validity(plan) == set()
    assert 1 <= len(plan["tasks"]) <= 12


@steady
@given(raw_plans())
def test_the_validity_of_a_raw_plan_is_a_set_of_two_rules(plan: dict[str, Any]) -> None:
    assert validity(plan) <= {"cycle", "no_exit_loop"}


def features(plan: dict[str, Any], verdict: Verdict) -> set[str]:
    """What of the interesting kinds happened in a run."""
    graph = Graph(plan)
    reasons = {reason for _, reason in verdict.status.values()}
    statuses = {status for status, _ in verdict.status.values()}
    aborted = verdict.phase == "failed" and "PENDING" in statuses
    found = {
        "loop fired": any(count > 1 for count in verdict.visits.values()),
        "loop of several fired": any(
            len(loop) > 1 and any(verdict.visits[n] > 1 for n in loop) for loop in graph.loops
        ),
        "several jumps in a loop": any(sum(b.source in loop for b in graph.back) > 1 for loop in graph.loops),
        "failure handled": verdict.phase == "completed" and "FAILED" in statuses,
        "failure not handled": verdict.phase == "failed" and verdict.reason_kind not in {"limit", "criterion"},
        "limit passed": verdict.reason_kind == "limit",
        "finalizer after abort": aborted and verdict.trace[-1][0] in graph.finalizers,
        "long": len(verdict.trace) > 12,
        verdict.phase: True,
    }
    return {name for name, happened in found.items() if happened} | {reason for reason in reasons if reason}


def test_random_plans_are_rich() -> None:
    shares: Counter[str] = Counter()
    for seed in range(400):
        plan, outcomes = random_plan(random.Random(seed))
        shares.update(features(plan, interpret(plan, outcomes)))
    least = {
        "loop fired": 80,
        "loop of several fired": 50,
        "several jumps in a loop": 40,
        "failure handled": 60,
        "failure not handled": 60,
        "limit passed": 20,
        "finalizer after abort": 20,
        "long": 20,
        "paused": 8,
        "completed": 150,
        "not_taken": 100,
        "upstream_failed": 50,
        "optional": 50,
        "condition": 80,
    }
    assert {name: shares[name] for name, count in least.items() if shares[name] < count} == {}


def task(name: str, **keys: Any) -> dict[str, Any]:
    return {"id": name, "skill": "stub", **keys}


STRUCTURES: list[tuple[str, list[dict[str, Any]], set[str]]] = [
    ("a chain", [task("a"), task("b", dependencies=["a"])], set()),
    ("a dependency on a later task", [task("a", dependencies=["b"]), task("b")], set()),
    ("a self dependency", [task("a", dependencies=["a"])], {"cycle"}),
    ("two dependencies", [task("a", dependencies=["b"]), task("b", dependencies=["a"])], {"cycle"}),
    ("a soft cycle", [task("a", soft_dependencies=["b"]), task("b", dependencies=["a"])], {"cycle"}),
    (
        "a branch to an own dependency down the list",
        [task("a", dependencies=["b"], on_failure="b"), task("b")],
        {"cycle"},
    ),
    ("a self loop by on_failure", [task("a", on_failure="a")], set()),
    ("a self loop by on_success", [task("a", on_success="a")], {"no_exit_loop"}),
    ("the same with a condition", [task("a", on_success="a", condition="context['n'] < 2")], set()),
    ("the same with a way out", [task("a", on_success="a", on_failure="b"), task("b")], set()),
    ("the same as a decision", [{"id": "a", "type": "condition", "verification": "flag", "on_success": "a"}], set()),
    ("both branches to itself", [task("a", on_success="a", on_failure="a")], {"no_exit_loop"}),
    (
        "both branches of a decision back",
        [
            task("a"),
            {
                "id": "b",
                "type": "condition",
                "verification": "flag",
                "dependencies": ["a"],
                "on_success": "a",
                "on_failure": "b",
            },
        ],
        {"no_exit_loop"},
    ),
    ("a jump back by on_success", [task("a"), task("b", dependencies=["a"], on_success="a")], {"no_exit_loop"}),
    (
        "a jump back past a soft dependency",
        [task("a"), task("b", soft_dependencies=["a"], on_success="a")],
        {"no_exit_loop"},
    ),
    ("a jump back by on_failure", [task("a"), task("b", dependencies=["a"], on_failure="a")], set()),
    ("a loop entered by on_failure", [task("test", on_failure="fix"), task("fix", on_success="test")], set()),
    ("a branch up the list on no cycle", [task("a"), task("b", on_success="a")], set()),
    (
        "a loop whose other jump can stay away",
        [
            task("u"),
            task("y"),
            task("x", dependencies=["u"], on_success="y", condition="flag"),
            task("t", dependencies=["y"], on_success="u"),
        ],
        set(),
    ),
]


@pytest.mark.parametrize(("name", "tasks", "expected"), STRUCTURES, ids=[row[0] for row in STRUCTURES])
def test_validity_of_a_structure(name: str, tasks: list[dict[str, Any]], expected: set[str]) -> None:
    assert validity({"goal": name, "tasks": tasks}) == expected


def test_a_cycle_of_an_implied_edge_is_a_cycle() -> None:
    tasks = [task("a", dependencies=["c"]), task("b"), task("c")]
    assert validity({"goal": "implied", "flow": "sequential", "tasks": tasks}) == {"cycle"}
    assert validity({"goal": "given", "tasks": tasks}) == set()


NAMES = {"context": {"n": 2, "s": "x", "items": [1, 2], "none": None}, "n": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("context['n'] + 1 == 3", True),
        ("context.get('missing', 7)", 7),
        ("context.get('missing')", None),
        ("'n' in context and 'm' not in context", True),
        ("context.items[1] * n - -1", 5),
        ("1 < n < 2", False),
        ("'x' in context.s", True),
        ("len(context.items)", ExpressionError),
        ("0 < n <= 2", True),
        ("not context.s", False),
        ("context.none is None", True),
        ("n or missing", 2),
        ("missing", ExpressionError),
        ("context['missing']", ExpressionError),
        ("context.none > 1", ExpressionError),
        ("context.s < n", ExpressionError),
        ("context.none.field", ExpressionError),
        ("n / 0", ExpressionError),
        ("n + 'x'", ExpressionError),
        ("n ==", ExpressionError),
    ],
)
def test_an_expression_has_a_value_or_errs(text: str, value: Any) -> None:
    if value is ExpressionError:
        with pytest.raises(ExpressionError):
            evaluate(text, NAMES)
    else:
        assert evaluate(text, NAMES) == value
