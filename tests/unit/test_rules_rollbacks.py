"""Rules about rollbacks: where they lead, and words that have no effect."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.errors import Problem
from fsm_agent.plan.catalog import ANY_SKILL, Catalog
from fsm_agent.plan.loader import check_plan
from fsm_agent.skills.declaration import skill
from fsm_agent.skills.registry import SkillRegistry


def task(name: str, *dependencies: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "skill": "s", "dependencies": list(dependencies), **more}


def problems(*tasks: dict[str, Any], catalog: Catalog = ANY_SKILL, **plan: Any) -> list[Problem]:
    return list(check_plan({"tasks": list(tasks), **plan}, catalog).problems)


BACK = {"recovery": "rollback"}


@pytest.mark.parametrize(
    "tasks",
    [
        [task("a"), task("b", "a", **BACK)],
        [task("a"), task("b", "a", **BACK, rollback_to="a")],
        [task("a"), task("b", "a", **BACK, rollback_to="b")],
        [task("a", layer="l"), task("b", layer="l"), task("c", "b", **BACK, rollback_to="l")],
        [task("a", on_failure="b"), task("b", **BACK, rollback_to="a", compensation="undo")],
        [task("a"), {"id": "b", "skill": "s", "soft_dependencies": ["a"], **BACK, "rollback_to": "a"}],
    ],
)
def test_a_way_back_to_what_comes_before_is_fine(tasks: list[dict[str, Any]]) -> None:
    assert problems(*tasks) == []


def test_a_way_back_to_nothing_is_told_with_the_nearest_task_or_layer() -> None:
    [one] = problems(task("search", layer="book"), task("b", "search", **BACK, rollback_to="serch"))
    [other] = problems(task("search", layer="book"), task("b", "search", **BACK, rollback_to="boook"))
    assert [(p.rule, p.task, p.field, p.hint) for p in (one, other)] == [
        ("unknown_target", "b", "rollback_to", "did you mean 'search'?"),
        ("unknown_target", "b", "rollback_to", "did you mean 'book'?"),
    ]


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([task("a"), task("b", **BACK, rollback_to="a")], "nothing leads from task 'a' to this task"),
        ([task("a", layer="l"), task("b", **BACK, rollback_to="l")], "nothing leads from layer 'l' to this task"),
        ([task("a", layer="a"), task("b", "a", **BACK, rollback_to="a")], "'a' is both a task and a layer"),
    ],
)
def test_a_way_back_that_does_not_lead_here_again_is_refused(tasks: list[dict[str, Any]], words: str) -> None:
    [problem] = problems(*tasks)
    assert (problem.rule, problem.severity, problem.task, problem.field) == (
        "bad_rollback", "error", "b", "rollback_to",
    )  # fmt: skip
    assert words in problem.message
    assert problem.hint


def test_a_way_back_of_a_task_that_never_rolls_back_is_a_warning() -> None:
    [problem] = problems(task("a"), task("b", "a", rollback_to="a"))
    assert (problem.rule, problem.severity, problem.field) == ("no_rollback", "warning", "rollback_to")
    assert problems(task("a"), task("b", "a", rollback_to="a"), recovery="rollback") == []


def test_a_compensation_that_no_rollback_reaches_is_a_warning() -> None:
    undone = {"compensation": "undo"}
    [problem] = problems(task("a", **undone), task("b", "a", **undone), task("c", "b", **BACK, rollback_to="b"))
    assert (problem.rule, problem.severity, problem.task, problem.field) == (
        "no_rollback", "warning", "a", "compensation",
    )  # fmt: skip


def test_a_decision_has_nothing_to_undo() -> None:
    decision = {"id": "a", "verification": "True", "compensation": "undo"}
    [problem] = problems(decision, task("b", "a", **BACK))
    assert (problem.rule, problem.severity, problem.task, problem.field) == (
        "bad_value", "error", "a", "compensation",
    )  # fmt: skip


# Skills and parameters ------------------------------------------------------------------------------------------------


def catalog(*functions: Any) -> Catalog:
    registry = SkillRegistry()
    for function in functions:
        registry.add(function)
    return Catalog(registry.specs())


def s(n: int = 0) -> None: ...


@skill(risk="high")
def undo(number: int) -> None: ...


def compensated(compensation: Any, **more: Any) -> list[dict[str, Any]]:
    return [task("a", compensation=compensation, **more), task("b", "a", **BACK)]


def test_the_skill_of_a_compensation_must_be_there() -> None:
    [problem] = problems(*compensated("undoo"), catalog=catalog(s, undo))
    assert (problem.rule, problem.field) == ("unknown_skill", "compensation.skill")
    assert problem.hint == "did you mean 'undo'?"


@pytest.mark.parametrize(
    ("compensation", "own", "field"),
    [
        ({"skill": "undo", "parameters": {"number": "x"}}, {}, "compensation.parameters.number"),
        ({"skill": "undo", "parameters": {}}, {}, "compensation.parameters.number"),
        ("undo", {"n": 1}, "compensation.parameters.n"),
    ],
)
def test_the_parameters_of_a_compensation_fit_its_skill(compensation: Any, own: dict[str, Any], field: str) -> None:
    found = problems(*compensated(compensation, parameters=own), catalog=catalog(s, undo))
    assert ("bad_parameters", field) in [(problem.rule, problem.field) for problem in found]


def test_the_parameters_of_a_compensation_may_name_the_result_of_any_task() -> None:
    parameters = {"number": "${result.id + results.a.data.id + results.b.visits}"}
    [problem] = problems(*compensated({"skill": "undo", "parameters": parameters}))
    assert (problem.rule, problem.field) == ("unknown_reference", "compensation.parameters.number")
    parameters = {"number": "${result.id + results.a.data.id + results.b.data.id}"}
    assert problems(*compensated({"skill": "undo", "parameters": parameters})) == []


def test_a_wrong_expression_in_them_is_told_with_its_place() -> None:
    [problem] = problems(*compensated({"skill": "undo", "parameters": {"number": ["${reslt.id}"]}}))
    assert (problem.rule, problem.field) == ("unknown_name", "compensation.parameters.number[0]")


@pytest.mark.parametrize(("origin", "needed"), [(None, False), ("model", True)])
def test_the_risk_of_a_compensation_counts_for_its_task(origin: str | None, needed: bool) -> None:
    given = {"skill": "undo", "parameters": {"number": 1}}
    plan = {"tasks": compensated(given, approval="none"), **({"origin": origin} if origin else {})}
    compiled = check_plan(plan, catalog(s, undo)).compiled
    assert compiled is not None
    assert (compiled.tasks[0].risk, compiled.tasks[0].needs_approval) == ("high", needed)


@pytest.mark.parametrize(
    ("tasks", "plan", "has"),
    [
        ([task("a")], {}, False),
        ([task("a", **BACK)], {}, True),
        ([task("a")], {"recovery": "rollback"}, True),
        ([task("a", recovery="skip")], {"recovery": "rollback"}, False),
        ([task("a", rollback_to="a", compensation="undo")], {}, False),
    ],
)
def test_only_a_plan_with_a_rollback_has_its_writes_remembered(
    tasks: list[dict[str, Any]], plan: dict[str, Any], has: bool
) -> None:
    compiled = check_plan({"tasks": tasks, **plan}).compiled
    assert compiled is not None
    assert compiled.has_rollback is has
