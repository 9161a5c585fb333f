"""Data that does not fit the model: every misfit, in plain words, without values that may be secret."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.errors import Problem
from fsm_agent.plan.loader import check_plan

TASK = {"id": "a", "skill": "s"}


def problems(source: Any) -> list[Problem]:
    return list(check_plan(source).problems)


def of_task(**fields: Any) -> Problem:
    [problem] = problems([TASK | fields])
    return problem


@pytest.mark.parametrize(
    ("source", "rule", "field"),
    [
        ({}, "missing_field", "tasks"),
        ({"goal": "g", "tasks": None}, "missing_field", "tasks"),
        ({"tasks": []}, "empty_plan", "tasks"),
        ([], "empty_plan", "tasks"),
        ({"tasks": {"a": {}}}, "bad_value", "tasks"),
        ([5], "bad_value", "tasks[0]"),
        ([{"skill": "s"}], "missing_field", "tasks[0].id"),
        ([{"id": "", "skill": "s"}], "bad_value", "tasks[0].id"),
        ([{"id": " a", "skill": "s"}], "bad_value", "tasks[0].id"),
        ([{"id": "a\n", "skill": "s"}], "bad_value", "tasks[0].id"),
        ([{"id": "a\x07b", "skill": "s"}], "bad_value", "tasks[0].id"),
        ([{"id": "a" * 101, "skill": "s"}], "bad_value", "tasks[0].id"),
    ],
)
def test_a_plan_without_good_tasks_says_what_is_missing(source: Any, rule: str, field: str) -> None:
    [problem] = problems(source)
    assert (problem.rule, problem.task, problem.field) == (rule, None, field)


@pytest.mark.parametrize("source", [None, 5, True, 1.5])
def test_what_is_no_mapping_and_no_list_is_no_plan(source: Any) -> None:
    [problem] = problems(source)
    assert problem.rule == "bad_value"
    assert "a plan is a mapping" in problem.message


@pytest.mark.parametrize("name", ["a", "a b", "2.1", "任务 1", "x" * 100, "a/b:c"])
def test_an_id_may_be_any_words(name: str) -> None:
    assert problems([{"id": name, "skill": "s"}]) == []


def test_three_bad_fields_of_one_task_are_three_problems() -> None:
    found = problems([TASK | {"timeout": "soon", "max_retries": -1, "priority": "urgent"}])
    assert [(p.rule, p.task, p.field) for p in found] == [
        ("bad_value", "a", "timeout"),
        ("bad_value", "a", "max_retries"),
        ("bad_value", "a", "priority"),
    ]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("priority", "urgent", "`priority` must be 'high', 'medium' or 'low', not 'urgent'"),
        ("join", ["any"], "`join` must be 'all', 'any' or 'all_done'; this is a list"),
        ("status", "done", "`status` must be 'pending', not 'done'"),
        ("type", "decision", "`type` must be 'action' or 'condition', not 'decision'"),
        ("timeout", 0, "`timeout` must be greater than 0"),
        ("timeout", True, "`timeout` must be a number; this is true or false"),
        ("max_visits", 0, "`max_visits` must be at least 1"),
        ("max_retries", 1.5, "`max_retries` must be a whole number; this is a number"),
        ("parameters", [1], "`parameters` must be a mapping; this is a list"),
        ("dependencies", "b", "`dependencies` must be a list; this is text"),
        ("dependencies", [[]], "the item must be text; this is a list"),
        ("condition", True, "`condition` must be text; this is true or false"),
        ("fallback", 5, "`fallback` must be a mapping; this is a whole number"),
        ("backoff", {"factor": 0.5}, "`factor` must be at least 1"),
        ("subplan", 5, "`subplan` must be a plan's name, or a plan; this is a whole number"),
        ("tolerate", "x", "`tolerate` must be a count or a share; this is text"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_what_would(field: str, value: Any, words: str) -> None:
    problem = of_task(**{field: value})
    assert problem.rule == "bad_value"
    assert problem.message == words


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("flow", "parallel", "'graph' or 'sequential'"),
        ("recovery", "retry", "'by_priority'"),
        ("when", 5, "text, or a list of texts"),
        ("version", [], "text or a number"),
        ("limits", {"max_parallel": 0}, "at least 1"),
        ("merge", {"k": "max"}, "'sum', 'append', 'union' or 'last'"),
        ("labels", {"year": 2024}, "text"),
        ("inputs", {"x": {"type": "int"}}, "a JSON Schema type"),
        ("inputs", {"x": 5}, "a mapping"),
        ("completion_criteria", [5], "text, or a mapping with `check`"),
        ("completion_criteria", [{"check": 5}], "text"),
        ("origin", "robot", "'person' or 'model'"),
    ],
)
def test_a_field_of_the_plan_that_does_not_fit_is_told_with_what_would(field: str, value: Any, words: str) -> None:
    [problem] = problems({"tasks": [TASK], field: value})
    assert (problem.rule, problem.task) == ("bad_value", None)
    assert words in problem.message


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ([TASK | {"dependencies": "b"}], "write [a] for a list of one"),
        ([TASK | {"max_retries": "3"}], "write it without quotes"),
        ([TASK | {"timeout": "2.5"}], "write it without quotes"),
        ([TASK | {"timeout": "5s"}], "write a number of seconds"),
        ([TASK | {"timeout": "soon"}], ""),
        ([TASK | {"priority": "HIGH"}], "write 'high', in lower case"),
        ([TASK | {"priority": "urgent"}], ""),
        ({"tasks": [TASK], "inputs": {"city": "string"}}, "write {type: string}"),
        ({"tasks": [TASK], "inputs": {"x": {"type": "int"}}}, "write integer"),
        ({"tasks": [TASK], "inputs": {"x": {"type": "str"}}}, "write string"),
        ({"tasks": [TASK], "inputs": {"x": {"type": "float"}}}, "write number"),
        ({"tasks": [TASK], "inputs": {"x": {"type": ["null", "bool"]}}}, "write boolean"),
    ],
)
def test_what_would_fit_instead_is_a_hint(source: Any, hint: str) -> None:
    [problem] = problems(source)
    assert (problem.rule, problem.hint) == ("bad_value", hint)


def test_recovery_by_priority_is_a_word_of_the_plan() -> None:
    assert problems({"recovery": "by_priority", "tasks": [TASK]}) == []
    assert of_task(recovery="by_priority").rule == "bad_value"


@pytest.mark.parametrize(
    ("source", "field", "hint"),
    [
        ({"taks": [], "tasks": [TASK]}, "taks", "'tasks'"),
        ([TASK | {"dependson": []}], "dependson", "'depends_on'"),
        ([TASK | {"as_": "x"}], "as_", "'as'"),
        ({"tasks": [TASK], "limits": {"max_paralel": 2}}, "limits.max_paralel", "'max_parallel'"),
        ({"tasks": [TASK], "inputs": {"x": {"typ": "string"}}}, "inputs.x.typ", "'type'"),
        ({"tasks": [TASK], "workers": {"w": {"skil": "s"}}}, "workers.w.skil", "'skill'"),
        ([TASK | {"fallback": {"skil": "s", "value": 1}}], "fallback.skil", "'skill'"),
        ([TASK | {"backoff": {"facter": 2}}], "backoff.facter", "'factor'"),
        ([TASK | {"qqqqqqqq": 1}], "qqqqqqqq", "remove it"),
    ],
)
def test_an_unknown_key_is_told_with_the_nearest_known(source: Any, field: str, hint: str) -> None:
    [problem] = problems(source)
    assert (problem.rule, problem.field) == ("unknown_key", field)
    assert hint in problem.hint


def test_a_criterion_without_a_check_is_missing_it() -> None:
    [problem] = problems({"tasks": [TASK], "completion_criteria": [{"text": "x"}]})
    assert (problem.rule, problem.field) == ("missing_field", "completion_criteria[0].check")


def test_no_message_shows_a_value_that_may_be_secret() -> None:
    secret = "hunter2-hunter2"
    source = {
        "context": {"k": float("nan")},
        "inputs": {"token": {"type": "number", "default": secret}},
        "tasks": [
            {"id": "a", "skill": "s", "parameters": secret, "timeout": secret, "retry_on": secret, "writes": secret},
            {"id": "b", "skill": "s", "fallback": {"value": secret, "skill": "s"}, "backoff": {"base": secret}},
        ],
    }
    assert secret not in str([problem.to_json() for problem in problems(source)])


def test_a_field_that_does_not_fit_hides_no_problem_elsewhere() -> None:
    source = {
        "limits": {"deadline": "soon"},
        "completion_criteria": [5, {"check": "nothing > 1"}],
        "tasks": [
            {"id": "a", "skill": "s", "timeout": "soon", "dependencies": ["gone"]},
            "no task",
            {"id": "", "skill": "s", "on_success": "nowhere"},
            {"id": "b", "skill": "s", "condition": "1 +"},
        ],
    }
    found = {(p.rule, p.task, p.field) for p in problems(source)}
    assert found == {
        ("bad_value", None, "limits.deadline"),
        ("bad_value", None, "completion_criteria[0]"),
        ("unknown_name", None, "completion_criteria[1].check"),
        ("bad_value", "a", "timeout"),
        ("unknown_dependency", "a", "dependencies[0]"),
        ("bad_value", None, "tasks[1]"),
        ("bad_value", None, "tasks[2].id"),
        ("unknown_target", None, "tasks[2].on_success"),
        ("bad_expression", "b", "condition"),
    }


def test_names_declared_in_what_does_not_fit_are_not_called_unknown() -> None:
    source = {
        "inputs": {"x": {"type": "int"}},
        "context": {"k": 1},
        "tasks": [
            {"id": "a", "skill": "s", "condition": "x > k and w", "writes": ["w", 5]},
        ],
    }
    assert {problem.rule for problem in problems(source)} == {"bad_value"}


def test_a_bad_id_can_be_referred_to_all_the_same() -> None:
    source = [{"id": " a", "skill": "s"}, {"id": "b", "skill": "s", "dependencies": [" a"]}]
    assert [problem.rule for problem in problems(source)] == ["bad_value"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_in_memory_that_is_not_finite_is_a_bad_number(value: float) -> None:
    assert of_task(parameters={"x": [value]}).rule == "bad_number"


@pytest.mark.parametrize("value", [object(), b"\xff", lambda: 0, {1: 2}, "\ud83d"])
def test_data_in_memory_that_is_no_json_is_a_bad_value(value: Any) -> None:
    problem = of_task(parameters={"x": value})
    assert problem.rule == "bad_value"
    assert problem.field is not None
    assert problem.field.startswith("tasks[0].parameters.x")


def test_data_in_memory_that_nests_without_end_is_too_deep_or_a_bad_value() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    loop: list[Any] = []
    loop.append(loop)
    assert of_task(parameters={"x": deep}).rule == "too_deep"
    assert of_task(parameters={"x": loop}).rule == "bad_value"
    for _ in range(150):
        loop = [loop]
    fits_nearly: list[Any] = []
    for _ in range(120):
        fits_nearly = [fits_nearly]
    assert of_task(parameters={"x": fits_nearly}).rule == "too_deep"


def test_tuples_and_other_mappings_in_memory_are_fine() -> None:
    checked = check_plan([{"id": "a", "skill": "s"}, {"id": "b", "skill": "s", "dependencies": ("a",)}])
    assert checked.plan is not None
    assert checked.plan.tasks[1].dependencies == ["a"]
