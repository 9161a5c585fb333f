"""What the engine does not do yet as the pages say: each test here fails until its cause is mended."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from fsm_agent import RunResult
from tests.engine.support import basic, bounded, drive, plan_of, statuses

NAP: dict[str, Any] = {"skill": "nap", "parameters": {"s": 10}}


# Approvals --------------------------------------------------------------------------------------------------------


def test_a_failure_that_was_not_asked_about_yet_does_not_wait_after_the_run_was_aborted() -> None:
    """`Run._stop` forgets `to_ask`, and leaves the statuses of its tasks at WAITING_APPROVAL."""
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
    """`Driver._resting` says no where a paused run is ending, `decide` says `Rest`: `drive` waits for ever."""
    made = basic()
    doings: list[asyncio.Task[None]] = []

    def meddle(event: Any) -> None:
        if event.type == "phase_changed" and event.dest == "paused":
            doings.append(asyncio.get_running_loop().create_task(made.engine.decide("r", "a", "fail")))

    made.engine.add_listener(meddle)
    task = {"id": "a", "skill": "fail", "parameters": {"n": 9}, "max_retries": 0, "recovery": "pause"}
    assert bounded(made, plan_of(task), run_id="r").phase in ("paused", "failed")


# Results ----------------------------------------------------------------------------------------------------------


def test_a_result_of_a_paused_run_shares_nothing_with_the_run() -> None:
    """`result_of` hands out the committed context and the data of tasks themselves."""
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


# Streams ----------------------------------------------------------------------------------------------------------


def test_a_stream_that_is_just_left_ends_with_its_event_loop_and_without_a_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """`asyncio.run` closes both generators, `_drive` and the `steps` below it, at once: the second is running."""
    made = basic()
    plan = plan_of({"id": "a", **NAP}, {"id": "clean", "dependencies": ["a"], "join": "all_done"})

    async def main() -> None:
        async for event in made.engine.stream(plan):
            if event.type == "task_started":
                break

    with caplog.at_level(logging.ERROR, "asyncio"):
        drive(main())
    assert caplog.messages == []
    assert made.events[-1].type == "run_finished"
