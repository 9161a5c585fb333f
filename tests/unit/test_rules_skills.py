"""Who does what: skills, workers, default skills, decisions, parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from fsm_agent.errors import Problem
from fsm_agent.plan.catalog import ANY_SKILL, Catalog, SkillSpec
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.plan.loader import check_plan


def needs_query(constants: Mapping[str, Any], expressions: Collection[str]) -> list[tuple[str, str]]:
    """A check as a skill `(query: str)` would make it."""
    found = [(name, "there is no such parameter") for name in [*constants, *expressions] if name != "query"]
    if "query" not in constants and "query" not in expressions:
        found.append(("query", "it is required"))
    elif not isinstance(constants.get("query", ""), str):
        found.append(("query", "it must be text"))
    return found


CATALOG = Catalog(
    skills={name: SkillSpec(name) for name in ("read_page", "write_report", "notify")}
    | {"search_web": SkillSpec("search_web", check=needs_query)},
    workers={"writer": "write_report"},
)


def problems(*tasks: dict[str, Any], catalog: Catalog = CATALOG, **plan: Any) -> list[Problem]:
    return list(check_plan({"tasks": list(tasks), **plan}, catalog).problems)


def only(*tasks: dict[str, Any], catalog: Catalog = CATALOG, **plan: Any) -> Problem:
    [problem] = problems(*tasks, catalog=catalog, **plan)
    return problem


def compiled(task: dict[str, Any], catalog: Catalog = CATALOG, **plan: Any) -> CompiledTask:
    checked = check_plan({"tasks": [{"id": "a", **task}], **plan}, catalog)
    assert checked.compiled is not None
    return checked.compiled.tasks[0]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("serch_web", "'search_web'"),
        ("functions.search_web", "'search_web'"),
        ("multi_tool_use.parallel", ""),
        ("Search_Web", "'search_web'"),
        ("", ""),
        ("search_web" * 1_000, ""),
    ],
)
def test_f05_a_skill_that_does_not_exist_is_an_error_and_never_another_skill(name: str, near: str) -> None:
    problem = only({"id": "a", "skill": name})
    assert (problem.rule, problem.task, problem.field) == ("unknown_skill", "a", "skill")
    assert near in problem.hint
    assert len(problem.message) < 200


def test_every_place_that_names_a_skill_is_looked_at() -> None:
    found = problems(
        {"id": "a", "skill": "notify", "fallback": {"skill": "x1"}},
        {"id": "b", "worker": "w"},
        {"id": "c"},
        workers={"w": {"skill": "x2"}},
        default_skill="x3",
    )
    fields = [(p.rule, p.task, p.field) for p in found]
    assert sorted(fields, key=str) == sorted(
        [
            ("unknown_skill", "a", "fallback.skill"),
            ("unknown_skill", None, "workers.w.skill"),
            ("unknown_skill", None, "default_skill"),
        ],
        key=str,
    )


def test_a_worker_of_the_engine_without_its_skill_is_told_at_the_task() -> None:
    catalog = Catalog(workers={"w": "gone"}, default_skill="gone_too")
    found = problems({"id": "a", "worker": "w"}, {"id": "b"}, catalog=catalog)
    assert [(p.rule, p.task, p.field) for p in found] == [
        ("unknown_skill", "a", "worker"),
        ("unknown_skill", "b", None),
    ]


@pytest.mark.parametrize("default", [None, "notify"])
def test_an_unknown_worker_is_an_error_default_skill_or_not(default: str | None) -> None:
    problem = only({"id": "a", "worker": "writre"}, default_skill=default)
    assert (problem.rule, problem.field, problem.hint) == ("unknown_worker", "worker", "did you mean 'writer'?")


def test_a_task_that_nobody_does_has_nothing_to_do() -> None:
    problem = only({"id": "a", "description": "think"})
    assert (problem.rule, problem.task, problem.field) == ("nothing_to_do", "a", None)


def test_the_first_who_can_does_the_task() -> None:
    workers = {"worker": {"skill": "read_page"}, "writer": {}, "idle": {}}
    with_default: dict[str, Any] = {"workers": workers, "default_skill": "notify"}
    assert compiled({"skill": "notify", "worker": "worker"}, workers=workers).skill == "notify"
    assert compiled({"worker": "worker", "verification": "result"}, **with_default).skill == "read_page"
    assert compiled({"worker": "writer"}, workers=workers).skill == "write_report"
    assert compiled({"worker": "idle"}, **with_default).skill == "notify"
    assert compiled({"type": "action", "verification": "result"}, default_skill="notify").skill == "notify"
    assert compiled({}, default_skill="notify").skill == "notify"
    assert compiled({}, catalog=Catalog(CATALOG.skills, default_skill="read_page")).skill == "read_page"


@pytest.mark.parametrize("default", [None, "notify"])
def test_a_task_with_a_verification_and_nobody_is_a_decision(default: str | None) -> None:
    decision = compiled({"verification": "context.get('x')"}, default_skill=default)
    assert decision.is_decision
    assert (decision.skill, decision.verification) == (None, None)
    assert decision.decision_expression is not None


def test_any_skill_leaves_names_workers_and_parameters_unchecked() -> None:
    tasks = [{"id": "a", "skill": "x", "args": {"y": 1}}, {"id": "b", "worker": "z"}, {"id": "c"}]
    checked = check_plan(tasks, ANY_SKILL)
    assert checked.compiled is not None
    assert [(t.skill, t.is_decision) for t in checked.compiled.tasks] == [("x", False), (None, False), (None, False)]


def test_decisions_stay_decisions_with_any_skill() -> None:
    assert compiled({"verification": "context.get('x')"}, catalog=ANY_SKILL).is_decision


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({}, "parameters.query"),
        ({"query": 5}, "parameters.query"),
        ({"query": "x", "top": 1}, "parameters.top"),
        ({"query": "x", "top": "${goal}"}, "parameters.top"),
    ],
)
def test_parameters_that_do_not_fit_are_told_by_name(parameters: dict[str, Any], field: str) -> None:
    problem = only({"id": "a", "skill": "search_web", "parameters": parameters})
    assert (problem.rule, problem.task, problem.field) == ("bad_parameters", "a", field)
    assert "'search_web'" in problem.message


@pytest.mark.parametrize("parameters", [{"query": "x"}, {"query": "${goal}"}, {"query": "x ${goal}"}])
def test_parameters_that_fit_or_are_known_only_later_are_fine(parameters: dict[str, Any]) -> None:
    assert problems({"id": "a", "skill": "search_web", "parameters": parameters}) == []


def test_a_check_sees_text_as_it_will_be_rendered() -> None:
    seen: list[Any] = []

    def check(constants: Mapping[str, Any], expressions: Collection[str]) -> list[tuple[str, str]]:
        seen.append((dict(constants), set(expressions)))
        return []

    parameters = {"a": ["$${x}"], "b": {"c": "${goal}"}, "d": 1}
    catalog = Catalog(skills={"s": SkillSpec("s", check=check)})
    assert problems({"id": "a", "skill": "s", "parameters": parameters}, catalog=catalog) == []
    assert seen == [({"a": ["${x}"], "d": 1}, {"b"})]


def test_a_fallback_gets_its_own_parameters_or_the_tasks() -> None:
    own = only({"id": "a", "skill": "notify", "fallback": {"skill": "search_web", "parameters": {}}})
    the_tasks = only({"id": "a", "skill": "notify", "parameters": {"query": 5}, "fallback": "search_web"})
    assert (own.rule, own.field) == ("bad_parameters", "fallback.parameters.query")
    assert (the_tasks.rule, the_tasks.field) == ("bad_parameters", "fallback.parameters.query")


def test_parameters_of_a_form_that_cannot_be_read_are_told_once() -> None:
    assert only({"id": "a", "skill": "search_web", "parameters": [1]}).rule == "bad_value"


def test_a_skill_of_a_form_that_cannot_be_read_is_told_once() -> None:
    assert only({"id": "a", "skill": 5}).rule == "bad_value"


@pytest.mark.parametrize(
    ("task", "plan", "needed"),
    [
        ({}, {}, False),
        ({"risk_level": "high"}, {}, True),
        ({"risk_level": "medium"}, {}, False),
        ({"skill": "pay"}, {}, True),
        ({"skill": "pay", "risk_level": "low"}, {}, True),
        ({"skill": "pay", "approval": "none"}, {}, False),
        ({"skill": "pay", "approval": "none"}, {"origin": "model"}, True),
        ({"approval": "required"}, {}, True),
        ({"approval": "none"}, {"origin": "model"}, False),
    ],
)
def test_approval_is_needed_by_risk_or_by_word(task: dict[str, Any], plan: dict[str, Any], needed: bool) -> None:
    catalog = Catalog(skills={"pay": SkillSpec("pay", risk="high"), "s": SkillSpec("s")})
    assert compiled({"skill": "s", **task}, catalog, **plan).needs_approval is needed
