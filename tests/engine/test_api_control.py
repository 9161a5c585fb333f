"""Pausing, resuming, cancelling and deciding, from another task than the one that runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fsm_agent import RunResult, SkillContext
from fsm_agent.clock import SystemClock
from fsm_agent.errors import RunNotActive, UnknownRun
from tests.engine.support import Basic, basic, bench, drive, others_end, plan_of, statuses, until

NAP: dict[str, Any] = {"skill": "nap", "parameters": {"s": 10}}
CHAIN = plan_of({"id": "a", **NAP}, {"id": "b", **NAP, "dependencies": ["a"]})
WITH_CLEANUP = plan_of(
    {"id": "a", **NAP},
    {"id": "b", **NAP, "dependencies": ["a"]},
    {"id": "clean", "dependencies": ["b"], "join": "all_done"},
)


async def started(made: Basic, task: str = "a") -> None:
    await until(lambda: made.of("task_started", task=task))


# Pause and resume -------------------------------------------------------------------------------------------------


def test_a_pause_lets_what_runs_finish_and_starts_nothing() -> None:
    made = basic()

    async def main() -> tuple[RunResult, RunResult]:
        run = asyncio.create_task(made.engine.run(CHAIN, run_id="r"))
        await started(made)
        await made.engine.pause("r", by="Ada", why="lunch")
        paused = await run
        assert await others_end() == set()
        return paused, await made.engine.resume("r")

    paused, result = drive(main())
    assert (paused.phase, paused.outcome, paused.reason, paused.waiting) == ("paused", "paused", None, [])
    assert paused.resumable is False
    assert paused.tasks["a"].status == "SUCCEEDED"
    assert [event.task for event in made.of("task_started")] == ["a", "b"]
    assert [(event.by, event.why) for event in made.of("pause_asked")] == [("Ada", "lunch")]
    assert (result.phase, statuses(result)) == ("completed", {"a": "SUCCEEDED", "b": "SUCCEEDED"})


def test_while_a_run_that_is_to_pause_lets_one_task_finish_no_other_takes_a_free_slot() -> None:
    made = basic()
    short, long = ({"skill": "nap", "parameters": {"s": seconds}} for seconds in (1, 10))
    plan = plan_of(
        {"id": "short", **short}, {"id": "long", **long}, {"id": "next"}, {"id": "after", "dependencies": ["short"]}
    )

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan, run_id="r", max_parallel=2))
        await started(made, "long")
        await made.engine.pause("r")
        return await run

    result = drive(main())
    assert made.calls.order == ["short", "long"]
    assert [result.tasks[name].status for name in ("short", "long")] == ["SUCCEEDED", "SUCCEEDED"]
    assert made.clock.monotonic() == 10


def test_a_pause_asked_for_during_the_last_task_pauses_before_the_end() -> None:
    made = basic()

    async def main() -> tuple[RunResult, RunResult]:
        run = asyncio.create_task(made.engine.run(plan_of({"id": "a", **NAP}), run_id="r"))
        await started(made)
        await made.engine.pause("r")
        return await run, await made.engine.resume("r")

    paused, result = drive(main())
    assert (paused.phase, result.phase) == ("paused", "completed")


def test_a_run_can_pause_and_go_on_again_and_again() -> None:
    made = basic()

    async def main() -> RunResult:
        chain = [{"id": f"t{n}", **NAP, "dependencies": [f"t{n - 1}"] if n else []} for n in range(5)]
        run = asyncio.create_task(made.engine.run(plan_of(*chain), run_id="r"))
        for n in range(4):
            await started(made, f"t{n}")
            await made.engine.pause("r")
            assert (await run).phase == "paused"
            run = asyncio.create_task(made.engine.resume("r"))
        return await run

    assert drive(main()).completed
    assert made.calls.order == [f"t{n}" for n in range(5)]


def test_only_a_paused_run_can_be_resumed() -> None:
    made = basic()

    async def main() -> None:
        run = asyncio.create_task(made.engine.run(CHAIN, run_id="r"))
        await started(made)
        with pytest.raises(RunNotActive):
            await made.engine.resume("r")
        await made.engine.pause("r")
        await run
        first = asyncio.create_task(made.engine.resume("r"))
        await asyncio.sleep(0)
        with pytest.raises(RunNotActive):
            await made.engine.resume("r")
        assert (await first).completed
        with pytest.raises(UnknownRun):
            await made.engine.resume("r")

    drive(main())


def test_the_deadline_stands_still_while_a_run_is_paused() -> None:
    made = basic()

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(CHAIN, run_id="r", deadline=15))
        await started(made)
        await made.engine.pause("r")
        await run
        await made.clock.sleep(1000)
        return await made.engine.resume("r")

    result = drive(main())
    assert (result.phase, (result.reason or {})["kind"]) == ("failed", "limit")
    assert made.clock.monotonic() == 1015
    assert result.elapsed_s == 15


# Cancel ---------------------------------------------------------------------------------------------------------------


def test_a_cancel_ends_what_runs_and_the_clean_up_still_runs() -> None:
    made = basic()

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(WITH_CLEANUP, run_id="r"))
        await started(made)
        await made.engine.cancel("r", by="Ada", why="changed my mind")
        result = await run
        assert await others_end() == set()
        return result

    result = drive(main())
    assert (result.phase, result.outcome) == ("cancelled", "cancelled")
    assert (result.reason or {})["kind"] == "cancelled"
    assert statuses(result) == {"a": "FAILED", "b": "PENDING", "clean": "SUCCEEDED"}
    assert (result.tasks["a"].error or {})["kind"] == "cancelled"
    assert result.trace == [("a", "fail"), ("clean", "ok")]
    assert made.clock.monotonic() == 0
    assert made.engine.run_ids == ()


@pytest.mark.parametrize("plan", [CHAIN, WITH_CLEANUP], ids=["no clean-up", "clean-up"])
def test_a_paused_run_is_cancelled_here_and_now(plan: dict[str, Any]) -> None:
    made = basic()

    async def main() -> None:
        run = asyncio.create_task(made.engine.run(plan, run_id="r"))
        await started(made)
        await made.engine.pause("r")
        await run
        await made.engine.cancel("r")
        assert made.engine.run_ids == ()

    drive(main())
    (finished,) = made.of("run_finished")
    assert (finished.phase, finished.outcome) == ("cancelled", "cancelled")
    assert made.calls.order == (["a", "clean"] if plan is WITH_CLEANUP else ["a"])


@pytest.mark.parametrize("what", ["pause", "cancel", "decide", "resume", "status"])
def test_an_unknown_run_is_named(what: str) -> None:
    made = basic()

    async def main() -> None:
        if what == "status":
            made.engine.status("nobody")
        elif what == "decide":
            await made.engine.decide("nobody", "a", "approve")
        else:
            await getattr(made.engine, what)("nobody")

    with pytest.raises(UnknownRun, match="'nobody'"):
        drive(main())


def test_closing_the_engine_ends_all_runs_in_hand() -> None:
    made = basic()

    async def main() -> list[RunResult]:
        async with made.engine:
            resting = asyncio.create_task(made.engine.run(CHAIN, run_id="resting"))
            await started(made)
            await made.engine.pause("resting")
            await resting
            live = asyncio.create_task(made.engine.run(CHAIN, run_id="live"))
            await until(lambda: len(made.of("task_started")) == 2)
        return [resting.result(), await live]

    assert [result.phase for result in drive(main())] == ["paused", "cancelled"]
    assert {event.run_id: event.phase for event in made.of("run_finished")} == {
        "resting": "cancelled", "live": "cancelled"
    }  # fmt: skip
    assert made.engine.run_ids == ()


@pytest.mark.parametrize("what", ["cancel", "pause"])
def test_nothing_is_recorded_after_the_end_of_a_run_that_is_still_in_hand(what: str) -> None:
    made = basic()
    doings: list[asyncio.Task[None]] = []

    def meddle(event: Any) -> None:
        if event.type == "run_finished":
            doings.append(asyncio.get_running_loop().create_task(getattr(made.engine, what)("r")))

    made.engine.add_listener(meddle)

    async def main() -> None:
        await made.engine.run(plan_of({"id": "a"}), run_id="r")
        await asyncio.gather(*doings, return_exceptions=True)

    drive(main())
    assert made.events[-1].type == "run_finished"


# Cancelling the task that awaits a run --------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["a running skill", "a back-off", "an approver"])
def test_cancelling_the_awaiting_task_cancels_the_run_and_still_cleans_up(what: str) -> None:
    async def never(request: Any) -> bool:
        await asyncio.Event().wait()
        return True

    made = basic(approver=never)
    tasks = {
        "a running skill": {"id": "a", **NAP},
        "a back-off": {"id": "a", "skill": "fail", "parameters": {"n": 9}, "max_retries": 5, "backoff": {"base": 30}},
        "an approver": {"id": "a", **NAP, "approval": "required"},
    }
    sign = {"a running skill": "task_started", "a back-off": "attempt_failed", "an approver": "approval_asked"}[what]
    plan = plan_of(
        {"id": "first"},
        {**tasks[what], "dependencies": ["first"]},
        {"id": "clean", "dependencies": ["a"], "join": "all_done"},
    )

    async def main() -> None:
        run = asyncio.create_task(made.engine.run(plan, run_id="r"))
        await until(lambda: made.of(sign, task="a"))
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert await others_end() == set()

    drive(main())
    assert made.calls.order[-1] == "clean"
    assert made.events[-1].type == "run_finished"
    assert made.of("run_finished")[0].phase == "cancelled"
    assert made.engine.run_ids == ()


def test_a_second_cancellation_drops_the_clean_up_too() -> None:
    made = basic()
    plan = plan_of({"id": "a", **NAP}, {"id": "clean", **NAP, "dependencies": ["a"], "join": "all_done"})

    async def main() -> None:
        run = asyncio.create_task(made.engine.run(plan))
        await started(made)
        run.cancel()
        await started(made, "clean")
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert await others_end() == set()

    drive(main())
    assert made.clock.monotonic() < 10
    assert made.engine.run_ids == ()


def test_a_timeout_around_a_run_works_as_around_anything() -> None:
    async def block() -> None:
        await asyncio.Event().wait()

    made = bench([block], clock=SystemClock())

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(made.engine.run(plan_of({"id": "a", "skill": "block"})), 0.05)
        assert await others_end() == set()

    drive(main())
    assert made.of("run_finished")[0].phase == "cancelled"


# Others -----------------------------------------------------------------------------------------------------------


def test_a_skill_can_pause_its_own_run() -> None:
    async def asks_for_a_break(context: SkillContext) -> None:
        await made.engine.pause(context.run_id)

    made = basic({"asks_for_a_break": asks_for_a_break})

    async def main() -> tuple[RunResult, RunResult]:
        plan = plan_of({"id": "a", "skill": "asks_for_a_break"}, {"id": "b", "dependencies": ["a"]})
        return await made.engine.run(plan, run_id="r"), await made.engine.resume("r")

    paused, result = drive(main())
    assert statuses(paused)["b"] in ("PENDING", "READY")
    assert result.completed


def test_a_result_of_a_paused_run_shares_nothing_with_the_run() -> None:
    made = basic()
    write = {"skill": "write", "parameters": {"key": "list", "value": [1]}}
    plan = plan_of({"id": "a", **write}, {"id": "ask", "dependencies": ["a"], "approval": "required"})

    async def main() -> RunResult:
        paused = await made.engine.run(plan, run_id="r")
        paused.context["list"].append("spoiled")
        paused.tasks["a"].data["seen"].append("spoiled")
        await made.engine.decide("r", "ask", "approve")
        return await made.engine.resume("r")

    result = drive(main())
    assert (result.context, result.tasks["a"].data) == ({"list": [1]}, {"seen": [1]})


def test_who_cancelled_a_paused_run_and_why_is_in_its_result() -> None:
    made = basic()

    async def main() -> Any:
        await made.engine.run(plan_of({"id": "ask", "approval": "required"}), run_id="r")
        return await made.engine.cancel("r", by="Ada", why="too dear")

    result = drive(main())
    assert result.phase == "cancelled"
    assert result.reason == {"kind": "cancelled", "task": None, "message": "the run was cancelled by Ada: too dear"}
