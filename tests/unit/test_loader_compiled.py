"""A valid plan comes compiled: each expression once, ready for any number of runs."""

from __future__ import annotations

from typing import Any

from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.plan.loader import check_plan


def compiled(*tasks: dict[str, Any], **plan: Any) -> CompiledPlan:
    checked = check_plan({"tasks": list(tasks), **plan})
    assert checked.compiled is not None
    return checked.compiled


def test_tasks_stand_in_the_order_of_the_plan() -> None:
    plan = compiled({"id": "b", "skill": "s"}, {"id": "a", "skill": "s"})
    assert [each.task.id for each in plan.tasks] == ["b", "a"] == list(plan.graph.ids)


def test_expressions_are_compiled_where_they_stand() -> None:
    plan = compiled(
        {"id": "a", "skill": "s", "condition": "1 < 2", "verification": "result == 3", "parameters": {"p": "${goal}"}},
        output="results.a.data",
        completion_criteria=["prose", {"check": "2 > 1", "text": "as agreed"}],
    )
    task = plan.tasks[0]
    assert task.condition is not None
    assert task.verification is not None
    assert plan.output is not None
    assert task.condition.test({})
    assert task.verification.test({"result": 3})
    assert task.parameters.render({"goal": "g"}) == {"p": "g"}
    assert plan.output.result_ids[0][0] == "a"
    prose, check = plan.criteria
    assert (prose.text, prose.check) == ("prose", None)
    assert check.text == "as agreed"
    assert check.check is not None
    assert check.check.text == "2 > 1"


def test_what_is_not_given_is_none() -> None:
    task = compiled({"id": "a", "skill": "s"}).tasks[0]
    assert (task.condition, task.verification, task.decision_expression, task.fallback) == (None, None, None, None)
    assert task.parameters.render({}) == {}


def test_a_fallback_is_its_value_or_its_own_parameters() -> None:
    plan = compiled(
        {"id": "a", "skill": "s", "fallback": {"value": ["${goal}", 1]}},
        {"id": "b", "skill": "s", "fallback": {"skill": "t", "parameters": {"p": "${goal}"}}},
        {"id": "c", "skill": "s", "fallback": "t"},
    )
    value, parameters, none = (each.fallback for each in plan.tasks)
    assert value is not None
    assert parameters is not None
    assert value.render({"goal": "g"}) == ["g", 1]
    assert parameters.render({"goal": "g"}) == {"p": "g"}
    assert none is None


def test_the_same_text_is_compiled_once() -> None:
    first, second = compiled(*({"id": name, "skill": "s", "condition": "1 < 2"} for name in "ab")).tasks
    assert first.condition is second.condition


def test_a_plan_with_errors_is_not_compiled_but_has_its_shape() -> None:
    checked = check_plan([{"id": "a", "skill": "s", "condition": "1 +"}])
    assert checked.compiled is None
    assert checked.graph is not None
    assert checked.plan is not None


def test_a_plan_with_warnings_only_is_compiled() -> None:
    checked = check_plan({"context": {"goal": 1}, "tasks": [{"id": "a", "skill": "s"}]})
    assert [problem.severity for problem in checked.problems] == ["warning"]
    assert checked.compiled is not None
