"""Section 4 of the plan's meaning: what becomes of a run that ends early, and of those who clean up after it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fsm_agent import RunResult, SkillContext
from tests.engine.support import Basic, basic, drive, most_at_once, plan_of, statuses, until

NAP: dict[str, Any] = {"skill": "nap", "parameters": {"s": 10}}
FAILS: dict[str, Any] = {"id": "bad", "skill": "fail", "parameters": {"n": 9}, "max_retries": 0}
CLEAN: dict[str, Any] = {"id": "clean", "dependencies": ["work"], "join": "all_done"}


def ended(how: str, *tasks: dict[str, Any], work: dict[str, Any] | None = None, **keys: Any) -> tuple[Basic, RunResult]:
    """A run of `work` (ten seconds) and these tasks that is ended early in this way, at five seconds."""
    made = basic()
    plan = plan_of({"id": "work", **NAP, **(work or {})}, *tasks, **keys)
    if how == "abort":
        plan["tasks"].append({**FAILS, "skill": "fail", "parameters": {"n": 9, "s": 5}})
    if how == "deadline":
        plan.setdefault("limits", {})["deadline"] = 5

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan, run_id="r"))
        if how == "cancel":
            await until(lambda: made.of("task_started"))
            await made.clock.sleep(5)
            await made.engine.cancel("r")
        return await run

    return made, drive(main())


ways = pytest.mark.parametrize("how", ["abort", "cancel", "deadline"])
PHASES = {"abort": "failed", "cancel": "cancelled", "deadline": "failed"}
KINDS = {"abort": "exception", "cancel": "cancelled", "deadline": "limit"}


@ways
def test_what_runs_is_cancelled_what_is_unstarted_stays_and_clean_up_still_runs(how: str) -> None:
    made, result = ended(how, {"id": "next", "dependencies": ["work"]}, {**CLEAN, "dependencies": ["next"]})
    assert (result.phase, (result.reason or {})["kind"]) == (PHASES[how], KINDS[how])
    found = statuses(result)
    assert (found["work"], found["next"], found["clean"]) == ("FAILED", "PENDING", "SUCCEEDED")
    assert (result.tasks["work"].error or {})["kind"] == "cancelled"
    assert made.clock.monotonic() == 5
    assert result.trace[-2:] == [("work", "fail"), ("clean", "ok")]


@ways
@pytest.mark.parametrize(
    "words", [{"on_failure": "other"}, {"recovery": "skip"}, {"recovery": "pause"}, {"on_failure": "work"}]
)
def test_a_cancelled_task_is_handled_by_nobody(how: str, words: dict[str, Any]) -> None:
    made, result = ended(how, {"id": "other", "dependencies": ["work"]}, work=words)
    assert (result.phase, result.waiting) == (PHASES[how], [])
    assert (statuses(result)["work"], statuses(result)["other"]) == ("FAILED", "PENDING")
    assert made.calls.of["other"] == 0


@ways
def test_a_task_after_which_more_than_clean_up_follows_is_no_clean_up(how: str) -> None:
    made, result = ended(how, {**CLEAN, "on_success": "more"}, {"id": "more"})
    assert (statuses(result)["clean"], statuses(result)["more"]) == ("PENDING", "PENDING")
    assert made.calls.of["clean"] == 0


@ways
def test_clean_up_runs_one_after_the_other_in_the_plans_order_but_after_its_own_dependencies(how: str) -> None:
    made, result = ended(
        how,
        {"id": "last", "dependencies": ["work", "first"], "join": "all_done", "skill": "nap", "parameters": {"s": 1}},
        {"id": "first", "dependencies": ["work"], "join": "all_done", "skill": "nap", "parameters": {"s": 1}},
        {**CLEAN, "id": "third", "priority": "high"},
    )
    assert made.calls.order[-3:] == ["first", "last", "third"]
    since = next(
        place for place, event in enumerate(made.events) if event.task == "first" and event.type == "task_started"
    )
    assert most_at_once(made.events[since:]) == 1
    assert made.clock.monotonic() == 7
    assert {statuses(result)[name] for name in ("first", "last", "third")} == {"SUCCEEDED"}


@ways
def test_the_conditions_of_clean_up_are_respected(how: str) -> None:
    _, result = ended(
        how, {**CLEAN, "condition": "n > 1"}, {**CLEAN, "id": "other", "condition": "n == 1"}, context={"n": 1}
    )
    assert (statuses(result)["clean"], statuses(result)["other"]) == ("condition", "SUCCEEDED")
    assert ("clean", "skip") in result.trace


@ways
def test_how_clean_up_ends_changes_nothing_for_the_run(how: str) -> None:
    _, result = ended(
        how,
        {**CLEAN, "skill": "fail", "parameters": {"n": 9}, "max_retries": 0, "recovery": "pause"},
        {**CLEAN, "id": "errs", "condition": "context['no']"},
        {**CLEAN, "id": "after", "dependencies": ["clean", "errs"]},
    )
    assert (result.phase, (result.reason or {})["kind"]) == (PHASES[how], KINDS[how])
    assert [statuses(result)[name] for name in ("clean", "errs", "after")] == ["FAILED", "FAILED", "SUCCEEDED"]


@ways
def test_clean_up_that_needs_approval_or_has_no_visits_left_is_reported_and_not_run(how: str) -> None:
    made, result = ended(how, {**CLEAN, "approval": "required"}, {**CLEAN, "id": "other"})
    assert (statuses(result)["clean"], statuses(result)["other"]) == ("PENDING", "SUCCEEDED")
    assert result.not_run_finalizers == ["clean"]
    assert not made.of("approval_asked")


@ways
def test_clean_up_above_which_nothing_was_started_does_not_run(how: str) -> None:
    later = {"id": "later", "soft_dependencies": ["work"]}
    made, result = ended(how, later, {**CLEAN, "dependencies": ["later"]})
    assert (statuses(result)["later"], statuses(result)["clean"]) == ("PENDING", "PENDING")
    assert result.not_run_finalizers == []
    assert made.calls.of["clean"] == 0


@ways
def test_clean_up_has_its_own_time_together(how: str) -> None:
    made, result = ended(
        how,
        {**CLEAN, **NAP},
        {**CLEAN, "id": "second", **NAP},
        {**CLEAN, "id": "third"},
        limits={"cleanup_timeout": 15},
    )
    assert made.clock.monotonic() == 20
    assert (result.phase, (result.reason or {})["kind"]) == (PHASES[how], KINDS[how])
    assert [statuses(result)[name] for name in ("clean", "second", "third")] == ["SUCCEEDED", "FAILED", "PENDING"]
    assert (result.tasks["second"].error or {})["kind"] == "cancelled"


def test_clean_up_is_retried_and_may_wait_as_any_other() -> None:
    made, result = ended("abort", {**CLEAN, "skill": "fail", "parameters": {"n": 1}, "max_retries": 1})
    assert (statuses(result)["clean"], result.tasks["clean"].attempts) == ("SUCCEEDED", 2)
    assert made.clock.monotonic() == 5.25


def test_a_pause_during_clean_up_stops_nothing() -> None:
    made = basic()
    plan = plan_of(FAILS, {**CLEAN, "dependencies": ["bad"], **NAP}, {**CLEAN, "id": "more", "dependencies": ["bad"]})

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan, run_id="r"))
        await until(lambda: made.of("task_started", task="clean"))
        await made.engine.pause("r")
        return await run

    result = drive(main())
    assert (result.phase, statuses(result)["more"]) == ("failed", "SUCCEEDED")


def test_max_task_runs_does_not_stop_clean_up() -> None:
    made = basic()
    plan = plan_of(
        {"id": "a"}, {"id": "b", "dependencies": ["a"]}, {**CLEAN, "dependencies": ["b"]}, limits={"max_task_runs": 1}
    )
    result = made.run(plan)
    assert (result.phase, (result.reason or {})["setting"]) == ("failed", "limits.max_task_runs")
    assert made.calls.order == ["a", "clean"]


def test_in_a_run_that_goes_well_clean_up_is_a_task_like_any_other() -> None:
    made = basic()
    result = made.run(plan_of({**FAILS, "recovery": "skip"}, {**CLEAN, "dependencies": ["bad"]}))
    assert (result.phase, statuses(result)) == ("completed", {"bad": "optional", "clean": "SUCCEEDED"})


# Aborts -----------------------------------------------------------------------------------------------------------


def test_an_abort_starts_nothing_new_and_decides_no_edges() -> None:
    made = basic()
    plan = plan_of(
        {**FAILS, "on_success": "never"},
        {"id": "never"},
        {"id": "ready", **NAP},
        {"id": "below", "dependencies": ["bad"]},
        limits={"max_parallel": 1},
    )
    result = made.run(plan)
    assert statuses(result) == {"bad": "FAILED", "never": "PENDING", "ready": "PENDING", "below": "PENDING"}
    assert result.reason == {"kind": "exception", "task": "bad", "message": "OSError: call 1 fails"}


def test_an_abort_withdraws_the_approvals_that_wait() -> None:
    made = basic()
    plan = plan_of({**FAILS, "parameters": {"n": 9, "s": 5}}, {"id": "ask", "approval": "required"})
    result = made.run(plan)
    assert (result.phase, statuses(result)["ask"], result.waiting) == ("failed", "PENDING", [])


def test_the_writes_and_results_of_before_an_abort_stay() -> None:
    made = basic()
    plan = plan_of(
        {"id": "w", "skill": "write", "parameters": {"key": "k", "value": 1}}, {**FAILS, "dependencies": ["w"]}
    )
    result = made.run(plan)
    assert (result.phase, result.context, result.tasks["w"].data) == ("failed", {"k": 1}, {"seen": 1})


def test_what_a_task_wrote_before_it_was_cancelled_is_not_committed() -> None:
    async def writes(context: SkillContext) -> None:
        context.set("k", 1)
        await made.clock.sleep(50)

    made = basic({"writes": writes})
    result = made.run(plan_of({"id": "w", "skill": "writes"}, {**FAILS, "parameters": {"n": 9, "s": 5}}))
    assert (result.context, statuses(result)["w"]) == ({}, "FAILED")


def test_of_two_failures_at_once_the_first_judged_is_the_reason() -> None:
    made = basic()
    fails = {**FAILS, "parameters": {"n": 9, "s": 5}}
    result = made.run(plan_of({**fails, "id": "first"}, {**fails, "id": "second"}))
    assert (result.reason or {})["task"] == "first"
    assert result.trace == [("first", "fail"), ("second", "fail")]


@pytest.mark.parametrize(
    ("words", "keys", "goes_on"),
    [
        ({"recovery": "skip"}, {}, True),
        ({"priority": "low"}, {}, True),
        ({}, {"recovery": "skip"}, True),
        ({"recovery": "abort"}, {"recovery": "skip"}, False),
        ({"priority": "low"}, {"recovery": "abort"}, False),
        ({}, {}, False),
        ({"priority": "high"}, {"recovery": "by_priority"}, False),
        ({"priority": "medium"}, {"recovery": "by_priority"}, True),
    ],
)
def test_the_recovery_is_the_tasks_own_or_the_plans_or_by_priority(
    words: dict[str, Any], keys: dict[str, Any], goes_on: bool
) -> None:
    result = basic().run(plan_of({**FAILS, **words}, {"id": "after", "dependencies": ["bad"]}, **keys))
    assert statuses(result) == (
        {"bad": "optional", "after": "SUCCEEDED"} if goes_on else {"bad": "FAILED", "after": "PENDING"}
    )


def test_by_priority_does_not_skip_what_a_task_of_high_priority_needs() -> None:
    tasks = [FAILS, {"id": "b", "dependencies": ["bad"]}, {"id": "c", "dependencies": ["b"], "priority": "high"}]
    assert basic().run(plan_of(*tasks, recovery="by_priority")).phase == "failed"


def test_a_handler_that_is_passed_over_in_the_end_handles_nothing() -> None:
    made = basic()
    plan = plan_of(
        {**FAILS, "on_failure": "handler"},
        {"id": "skipped", "verification": "1 > 2", "on_success": "other", "on_failure": "rest"},
        {"id": "other"},
        {"id": "rest"},
        {"id": "handler", "dependencies": ["other"]},
    )
    result = made.run(plan)
    assert statuses(result)["handler"] == "not_taken"
    assert (result.phase, (result.reason or {})["task"]) == ("failed", "bad")
