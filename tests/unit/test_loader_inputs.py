"""The inputs of a run against what the plan declares, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.plan.loader import check_inputs
from fsm_agent.plan.model import Plan


def plan(**inputs: Any) -> Plan:
    return Plan.model_validate({"inputs": inputs, "tasks": [{"id": "a", "skill": "s"}]})


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("string", ["", "x"], [1, None, True, [], {}]),
        ("number", [1, 1.5, -2], ["1", True, None]),
        ("integer", [1, 1.0, -3, 10**30], [1.5, True, False, "1", None]),
        ("boolean", [True, False], [0, 1, "true", None]),
        ("array", [[], [1]], [{}, "x", None]),
        ("object", [{}, {"a": 1}], [[], "x", None]),
        ("null", [None], [0, "", False]),
        (["string", "null"], ["x", None], [1, []]),
        (None, [None, 1, "x", [], {}], []),
    ],
)
def test_types_are_those_of_json_schema(kind: Any, good: list[Any], bad: list[Any]) -> None:
    declared = plan(x={"type": kind})
    for value in good:
        assert check_inputs(declared, {"x": value}) == ({"x": value}, [])
    for value in bad:
        [problem] = check_inputs(declared, {"x": value})[1]
        assert (problem.rule, problem.field) == ("bad_input", "inputs.x")


def test_a_default_is_filled_in_as_a_copy() -> None:
    declared = plan(x={"type": "array", "default": [1]})
    first, _ = check_inputs(declared, {})
    first["x"].append(2)
    assert check_inputs(declared, {}) == ({"x": [1]}, [])


def test_an_input_without_a_default_must_be_given() -> None:
    [problem] = check_inputs(plan(budget={"type": "number", "description": "in euros"}), {})[1]
    assert (problem.rule, problem.field, problem.severity) == ("missing_input", "inputs.budget", "error")
    assert "in euros" in problem.message


def test_how_a_missing_input_is_given_is_told() -> None:
    declared = plan(budget={"type": "number"}, **{"db-pin": {"type": "string", "secret": True}})
    assert [problem.hint for problem in check_inputs(declared, {})[1]] == [
        "give it (number): --set budget=… or inputs={'budget': …}",
        "give it (string): the variable FSM_AGENT_SECRET_DB_PIN, --set db-pin=… or inputs={'db-pin': …}",
    ]


def test_a_required_input_must_be_given_whatever_its_default() -> None:
    assert check_inputs(plan(x={"default": 1, "required": True}), {})[1][0].rule == "missing_input"


def test_an_optional_input_that_is_not_given_is_null() -> None:
    assert check_inputs(plan(x={"type": "string", "required": False}), {}) == ({"x": None}, [])


def test_an_unknown_input_is_told_with_the_nearest_known() -> None:
    values, [problem] = check_inputs(plan(budget={"default": 1}), {"budgett": 5})
    assert values == {"budget": 1}
    assert (problem.rule, problem.field, problem.hint) == ("unknown_input", "inputs.budgett", "did you mean 'budget'?")


def test_all_problems_are_told_and_no_value_is_shown() -> None:
    given = {"b": "hunter2", "zzzz": "hunter2", "c": object()}
    _, problems = check_inputs(plan(a={}, b={"type": "number"}, c={}), given)
    assert [problem.rule for problem in problems] == ["unknown_input", "missing_input", "bad_input", "bad_input"]
    assert "hunter2" not in str(problems)


def test_values_are_made_plain_data() -> None:
    assert check_inputs(plan(x={"type": "array"}), {"x": (1, 2)}) == ({"x": [1, 2]}, [])
