"""Expressions that do not compile, names that are not there, results that cannot be there yet."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.errors import Problem
from fsm_agent.plan.catalog import Catalog, SkillSpec
from fsm_agent.plan.loader import check_plan

ERRORS = [
    ("1 +", "bad_expression"),
    ("the result looks fine", "bad_expression"),
    ("", "bad_expression"),
    ("1e999 > 1", "bad_expression"),
    ("__import__('os').system('id') == 0", "unsafe_expression"),
    ("2 ** 9", "unsafe_expression"),
    ("1" + " + 1" * 200, "unsafe_expression"),
    ("nothing > 1", "unknown_name"),
    ("result == 1", "unknown_name"),
    ("results.gone.data", "unknown_reference"),
    ("results['gone'].data", "unknown_reference"),
    ("results.a.dta", "unknown_reference"),
]


def task(name: str, *dependencies: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "skill": "s", "dependencies": list(dependencies), **more}


def problems(*tasks: dict[str, Any], **plan: Any) -> list[Problem]:
    return list(check_plan({"tasks": list(tasks), **plan}).problems)


def only(*tasks: dict[str, Any], **plan: Any) -> Problem:
    [problem] = problems(*tasks, **plan)
    return problem


@pytest.mark.parametrize(("text", "rule"), ERRORS)
@pytest.mark.parametrize("field", ["condition", "output", "completion_criteria[0].check", "parameters.x[0]"])
def test_an_expression_that_is_refused_gives_its_rule_and_field(text: str, rule: str, field: str) -> None:
    a_task, plan = task("a"), {}
    if field == "condition":
        a_task["condition"] = text
    elif field == "output":
        plan = {"output": text}
    elif field.startswith("completion"):
        plan = {"completion_criteria": [{"check": text}]}
    else:
        a_task["parameters"] = {"x": [f"${{{text}}}"]}
    problem = only(a_task, **plan)
    assert (problem.rule, problem.field, problem.severity) == (rule, field, "error")


def test_every_expression_of_a_plan_is_looked_at() -> None:
    found = problems(
        task("a", condition="x1", verification="x2", parameters={"p": "${x3} and ${x4}"}, fallback={"value": "${x5}"}),
        task("b", fallback={"skill": "s", "parameters": {"q": ["${x6}"]}}),
        output="x7",
        completion_criteria=["prose", {"check": "x8"}],
    )
    assert {problem.field for problem in found} == {
        "condition", "verification", "parameters.p", "fallback.value", "fallback.parameters.q[0]", "output",
        "completion_criteria[1].check",
    }  # fmt: skip
    assert len(found) == 8


def test_an_unknown_name_has_its_column_and_the_nearest_known() -> None:
    problem = only(task("a", condition="1 < budgett"), inputs={"budget": {}})
    assert (problem.column, problem.hint) == (5, "did you mean 'budget'?")


def test_a_verification_that_does_not_parse_is_told_about_expected_output() -> None:
    assert "expected_output" in only(task("a", verification="the report is there")).hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("${results.fetch-data.success}", "this field is an expression: leave out ${ and }"),
        ("inputs.x AND inputs.y", "write and, or, not in lower case"),
        ("NOT inputs.x", "write and, or, not in lower case"),
        ("OR(1, 2)", "write and, or, not in lower case"),
        ("the x is NOT here", "it must be an expression, not prose"),
        ("results.fetch-data.data > 1", "write results['fetch-data']"),
        ("found > 1", "if a skill writes it, put `writes: [found]` on its task"),
    ],
)
def test_a_usual_slip_is_told_with_what_to_write(text: str, hint: str) -> None:
    assert only(task("fetch-data"), task("b", "fetch-data", condition=text)).hint == hint


def test_inputs_context_keys_and_declared_writes_are_bare_names() -> None:
    catalog = Catalog(skills={"s": SkillSpec("s", writes=("by_skill",)), "f": SkillSpec("f", writes=("by_fallback",))})
    source = {
        "inputs": {"budget": {}},
        "context": {"spent": 0},
        "tasks": [
            task("a", fallback="f"),
            task("b", "a", writes=["own"], condition="budget > spent and by_skill and by_fallback and own"),
        ],
    }
    assert check_plan(source, catalog).problems == ()


def test_a_tasks_own_writes_win_over_those_of_its_skill() -> None:
    catalog = Catalog(skills={"s": SkillSpec("s", writes=("by_skill",))})
    checked = check_plan([task("a", writes=[]), task("b", "a", condition="by_skill", writes=[])], catalog)
    assert [problem.rule for problem in checked.problems] == ["unknown_name"]


def test_result_is_a_name_in_a_verification_only() -> None:
    assert problems(task("a", verification="result > 1")) == []
    assert "verification only" in only(task("a", condition="result > 1")).hint


def test_a_decision_has_no_result() -> None:
    problem = only({"id": "a", "verification": "result > 1"})
    assert problem.rule == "unknown_name"
    assert "decision" in problem.hint


@pytest.mark.parametrize("field", ["condition", "verification", "parameters"])
def test_a_tasks_own_result_is_not_there_yet(field: str) -> None:
    value: Any = {"p": "x ${results.a.data}"} if field == "parameters" else "1 < results.a.data"
    problem = only(task("a", **{field: value}))
    assert (problem.rule, problem.task) == ("impossible_reference", "a")


def test_a_task_that_must_come_after_cannot_have_run_before() -> None:
    problem = only(task("a", condition="results.c.success"), task("b", "a"), task("c", "b"))
    assert (problem.rule, problem.field, problem.column) == ("impossible_reference", "condition", 9)
    assert "'c'" in problem.message


@pytest.mark.parametrize(
    "later",
    [
        task("c", "a"),
        task("c", "a", join="all_done"),
        task("c", "a", "free"),
        task("c", "a", join="any"),
        task("c", soft_dependencies=["a"]),
    ],
)
def test_whoever_waits_for_a_task_comes_after_it(later: dict[str, Any]) -> None:
    found = problems(task("a", condition="results.c.success"), task("free"), later)
    assert [problem.rule for problem in found] == ["impossible_reference"]


def test_a_branch_target_comes_after_its_only_source() -> None:
    a = task("a", on_failure="c", condition="results.c.success")
    assert [problem.rule for problem in problems(a, task("c"))] == ["impossible_reference"]


def test_a_branch_target_of_two_sources_may_come_before_one_of_them() -> None:
    a, b = task("a", on_failure="c", condition="results.c.success"), task("b", on_failure="c")
    assert problems(a, b, task("c")) == []


def test_a_task_that_waits_for_any_may_come_before_one_of_them() -> None:
    assert problems(task("a", condition="results.c.success"), task("b"), task("c", "a", "b", join="any")) == []


def test_a_task_beside_another_may_have_run_before() -> None:
    assert problems(task("a", condition="results.b.success"), task("b")) == []


def test_on_a_loop_each_task_may_have_run_before_each_other_one() -> None:
    draft = task("draft", condition="results.review.status != 'FAILED'")
    assert problems(draft, task("review", "draft", on_failure="draft")) == []


def test_what_follows_a_loop_cannot_have_run_before_it() -> None:
    draft = task("draft", condition="results.send.success")
    found = problems(draft, task("review", "draft", on_failure="draft"), task("send", "review"))
    assert [problem.rule for problem in found] == ["impossible_reference"]


def test_output_and_criteria_may_ask_for_every_task() -> None:
    plan = {"output": "results.b.data", "completion_criteria": [{"check": "results.a.success"}]}
    assert problems(task("a"), task("b", "a"), **plan) == []


def test_a_literal_dollar_is_no_reference() -> None:
    assert problems(task("a", parameters={"p": "$${nothing}"})) == []


def test_the_same_bad_text_is_told_at_each_place() -> None:
    assert len(problems(task("a", condition="x1"), task("b", condition="x1"))) == 2
