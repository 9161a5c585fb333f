"""Fields that have to agree with one another, and features that are still to come."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.errors import Problem
from fsm_agent.plan.catalog import ANY_SKILL
from fsm_agent.plan.loader import check_plan


def problems(plan: dict[str, Any] | None = None, **task: Any) -> list[Problem]:
    return list(check_plan({"tasks": [{"id": "a", **task}], **(plan or {})}).problems)


@pytest.mark.parametrize("task", [{"skill": "s", "subgoal": "g"}, {"subplan": "p", "subgoal": "g"}])
def test_a_task_has_at_most_one_of_skill_subplan_and_subgoal(task: dict[str, Any]) -> None:
    checked = check_plan([{"id": "a", **task}], supported={"subplan", "subgoal"})
    [problem] = checked.problems
    assert (problem.rule, problem.field) == ("bad_value", list(task)[1])


@pytest.mark.parametrize("doer", ["skill", "worker"])
def test_a_condition_is_done_by_nobody(doer: str) -> None:
    [problem] = problems(type="condition", verification="True", **{doer: "x"})
    assert (problem.rule, problem.field) == ("bad_value", doer)


def test_a_condition_has_a_verification() -> None:
    [problem] = problems(type="condition")
    assert (problem.rule, problem.field) == ("missing_field", "verification")


@pytest.mark.parametrize(
    "fallback", [{}, {"value": 1, "skill": "s"}, {"parameters": {}}, {"value": 1, "parameters": {"a": 1}}]
)
def test_a_fallback_is_a_value_or_a_skill(fallback: dict[str, Any]) -> None:
    [problem] = problems(skill="s", fallback=fallback)
    assert (problem.rule, problem.field) == ("bad_value", "fallback")


@pytest.mark.parametrize("fallback", [{"value": None}, {"value": 0}, {"skill": "s"}, {"skill": "s", "parameters": {}}])
def test_a_fallback_that_is_one_of_them_is_fine(fallback: dict[str, Any]) -> None:
    assert problems(skill="s", fallback=fallback) == []


def test_a_default_has_the_type_of_its_input() -> None:
    inputs = {"a": {"type": "integer", "default": 1.5}, "b": {"type": "integer", "default": None}, "c": {"default": []}}
    [problem] = problems({"inputs": inputs}, skill="s")
    assert (problem.rule, problem.field) == ("bad_value", "inputs.a.default")


@pytest.mark.parametrize(("when", "field"), [("/(/", "when"), (["x", "/[[a]+(/"], "when[1]")])
def test_a_pattern_of_when_is_a_regular_expression(when: Any, field: str) -> None:
    [problem] = problems({"when": when}, skill="s")
    assert (problem.rule, problem.field) == ("bad_value", field)


@pytest.mark.parametrize("when", ["sales (fell", "/sales|stock/", ["a", "/b/"], "/", "//"])
def test_words_and_good_patterns_are_fine(when: Any) -> None:
    assert problems({"when": when}, skill="s") == []


NOT_YET: list[tuple[str, dict[str, Any]]] = [
    ("subplan", {"subplan": "p"}),
    ("subgoal", {"subgoal": "g"}),
    ("agent", {"agent": "x"}),
    ("foreach", {"skill": "s", "foreach": "context['items']"}),
    ("as", {"skill": "s", "as": "item"}),
    ("tolerate", {"skill": "s", "tolerate": 1}),
    ("repeat_while", {"skill": "s", "loop_condition": "result > 1"}),
]
NOT_YET_VALUES = [("isolation", "process"), ("recovery", "replan")]


@pytest.mark.parametrize(("key", "task"), NOT_YET)
def test_a_key_that_a_later_version_brings_is_refused_by_name(key: str, task: dict[str, Any]) -> None:
    [problem] = problems(**task)
    assert (problem.rule, problem.severity, problem.field) == ("not_supported", "error", key)
    assert f"`{key}`" in problem.message


@pytest.mark.parametrize(("key", "task"), NOT_YET)
def test_a_key_that_is_said_to_be_supported_passes(key: str, task: dict[str, Any]) -> None:
    assert check_plan([{"id": "a", **task}], ANY_SKILL, supported=[key]).valid


@pytest.mark.parametrize(("key", "value"), NOT_YET_VALUES)
def test_a_value_that_a_later_version_brings_is_refused_by_name(key: str, value: str) -> None:
    [problem] = problems(skill="s", **{key: value})
    assert (problem.rule, problem.field) == ("not_supported", key)
    assert f"`{key}: {value}`" in problem.message
    assert check_plan([{"id": "a", "skill": "s", key: value}], supported=[value]).valid


def test_a_recovery_of_the_plan_may_be_for_later_too() -> None:
    [problem] = problems({"recovery": "replan"}, skill="s")
    assert (problem.rule, problem.task, problem.field) == ("not_supported", None, "recovery")


def test_the_capacity_of_a_worker_is_for_later() -> None:
    [problem] = problems({"workers": {"w": {"skill": "s", "capacity": 2}}}, worker="w")
    assert (problem.rule, problem.field) == ("not_supported", "workers.w.capacity")


def test_all_limits_are_accepted() -> None:
    limits = {
        "max_parallel": 2, "max_task_runs": 5, "deadline": 1.5, "max_rollbacks": 0, "max_replans": 0,
        "max_result_bytes": 10, "cancel_grace": 0, "cleanup_timeout": 1, "max_depth": 3,
    }  # fmt: skip
    assert problems({"limits": limits, "recovery": "pause"}, skill="s", recovery="abort", isolation="thread") == []
