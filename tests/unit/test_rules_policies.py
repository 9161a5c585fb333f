"""Warnings: words of a plan that do not have the effect that their author may expect."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.errors import Problem
from fsm_agent.plan.catalog import Catalog, SkillPolicy, SkillSpec
from fsm_agent.plan.loader import check_plan


def spec(name: str, retry_on: tuple[str, ...] | None = None, **more: Any) -> SkillSpec:
    return SkillSpec(name, policy=SkillPolicy(retry_on=retry_on), **more)


CATALOG = Catalog(
    skills={
        "pay": spec("pay", risk="high"),
        "mail": spec("mail", risk="medium"),
        "read": spec("read", idempotent=True),
        "dial": spec("dial", retry_on=("OSError", "reported")),
        "kinds": spec("kinds", retry_on=("reported",)),
        "any": spec("any", retry_on=("Exception",)),
    }
)


def warnings(plan: dict[str, Any] | None = None, **task: Any) -> list[Problem]:
    checked = check_plan({"tasks": [{"id": "a", **task}], **(plan or {})}, CATALOG)
    assert checked.valid
    assert all(problem.severity == "warning" for problem in checked.problems)
    return list(checked.problems)


def rules(plan: dict[str, Any] | None = None, **task: Any) -> list[tuple[str, str | None]]:
    return [(problem.rule, problem.field) for problem in warnings(plan, **task)]


@pytest.mark.parametrize(("skill", "stated"), [("pay", "low"), ("pay", "medium"), ("mail", "low")])
def test_a_risk_below_that_of_the_skill_is_raised_to_it(skill: str, stated: str) -> None:
    assert rules(skill=skill, risk_level=stated) == [("risk_raised", "risk_level")]


@pytest.mark.parametrize(("skill", "stated"), [("pay", "high"), ("mail", "high"), ("read", "low"), ("mail", None)])
def test_a_risk_that_is_not_below_that_of_the_skill_holds(skill: str, stated: str | None) -> None:
    assert rules(skill=skill, risk_level=stated) == []


def test_a_model_cannot_switch_off_the_approval_of_a_risky_task() -> None:
    assert rules({"origin": "model"}, skill="pay", approval="none") == [("approval_forbidden", "approval")]


@pytest.mark.parametrize(
    ("origin", "skill", "approval"),
    [("person", "pay", "none"), (None, "pay", "none"), ("model", "mail", "none"), ("model", "pay", "required")],
)
def test_other_words_on_approval_are_no_matter_of_warning(origin: str | None, skill: str, approval: str) -> None:
    assert rules({"origin": origin}, skill=skill, approval=approval) == []


def test_retries_of_a_skill_that_is_not_safe_to_retry_have_no_effect() -> None:
    assert rules(skill="pay", max_retries=3) == [("retry_without_effect", "max_retries")]


@pytest.mark.parametrize(("skill", "retries"), [("pay", 0), ("read", 3), ("dial", 3), ("any", 3)])
def test_retries_that_can_have_an_effect_are_fine(skill: str, retries: int) -> None:
    assert rules(skill=skill, max_retries=retries) == []


def test_a_decision_makes_no_attempts_that_could_be_retried() -> None:
    assert rules(verification="1 < 2", max_retries=1) == [("retry_without_effect", "max_retries")]


@pytest.mark.parametrize(
    ("skill", "name"),
    [
        ("dial", "timeout"),
        ("dial", "verification"),
        ("dial", "ValueError"),
        ("kinds", "SomeError"),
        ("read", "permission"),
        ("read", "exception"),
        ("dial", "rate_limited"),
    ],
)
def test_what_is_never_retried_is_told_in_retry_on(skill: str, name: str) -> None:
    assert rules(skill=skill, retry_on=["reported", name]) == [("retry_without_effect", "retry_on[1]")]


@pytest.mark.parametrize(
    ("skill", "name"),
    [
        ("dial", "OSError"),
        ("dial", "ConnectionResetError"),
        ("dial", "SomeError"),
        ("any", "ValueError"),
        ("read", "timeout"),
        ("read", "verification"),
        ("read", "ValueError"),
    ],
)
def test_what_may_be_retried_is_fine_in_retry_on(skill: str, name: str) -> None:
    assert rules(skill=skill, retry_on=[name]) == []


@pytest.mark.parametrize("name", ["context", "inputs", "results", "goal", "result"])
def test_a_name_with_another_meaning_in_expressions_is_told_wherever_it_is_declared(name: str) -> None:
    plan = {"inputs": {name: {}}, "context": {name: 1}}
    found = rules(plan, skill="read", writes=["x", name])
    assert found == [
        ("shadowed_name", f"inputs.{name}"),
        ("shadowed_name", f"context.{name}"),
        ("shadowed_name", "writes[1]"),
    ]


def limits_of(origin: str, **limits: Any) -> list[tuple[str, str | None]]:
    plan = {"origin": origin, "limits": limits, "tasks": [{"id": "a", "skill": "read"}]}
    return [(problem.rule, problem.field) for problem in check_plan(plan, CATALOG).problems]


@pytest.mark.parametrize("limit", ["max_parallel", "max_task_runs", "max_result_bytes", "cleanup_timeout"])
def test_a_models_plan_cannot_raise_a_limit(limit: str) -> None:
    assert limits_of("model", **{limit: 100_000_000}) == [("limit_raised", f"limits.{limit}")]


def test_a_models_plan_may_lower_limits_and_set_a_deadline() -> None:
    assert limits_of("model", max_parallel=1, max_task_runs=5, deadline=10) == []


def test_a_persons_plan_may_raise_limits() -> None:
    assert limits_of("person", max_parallel=1000) == []


def test_the_risk_of_a_skill_that_may_stand_in_counts_for_the_task() -> None:
    plan = {"tasks": [{"id": "a", "skill": "read", "fallback": "pay"}]}
    compiled = check_plan(plan, CATALOG).compiled
    assert compiled is not None
    assert (compiled.tasks[0].risk, compiled.tasks[0].needs_approval) == ("high", True)
