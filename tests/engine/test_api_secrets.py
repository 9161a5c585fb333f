"""Secret inputs: skills get them; no event, result, message or log has them."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from fsm_agent import ApprovalRequest, RefusedByFilter, SkillContext, skill
from fsm_agent.core.result import RunResult
from tests.engine.support import Basic, basic, plan_of

SECRET = "xyzzy-4711"
INPUTS = {"token": {"type": "string", "secret": True}, "city": {"type": "string", "default": "Kiel"}}


def secret_plan(*tasks: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return plan_of(*tasks, inputs=INPUTS, **keys)


def everything(made: Basic, result: RunResult) -> str:
    """All that a run tells anybody, as one text."""
    return json.dumps([result.to_json(), [event.to_json() for event in made.events]])


def test_a_skill_gets_a_secret_input_and_the_records_do_not() -> None:
    seen: list[str] = []

    async def use(it: str, more: dict[str, Any]) -> int:
        seen.extend([it, more["header"]])
        return len(it)

    made = basic({"use": use})
    parameters = {"it": "${inputs.token}", "more": {"header": "Bearer ${token}", "city": "${city}"}}
    result = made.run(secret_plan({"id": "a", "skill": "use", "parameters": parameters}), inputs={"token": SECRET})
    assert seen == [SECRET, f"Bearer {SECRET}"]
    assert result.context == {"city": "Kiel"}
    assert made.of("task_started")[0].parameters == {"it": "***", "more": {"header": "Bearer ***", "city": "Kiel"}}
    assert made.of("plan_adopted")[0].secrets == ("token",)
    assert SECRET not in everything(made, result)


def test_what_is_named_like_a_secret_is_masked_in_the_records_too() -> None:
    async def log_in(password: str, user: str) -> None: ...

    made = basic({"log_in": log_in})
    plan = plan_of({"id": "a", "skill": "log_in", "parameters": {"password": "${'hun' + 'ter2'}", "user": "ada"}})
    result = made.run(plan)
    assert made.of("task_started")[0].parameters == {"password": "***", "user": "ada"}
    assert "hunter2" not in everything(made, result)


@pytest.mark.parametrize("then", ["raise", "report", "retry", "fallback", "cancel itself"])
def test_an_error_that_quotes_a_secret_is_redacted(then: str, caplog: pytest.LogCaptureFixture) -> None:
    @skill(idempotent=then in ("retry", "fallback"))
    async def use(it: str) -> Any:
        if then == "report":
            return {"success": False, "error": f"{it} was refused"}
        raise PermissionError(f"{it} was refused")

    words = {"max_retries": 2} if then == "retry" else {"fallback": {"value": 0}} if then == "fallback" else {}
    made = basic({"use": use})
    plan = secret_plan({"id": "a", "skill": "use", "parameters": {"it": "${token}"}, "recovery": "abort", **words})
    with caplog.at_level(logging.DEBUG):
        result = made.run(plan, inputs={"token": SECRET})
    assert "*** was refused" in (result.tasks["a"].error or {})["message"]
    assert SECRET not in everything(made, result)
    assert SECRET not in caplog.text


def test_progress_and_log_lines_of_a_skill_are_redacted() -> None:
    async def use(it: str, context: SkillContext) -> None:
        context.progress(0.5, f"with {it}")
        context.log(f"took {it}", header=f"Bearer {it}", password="hunter2")

    made = basic({"use": use})
    result = made.run(
        secret_plan({"id": "a", "skill": "use", "parameters": {"it": "${token}"}}), inputs={"token": SECRET}
    )
    (told,), (logged,) = made.of("progress"), made.of("task_logged")
    assert (told.share, told.text) == (0.5, "with ***")
    assert (logged.message, logged.fields) == ("took ***", {"header": "Bearer ***", "password": "***"})
    assert SECRET not in everything(made, result)


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_refusal_of_a_filter_that_quotes_a_secret_is_redacted(when: str) -> None:
    def refuse(parameters: dict[str, Any], *_: Any) -> Any:
        raise RefusedByFilter(f"{parameters['it']} is refused")

    @skill(**{when: refuse})
    async def use(it: str) -> None: ...

    made = basic({"use": use})
    plan = plan_of({"id": "a", "skill": "use", "parameters": {"it": "${token}"}}, inputs={"token": {"secret": True}})
    result = made.run(plan, inputs={"token": "xyzzy-4711"})
    told = str([result.to_json(), [event.to_json() for event in made.events]])
    assert "xyzzy-4711" not in told


def test_who_approves_sees_no_secret_and_the_call_gets_it() -> None:
    asked: list[ApprovalRequest] = []
    seen: list[str] = []

    @skill(risk="high")
    async def use(it: str) -> None:
        seen.append(it)

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    made = basic({"use": use}, approver=approve)
    result = made.run(
        secret_plan({"id": "a", "skill": "use", "parameters": {"it": "${token}"}}), inputs={"token": SECRET}
    )
    assert dict(asked[0].parameters) == {"it": "***"}
    assert seen == [SECRET]
    assert SECRET not in everything(made, result)


def test_what_waits_shows_no_secret() -> None:
    made = basic()
    plan = secret_plan(
        {"id": "a", "skill": "write", "parameters": {"key": "k", "value": "${token}"}, "approval": "required"}
    )
    result = made.run(plan, inputs={"token": SECRET})
    assert result.waiting[0]["parameters"] == {"key": "k", "value": "***"}
    assert SECRET not in everything(made, result)


def test_a_secret_that_does_not_fit_is_not_quoted() -> None:
    async def use(it: int) -> None: ...

    made = basic({"use": use})
    result = made.run(
        secret_plan({"id": "a", "skill": "use", "parameters": {"it": "${token}"}}), inputs={"token": SECRET}
    )
    assert (result.reason or {})["kind"] == "parameters"
    assert SECRET not in everything(made, result)


def test_a_condition_that_errs_on_a_secret_does_not_quote_it() -> None:
    made = basic()
    result = made.run(secret_plan({"id": "a", "condition": "inputs.token + 1 > 2"}), inputs={"token": SECRET})
    assert (result.reason or {})["kind"] == "condition"
    assert SECRET not in everything(made, result)


def test_a_failed_approver_is_not_quoted_with_a_secret() -> None:
    def broken(request: ApprovalRequest) -> bool:
        raise OSError(f"cannot ask about {SECRET}")

    made = basic(approver=broken)
    result = made.run(secret_plan({"id": "a", "approval": "required"}), inputs={"token": SECRET})
    assert "cannot ask about ***" in made.of("approval_handed_on")[0].message
    assert SECRET not in everything(made, result)
