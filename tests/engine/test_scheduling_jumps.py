"""Section 2 of the plan's meaning, loops: what a jump back resets, drops and withdraws in a real run."""

from __future__ import annotations

import asyncio
from typing import Any

from fsm_agent import RunResult, SkillContext
from tests.engine.support import basic, drive, plan_of, shared_locks, statuses

JUDGE: dict[str, Any] = {"id": "judge", "skill": "fail", "max_retries": 0, "join": "any", "on_failure": "draft"}


def loop_with(*tasks: dict[str, Any], failures: int = 1) -> dict[str, Any]:
    """A draft that is judged as soon as `quick` is done, whatever else on the loop still goes on."""
    others = [{**task, "dependencies": ["draft"]} for task in tasks]
    names = ["quick", *(task["id"] for task in tasks)]
    judge = {**JUDGE, "parameters": {"n": failures}, "dependencies": names}
    return plan_of({"id": "draft"}, {"id": "quick", "dependencies": ["draft"]}, *others, judge)


def test_a_jump_drops_what_a_running_task_comes_to_and_waits_for_it() -> None:
    made = basic()
    slow = {"id": "slow", "skill": "write", "parameters": {"key": "k", "value": 1, "s": 10}}
    result = made.run(loop_with(slow))
    begun = [(event.task, event.visit) for event in made.of("task_started")]
    assert begun == [
        ("draft", 1), ("quick", 1), ("slow", 1), ("judge", 1), ("draft", 2), ("quick", 2), ("slow", 2), ("judge", 2)
    ]  # fmt: skip
    (discarded,) = made.of("visit_discarded")
    assert (discarded.task, discarded.visit, discarded.status) == ("slow", 1, "SUCCEEDED")
    assert made.of("task_started", task="draft")[1].seq > discarded.seq
    assert result.trace == [
        ("draft", "ok"), ("quick", "ok"), ("judge", "fail"), ("draft", "ok"), ("quick", "ok"), ("judge", "ok"),
        ("slow", "ok"),
    ]  # fmt: skip
    assert (result.tasks["slow"].visits, result.tasks["slow"].attempts, result.context) == (2, 2, {"k": 1})
    assert [event.visit for event in made.of("context_changed")] == [2]
    assert result.invalid_actions == 1 / 8


def test_the_failure_of_a_running_task_that_a_jump_has_reset_is_not_heard_of() -> None:
    made = basic()
    slow = {"id": "slow", "skill": "fail", "parameters": {"n": 1, "s": 10}, "max_retries": 0, "recovery": "abort"}
    result = made.run(loop_with(slow))
    assert (result.phase, result.outcome, statuses(result)["slow"]) == ("completed", "clean", "SUCCEEDED")
    assert [(event.status, event.error.kind) for event in made.of("visit_discarded")] == [("FAILED", "exception")]


def test_a_task_that_a_jump_has_reset_still_holds_its_slot_and_its_lock_until_it_ends() -> None:
    made = basic()
    slow = {"id": "slow", "skill": "nap", "parameters": {"s": 10}, "locks": ["db"]}
    plan = loop_with(slow)
    plan["tasks"].append(
        {"id": "other", "skill": "nap", "parameters": {"s": 2}, "locks": ["db"], "dependencies": ["wait"]}
    )
    plan["tasks"].append({"id": "wait", "skill": "nap", "parameters": {"s": 1}})
    made.run(plan)
    ends = made.of("visit_discarded", "task_evaluated", task="slow")
    assert made.of("task_started", task="other")[0].seq > ends[0].seq
    assert (
        shared_locks(made.events, {"slow": ["db"], "other": ["db"], "draft": [], "quick": [], "judge": [], "wait": []})
        == []
    )


def test_a_jump_ends_no_wait_for_another_try_but_drops_what_comes_of_it() -> None:
    made = basic()
    slow = {
        "id": "slow",
        "skill": "fail",
        "parameters": {"n": 1},
        "max_retries": 1,
        "backoff": {"base": 9, "jitter": "none"},
    }
    result = made.run(loop_with(slow))
    assert [(event.task, event.attempts) for event in made.of("visit_discarded")] == [("slow", 2)]
    assert (result.tasks["slow"].visits, result.tasks["slow"].attempts) == (2, 3)


def test_a_result_of_a_reset_task_is_as_if_it_had_not_run() -> None:
    made = basic()
    value = "${[results.quick.status, results.quick.data]}"
    look = {"id": "look", "skill": "write", "parameters": {"key": "seen", "value": value}}
    result = made.run({**loop_with(look), "merge": {"seen": "append"}})
    assert result.context == {"seen": [["RUNNING", None]] * 2}
    assert result.tasks["quick"].data == {}


# Approvals and questions that a jump overtakes --------------------------------------------------------------------

LOOP = [
    {"id": "draft", "skill": "bump"},
    {"id": "quick", "dependencies": ["draft"]},
    {"id": "judge", "skill": "fail", "parameters": {"n": 1, "s": 5}, "max_retries": 0, "join": "any",
     "dependencies": ["quick", "ask"], "on_failure": "draft"},
]  # fmt: skip


def counting(**engine: Any) -> Any:
    """A bench with `bump`, which adds one to the context's n."""
    made = basic(**engine)

    async def bump(context: SkillContext) -> None:
        context.set("n", context.get("n", 0) + 1)

    made.engine.skills.add(bump)
    return made


def test_a_jump_withdraws_an_approval_that_waits_and_the_next_visit_asks_anew() -> None:
    made = counting()
    ask = {"id": "ask", "skill": "write", "parameters": {"key": "k", "value": "${n}"}, "approval": "required"}
    draft, quick, judge = LOOP
    result = made.run(plan_of(draft, quick, {**ask, "dependencies": ["draft"]}, judge, context={"n": 0}))
    assert (result.phase, [each["parameters"]["value"] for each in result.waiting]) == ("paused", [2])
    assert [event.parameters["value"] for event in made.of("approval_asked")] == [1, 2]
    assert made.calls.order == ["quick", "judge"] * 2


def test_an_approval_that_was_given_before_a_jump_does_not_count_for_other_parameters_after_it() -> None:
    made = counting()
    ask = {"id": "ask", "skill": "write", "parameters": {"key": "got", "value": "${n}"}, "approval": "required",
           "dependencies": ["draft"], "locks": ["db"]}  # fmt: skip
    wait = {"id": "wait", "skill": "nap", "parameters": {"s": 1}}
    keeps = {"id": "keeps", "skill": "nap", "parameters": {"s": 8}, "locks": ["db"], "dependencies": ["wait"]}
    draft, quick, judge = LOOP

    async def main() -> RunResult:
        plan = plan_of(draft, quick, ask, judge, wait, keeps, context={"n": 0})
        run = asyncio.create_task(made.engine.run(plan, run_id="r"))
        await made.clock.sleep(2)
        await made.engine.decide("r", "ask", "approve")
        return await run

    result = drive(main())
    assert result.context.get("got") != 1, "called with the parameters of before the jump"
    assert [event.parameters["value"] for event in made.of("approval_asked")] == [1, 2]


def test_an_approval_that_is_asked_for_again_after_a_jump_has_its_own_time() -> None:
    made = counting()
    ask = {"id": "ask", "skill": "nap", "parameters": {"s": 1}, "approval": "required", "approval_timeout": 20,
           "dependencies": ["draft"], "recovery": "skip"}  # fmt: skip
    draft, quick, judge = LOOP
    keeps = {"id": "keeps", "skill": "nap", "parameters": {"s": 50}}
    made.run(plan_of(draft, quick, ask, judge, keeps, context={"n": 0}))
    asked = made.of("approval_asked")
    assert len(asked) == 2
    assert made.of("approval_decided")[0].at == asked[1].expires_at == asked[1].at + 20


def test_a_question_about_a_failed_task_is_withdrawn_by_a_jump_at_the_same_moment() -> None:
    made = basic()
    common = {"skill": "fail", "parameters": {"n": 1, "s": 5}, "max_retries": 0}
    plan = plan_of(
        {"id": "draft"},
        {**common, "id": "a", "recovery": "pause", "dependencies": ["draft"]},
        {"id": "quick", "dependencies": ["draft"]},
        {**common, "id": "judge", "join": "any", "dependencies": ["a", "quick"], "on_failure": "draft"},
    )

    async def main() -> list[RunResult]:
        async with made.engine.stream(plan, run_id="r") as stream:
            async for _ in stream:
                pass
        assert stream.result is not None
        return [stream.result, await made.engine.resume("r")]

    paused, result = drive(main())
    assert (paused.phase, paused.waiting) == ("paused", [])
    assert statuses(result)["a"] == "SUCCEEDED"
