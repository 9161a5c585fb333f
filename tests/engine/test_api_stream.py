"""A run as a stream of its events, which goes on only as they are taken."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from fsm_agent import Event, RunResult
from fsm_agent.errors import UsageError
from tests.engine.support import basic, drive, others_end, plan_of, until

CHAIN = plan_of(*({"id": f"t{n}", "dependencies": [f"t{n - 1}"] if n else []} for n in range(4)))
NAP: dict[str, Any] = {"skill": "nap", "parameters": {"s": 10}}
WITH_CLEANUP = plan_of({"id": "a", **NAP}, {"id": "clean", "dependencies": ["a"], "join": "all_done"})


def test_a_stream_gives_what_listeners_get_and_then_the_result() -> None:
    made = basic()

    async def main() -> tuple[list[Event], RunResult | None]:
        stream = made.engine.stream(CHAIN, run_id="r")
        assert (stream.run_id, stream.result) == ("r", None)
        return [event async for event in stream], stream.result

    events, result = drive(main())
    assert events[-1].type == "run_finished"
    assert events == made.events[-len(events) :]
    assert result is not None
    assert result.completed


def test_a_stream_begins_with_the_first_event_of_its_run() -> None:
    made = basic()

    async def main() -> list[Any]:
        return [event async for event in made.engine.stream(plan_of({"id": "a"}))]

    assert drive(main()) == made.events


def test_a_stream_that_nobody_took_anything_from_can_be_closed_and_its_run_is_gone() -> None:
    made = basic()

    async def main() -> None:
        async with made.engine.stream(plan_of({"id": "a"}), run_id="r"):
            pass
        assert made.engine.run_ids == ()

    drive(main())


def test_a_stream_whose_iterator_was_made_and_not_used_can_be_closed() -> None:
    made = basic()

    async def main() -> None:
        stream = made.engine.stream(plan_of({"id": "a"}), run_id="r")
        aiter(stream)
        await stream.aclose()
        assert made.engine.run_ids == ()

    drive(main())


def test_a_run_does_not_run_ahead_of_the_one_who_takes_its_events() -> None:
    made = basic()

    async def main() -> None:
        async for event in made.engine.stream(CHAIN):
            for _ in range(20):
                await asyncio.sleep(0)
            if event.type == "phase_changed" and event.dest != "completed":
                assert made.events[-1] == event, "a step was made before this one's event was taken"
            begun = [each.task for each in made.of("task_started")]
            assert len(made.calls.order) <= len(begun)
            if event.type == "task_started":
                assert begun[-1] == event.task
            if event.type == "task_evaluated":
                assert begun[-1] == event.task, "the next task was started before this one's verdict was taken"

    drive(main())
    assert made.calls.order == ["t0", "t1", "t2", "t3"]


def test_independent_tasks_overlap_in_a_stream_too() -> None:
    made = basic()

    async def main() -> None:
        async for _ in made.engine.stream(plan_of(*({"id": f"t{n}", **NAP} for n in range(5)))):
            pass

    drive(main())
    assert made.clock.monotonic() == 10


def test_a_stream_pauses_with_its_run_and_the_run_can_be_resumed() -> None:
    made = basic()

    async def main() -> RunResult:
        stream = made.engine.stream(CHAIN, run_id="r")
        async for event in stream:
            if event.type == "task_started" and event.task == "t1":
                await made.engine.pause("r")
        assert stream.result is not None
        assert stream.result.phase == "paused"
        assert made.calls.order == ["t0", "t1"]
        return await made.engine.resume("r")

    assert drive(main()).completed


def test_a_deadline_ends_a_stream() -> None:
    made = basic()

    async def main() -> RunResult | None:
        stream = made.engine.stream(WITH_CLEANUP, deadline=3)
        async for _ in stream:
            pass
        return stream.result

    result = drive(main())
    assert result is not None
    assert ((result.reason or {})["kind"], made.clock.monotonic(), made.calls.order) == ("limit", 3, ["a", "clean"])


@pytest.mark.parametrize("how", ["aclose", "async with", "cancelled"])
def test_leaving_a_stream_early_cancels_its_run_and_still_cleans_up(how: str) -> None:
    made = basic()

    async def take(stream: Any) -> None:
        async for event in stream:
            if event.type == "task_started":
                if how == "cancelled":
                    await asyncio.Event().wait()
                break

    async def main() -> None:
        stream = made.engine.stream(WITH_CLEANUP)
        if how == "async with":
            async with stream:
                await take(stream)
        elif how == "aclose":
            await take(stream)
            await stream.aclose()
        else:
            taking = asyncio.create_task(take(stream))
            await until(lambda: made.of("task_started"))
            taking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await taking
            await stream.aclose()
        assert await others_end() == set()
        assert stream.result is not None
        assert stream.result.phase == "cancelled"

    drive(main())
    assert made.calls.order[-1] == "clean"
    assert made.engine.run_ids == ()


def test_a_stream_that_was_taken_to_its_end_can_be_closed() -> None:
    made = basic()

    async def main() -> RunResult | None:
        async with made.engine.stream(CHAIN) as stream:
            async for _ in stream:
                pass
        await stream.aclose()
        return stream.result

    result = drive(main())
    assert result is not None
    assert result.completed


def test_many_streams_and_runs_go_on_side_by_side() -> None:
    made = basic()

    async def taken(run_id: str) -> set[str]:
        return {event.run_id async for event in made.engine.stream(CHAIN, run_id=run_id)}

    async def main() -> list[set[str]]:
        runs = [asyncio.create_task(made.engine.run(CHAIN, run_id=f"r{n}")) for n in range(10)]
        streams = await asyncio.gather(*(taken(f"s{n}") for n in range(10)))
        assert all(result.completed for result in await asyncio.gather(*runs))
        return streams

    assert drive(main()) == [{f"s{n}"} for n in range(10)]


def test_a_stream_that_is_just_left_ends_with_its_event_loop_and_without_a_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
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


def test_a_stream_has_one_consumer() -> None:
    made = basic()

    async def main() -> None:
        stream = made.engine.stream(plan_of({"id": "a"}))
        async for _ in stream:
            with pytest.raises(UsageError, match="one consumer"):
                aiter(stream)

    drive(main())


def test_a_stream_that_is_closed_while_another_task_takes_its_events_cancels_its_run() -> None:
    made = basic()
    stream = made.engine.stream(plan_of({"id": "a", "skill": "nap", "parameters": {"s": 1000}}))

    async def main() -> None:
        async def consume() -> None:
            async for _ in stream:
                pass

        consumer = asyncio.create_task(consume())
        await until(lambda: bool(made.of("task_started")))
        await stream.aclose()
        await consumer

    drive(main())
    assert stream.result is not None
    assert stream.result.phase == "cancelled"
