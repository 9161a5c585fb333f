"""What `fsm_agent.testing` gives to tests of agents."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from fsm_agent import PlannerEngine, PlanRequest
from fsm_agent.testing import FixedRandom, ScriptedPlanner, ScriptedSkill, SimulatedClock, Takes
from tests.engine.support import drive

PLAN = {"tasks": [{"id": "a", "skill": "book"}]}


def test_a_scripted_skill_is_given_to_an_engine_as_it_is() -> None:
    assert PlannerEngine([ScriptedSkill("book", ["done"])]).run_sync(PLAN).tasks["a"].data == "done"


def test_the_example_of_its_docstring_runs() -> None:
    clock = SimulatedClock()
    book = ScriptedSkill("book", [OSError("down"), Takes(30, {"cost": 80})], clock=clock, idempotent=True)
    engine = PlannerEngine([book], clock=clock, random=FixedRandom(0.0))
    assert engine.run_sync(PLAN).tasks["a"].data == {"cost": 80}
    assert clock.monotonic() == 30
    assert book.calls == [{}, {}]


def test_a_scripted_skill_repeats_its_last_entry_and_may_compute_it() -> None:
    double = ScriptedSkill("double", [1, lambda n: n * 2])
    tasks = [{"id": f"t{n}", "skill": "double", "parameters": {"n": n}} for n in range(3)]
    result = PlannerEngine([double]).run_sync({"tasks": tasks, "limits": {"max_parallel": 1}})
    assert [each.data for each in result.tasks.values()] == [1, 2, 4]
    assert double.calls == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_a_scripted_planner_proposes_one_plan_after_the_other() -> None:
    planner = ScriptedPlanner([PLAN, OSError("down")])

    async def main() -> Any:
        first = await planner.propose(PlanRequest("r", "g"))
        with pytest.raises(OSError, match="down"):
            await planner.propose(PlanRequest("s"))
        return first

    assert drive(main()).plan is PLAN
    assert [request.run_id for request in planner.requests] == ["r", "s"]


def test_an_hour_of_a_simulated_clock_takes_no_time() -> None:
    clock = SimulatedClock(start=5.0)

    async def main() -> None:
        await asyncio.gather(*(clock.sleep(seconds) for seconds in (3600, 60, 1800)))

    began = time.monotonic()
    drive(main())
    assert time.monotonic() - began < 5
    assert clock.monotonic() == 3605
    assert clock.now() - SimulatedClock().now() == 3605


def test_sleepers_of_a_simulated_clock_wake_in_the_order_of_their_time() -> None:
    clock = SimulatedClock()
    woken: list[tuple[float, float]] = []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((seconds, clock.monotonic()))

    async def main() -> None:
        await asyncio.gather(*(sleeper(seconds) for seconds in (3, 1, 2, 1, 0)))

    drive(main())
    assert woken == [(0, 0), (1, 1), (1, 1), (2, 2), (3, 3)]


def test_a_simulated_clock_stands_still_while_a_sync_skill_works() -> None:
    clock = SimulatedClock()

    def work() -> float:
        time.sleep(0.05)
        return clock.monotonic()

    engine = PlannerEngine({"work": work}, clock=clock)
    result = engine.run_sync({"tasks": [{"id": "a", "skill": "work", "timeout": 0.01}]})
    assert (result.tasks["a"].data, clock.monotonic()) == (0.0, 0.0)


def test_a_call_that_was_cancelled_does_not_come_and_moves_no_time() -> None:
    clock = SimulatedClock()
    called: list[str] = []

    async def main() -> None:
        clock.call_later(5, lambda: called.append("first")).cancel()
        clock.call_later(3, lambda: called.append("second"))
        await clock.sleep(4)

    drive(main())
    assert (called, clock.monotonic()) == (["second"], 4)


def test_one_simulated_clock_serves_one_event_loop_after_the_other() -> None:
    clock = SimulatedClock()
    for _ in range(3):
        drive(clock.sleep(10))
    assert clock.monotonic() == 30
