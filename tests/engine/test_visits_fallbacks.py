"""Section 3 of the plan's meaning: what stands in when all attempts of a visit have failed."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent import SkillContext, skill
from tests.engine.support import basic, plan_of, statuses

FAILS: dict[str, Any] = {"id": "a", "skill": "fail", "parameters": {"n": 99}}


def test_a_fallback_value_stands_in_and_the_last_error_is_kept() -> None:
    made = basic()
    task = {**FAILS, "max_retries": 1, "fallback": {"value": {"n": "${1 + 1}"}}, "verification": "result == 1"}
    result = made.run(plan_of(task, {"id": "b", "dependencies": ["a"], "condition": "results.a.fallback_used"}))
    done = result.tasks["a"]
    assert (done.status, done.data, done.fallback_used, done.verified) == ("SUCCEEDED", {"n": 2}, True, False)
    assert (done.error or {})["message"] == "call 2 fails"
    assert (result.phase, result.outcome) == ("completed", "handled_failures")
    assert statuses(result)["b"] == "SUCCEEDED"


@pytest.mark.parametrize(("words", "expected"), [({}, {"it": 99}), ({"parameters": {"it": "own"}}, {"it": "own"})])
def test_a_fallback_skill_gets_its_own_parameters_or_the_tasks(words: dict[str, Any], expected: Any) -> None:
    async def instead(**it: Any) -> Any:
        return it

    made = basic({"instead": instead})
    result = made.run(plan_of({**FAILS, "fallback": {"skill": "instead", **words}}))
    assert result.tasks["a"].data == ({"n": 99} if not words else expected)
    assert result.tasks["a"].fallback_used


def test_a_fallback_has_its_own_timeout_and_one_attempt_and_its_failure_keeps_the_first_error() -> None:
    made = basic()

    @skill(idempotent=True, timeout=7, max_retries=5)
    async def instead(context: SkillContext) -> None:
        made.calls.note(context)
        await made.clock.sleep(100)

    made.engine.skills.add(instead)
    result = made.run(
        plan_of({**FAILS, "max_retries": 0, "timeout": 50, "fallback": {"skill": "instead", "parameters": {}}})
    )
    assert made.clock.monotonic() == 7
    assert made.calls.order == ["a", "a"]
    assert (result.tasks["a"].status, result.tasks["a"].fallback_used) == ("FAILED", False)
    assert (result.tasks["a"].error or {})["message"] == "call 1 fails"
    assert (result.reason or {})["kind"] == "exception"


def test_a_fallback_without_its_permission_is_not_called() -> None:
    called: list[str] = []

    @skill(requires="money")
    async def instead() -> None:
        called.append("instead")

    made = basic({"instead": instead})
    result = made.run(plan_of({**FAILS, "fallback": {"skill": "instead", "parameters": {}}, "recovery": "skip"}))
    assert (result.tasks["a"].error or {})["message"] == "call 2 fails"
    assert statuses(result) == {"a": "optional"}
    assert called == []


def test_what_a_failed_attempt_wrote_is_gone_when_the_fallback_writes() -> None:
    async def writes_and_fails(context: SkillContext) -> None:
        context.set("failed", 1)
        raise OSError("down")

    async def instead(context: SkillContext) -> Any:
        context.set("instead", 1)
        return context.get("failed")

    made = basic({"bad": writes_and_fails, "instead": instead})
    result = made.run(plan_of({"id": "a", "skill": "bad", "fallback": {"skill": "instead"}}))
    assert (result.tasks["a"].data, result.context) == (None, {"instead": 1})


@pytest.mark.parametrize("kind", ["parameters", "not_json", "undeclared_write", "condition", "permission"])
def test_a_fallback_does_not_stand_in_for_failures_of_other_kinds(kind: str) -> None:
    @skill(writes=["allowed"])
    async def bad(n: int, context: SkillContext) -> Any:
        if kind == "undeclared_write":
            context.set("else", 1)
        return object() if kind == "not_json" else n

    @skill(requires="x")
    async def forbidden(n: int) -> None: ...

    made = basic({"bad": bad, "forbidden": forbidden})
    task: dict[str, Any] = {
        "id": "a",
        "skill": "bad",
        "parameters": {"n": "${1}"},
        "fallback": {"value": 0},
        "recovery": "skip",
    }
    if kind == "parameters":
        task["parameters"] = {"n": "${'x'}"}
    if kind == "condition":
        task["verification"] = "result['x'] == 1"
    if kind == "permission":
        task["skill"] = "forbidden"
    result = made.run(plan_of(task))
    assert statuses(result) == {"a": "optional"}
    assert (result.tasks["a"].error or {})["kind"] == kind


@pytest.mark.parametrize("kind", ["exception", "timeout", "reported", "verification"])
def test_a_fallback_stands_in_for_failures_of_the_four_kinds(kind: str) -> None:
    @skill(idempotent=True, max_retries=0)
    async def bad() -> Any:
        if kind == "exception":
            raise OSError("down")
        if kind == "timeout":
            await made.clock.sleep(100)
        return {"success": False, "error": "no"} if kind == "reported" else 0

    made = basic({"bad": bad})
    result = made.run(plan_of({"id": "a", "skill": "bad", "fallback": {"value": 7}, "verification": "result == 1"}))
    assert (statuses(result), result.tasks["a"].data) == ({"a": "SUCCEEDED"}, 7)
    assert (result.tasks["a"].error or {})["kind"] == kind


def test_a_fallback_skill_of_high_risk_is_not_called_without_approval() -> None:
    calls: list[str] = []

    @skill(risk="high")
    async def pay() -> None:
        calls.append("paid")

    made = basic({"pay": pay})
    made.run(plan_of({**FAILS, "max_retries": 0, "fallback": {"skill": "pay", "parameters": {}}}))
    assert calls == []
