"""Section 4 of the plan's meaning, the recovery `pause`: a failed task waits for a person, who decides."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fsm_agent import RunResult
from fsm_agent.errors import DecisionRefused
from tests.engine.support import basic, bounded, drive, plan_of, resumed_after, statuses

FAILS: dict[str, Any] = {"id": "a", "skill": "fail", "parameters": {"n": 1}, "max_retries": 0, "recovery": "pause"}
AFTER: dict[str, Any] = {"id": "after", "dependencies": ["a"]}


def test_the_recovery_pause_lets_what_runs_finish_and_asks_a_person() -> None:
    made = basic()
    nap = {"skill": "nap", "parameters": {"s": 1}}
    result = made.run(plan_of(FAILS, AFTER, {"id": "b", **nap}, {"id": "c", **nap, "dependencies": ["b"]}))
    assert (result.phase, result.outcome) == ("paused", "paused")
    assert [(each["kind"], each["task"], each["visit"]) for each in result.waiting] == [("failed", "a", 1)]
    assert (result.tasks["a"].status, (result.tasks["a"].error or {})["message"]) == (
        "WAITING_APPROVAL",
        "call 1 fails",
    )
    assert made.calls.order == ["a", "b"]
    assert result.trace == [("a", "fail"), ("b", "ok")]


@pytest.mark.parametrize(
    ("decision", "expected", "calls"),
    [
        ("rerun", {"a": "SUCCEEDED", "after": "SUCCEEDED"}, ["a", "a", "after"]),
        ("done", {"a": "SUCCEEDED", "after": "SUCCEEDED"}, ["a", "after"]),
        ("skip", {"a": "person", "after": "SUCCEEDED"}, ["a", "after"]),
        ("fail", {"a": "FAILED", "after": "PENDING"}, ["a"]),
    ],
)
def test_a_person_decides_about_a_failed_task(decision: str, expected: dict[str, str], calls: list[str]) -> None:
    made = basic()
    words = {"result": {"by": "hand"}} if decision == "done" else {}
    _, result = resumed_after(made, plan_of(FAILS, AFTER), ("a", decision), **words)
    assert statuses(result) == expected
    assert made.calls.order == calls
    assert result.phase == ("failed" if decision == "fail" else "completed")
    if decision == "done":
        assert result.tasks["a"].data == {"by": "hand"}
        assert result.tasks["a"].error is None
    if decision == "fail":
        assert (result.reason or {})["message"] == "OSError: call 1 fails"
    if decision == "rerun":
        assert (result.tasks["a"].visits, result.tasks["a"].attempts) == (2, 2)


def test_a_task_that_fails_again_is_asked_about_again() -> None:
    made = basic()
    plan = plan_of({**FAILS, "parameters": {"n": 2}}, AFTER)
    paused, second = resumed_after(made, plan, ("a", "rerun"))
    assert (second.phase, second.waiting[0]["visit"]) == ("paused", 2)
    assert paused.waiting[0]["approval"] != second.waiting[0]["approval"]


@pytest.mark.parametrize("wanted", ["approve", "reject"])
def test_a_failed_task_can_be_neither_approved_nor_rejected(wanted: str) -> None:
    made = basic()

    async def main() -> None:
        await made.engine.run(plan_of(FAILS), run_id="r")
        with pytest.raises(DecisionRefused, match="cannot be decided"):
            await made.engine.decide("r", "a", wanted)

    drive(main())


def test_a_rerun_past_its_visits_goes_to_the_recovery_again() -> None:
    made = basic()
    _, result = resumed_after(made, plan_of({**FAILS, "max_visits": 1}), ("a", "rerun"))
    assert (result.phase, [each["kind"] for each in result.waiting]) == ("paused", ["failed"])
    assert (result.tasks["a"].error or {})["kind"] == "limit"
    assert made.calls.order == ["a"]


def test_a_failure_that_was_not_asked_about_yet_does_not_wait_after_the_run_was_aborted() -> None:
    made = basic()
    plan = plan_of(
        {"id": "ask", "approval": "required", "recovery": "pause"},
        {"id": "a", "skill": "fail", "parameters": {"n": 9}, "max_retries": 0, "recovery": "pause"},
    )

    async def main() -> RunResult:
        await made.engine.run(plan, run_id="r")
        await made.engine.decide("r", "ask", "reject")
        await made.engine.decide("r", "a", "fail")
        return await made.engine.resume("r")

    result = drive(main())
    assert (result.phase, statuses(result)) == ("failed", {"ask": "PENDING", "a": "FAILED"})


def test_a_decision_that_ends_a_run_at_the_moment_of_its_pause_hangs_nothing() -> None:
    made = basic()
    doings: list[asyncio.Task[None]] = []

    def meddle(event: Any) -> None:
        if event.type == "phase_changed" and event.dest == "paused":
            doings.append(asyncio.get_running_loop().create_task(made.engine.decide("r", "a", "fail")))

    made.engine.add_listener(meddle)
    task = {"id": "a", "skill": "fail", "parameters": {"n": 9}, "max_retries": 0, "recovery": "pause"}
    assert bounded(made, plan_of(task), run_id="r").phase in ("paused", "failed")
