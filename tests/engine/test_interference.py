"""Runs that people interfere with at random moments: they still end, are whole, and replay to the same result."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from fsm_agent import Event, RunResult
from fsm_agent.core.machine import FINAL
from fsm_agent.errors import DecisionRefused, RunNotActive, UnknownRun
from tests.engine.scripted import Player, play, playable, replayed, told
from tests.engine.support import Bench, bench, drive, others_end, shared_locks
from tests.engine.test_properties import assert_whole, verdict
from tests.reference import random_plan

BLOCKS = pytest.mark.parametrize("block", range(4))
A_BLOCK = 30
ANSWERS = {
    "task": ("approve", "approve", "reject", "skip"),
    "failed": ("rerun", "done", "skip", "fail"),
    "compensation": ("rerun", "done"),
}


def asking_plan(seed: int) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """A random plan, some of whose tasks need approval, and its script."""
    chance = random.Random(seed)
    plan, outcomes = random_plan(chance)
    for task in plan["tasks"]:
        if task.get("skill") and chance.random() < 0.25:
            task["approval"] = "required"
            if chance.random() < 0.5:
                task["approval_timeout"] = chance.randint(1, 30)
        if chance.random() < 0.5:
            task["locks"] = chance.sample(["x", "y", "z"], chance.randint(1, 2))
    plan.setdefault("limits", {})["cleanup_timeout"] = 1_000_000
    return plan, playable(plan, outcomes)


class Meddler:
    """Somebody who pauses, decides and cancels at random moments, and resumes what rests."""

    def __init__(self, made: Bench, seed: int, *, cancels: bool) -> None:
        self.made = made
        self.chance = random.Random(seed)
        self.cancels = cancels

    async def see_it_through(self, plan: dict[str, Any]) -> RunResult | None:
        """Start the run, and go on with it until it is over. None if it was ended while it rested."""
        run = asyncio.create_task(self.made.engine.run(plan, run_id="r", max_parallel=3))
        other = asyncio.create_task(self.meddle())
        result: RunResult | None = await run
        while result is not None and result.phase not in FINAL:
            await self.decide(result.waiting)
            if self.chance.random() < 0.1:
                await self.made.clock.sleep(self.chance.randint(1, 40))
            result = await self.resume()
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        return result

    async def resume(self) -> RunResult | None:
        try:
            return await self.made.engine.resume("r")
        except (UnknownRun, RunNotActive):  # it was cancelled meanwhile, and may still clean up
            while self.made.engine.run_ids:
                await self.made.clock.sleep(1)
            return None

    async def meddle(self) -> None:
        while True:
            await self.made.clock.sleep(self.chance.randint(1, 15))
            if self.made.events[-1].type == "run_finished":
                return
            try:
                await self.act()
            except (UnknownRun, DecisionRefused):
                continue

    async def act(self) -> None:
        engine, lot = self.made.engine, self.chance.random()
        if lot < 0.3:
            await engine.pause("r")
        elif lot < 0.35 and self.cancels:
            await engine.cancel("r")
        elif (now := engine.status("r")).phase != "paused":
            await self.decide(now.waiting)

    async def decide(self, waiting: list[dict[str, Any]]) -> None:
        for asked in waiting:
            try:
                await self.made.engine.decide("r", asked["approval"], self.chance.choice(ANSWERS[asked["kind"]]))
            except (DecisionRefused, UnknownRun):
                continue


def meddled(seed: int, *, cancels: bool) -> tuple[dict[str, Any], list[Event], RunResult | None]:
    plan, script = asking_plan(seed)
    player = Player(script, seed, longest=9, undo_fails=30)
    made = bench(player.skills(), clock=player.clock)

    async def main() -> RunResult | None:
        result = await Meddler(made, seed, cancels=cancels).see_it_through(plan)
        assert await others_end() == set()
        return result

    return plan, made.events, drive(main())


@BLOCKS
@pytest.mark.parametrize("cancels", [False, True])
def test_a_run_that_people_interfere_with_ends_and_replays_to_the_same_result(block: int, cancels: bool) -> None:
    for seed in range(block * A_BLOCK, (block + 1) * A_BLOCK):
        plan, events, result = meddled(seed, cancels=cancels)
        again = replayed(plan, events)
        assert again.phase in FINAL, f"seed {seed}"
        assert events[-1].type == "run_finished", f"seed {seed}"
        assert_whole(events, result or again, 3)
        assert shared_locks(events, {task["id"]: task.get("locks", []) for task in plan["tasks"]}) == [], f"seed {seed}"
        if result is not None:
            assert told(again) == told(result), f"seed {seed}"


@BLOCKS
def test_a_run_whose_awaiting_task_is_cancelled_at_a_random_moment_ends_and_leaves_nothing(block: int) -> None:
    for seed in range(block * A_BLOCK, (block + 1) * A_BLOCK):
        plan, script = asking_plan(seed)
        player = Player(script, seed, longest=9)
        made = bench(player.skills(), clock=player.clock)

        async def main(plan: Any = plan, made: Bench = made, seed: int = seed) -> None:
            run = asyncio.create_task(made.engine.run(plan, run_id="r"))
            waits = asyncio.create_task(made.clock.sleep(random.Random(seed).randint(0, 25)))
            await asyncio.wait({run, waits}, return_when=asyncio.FIRST_COMPLETED)
            waits.cancel()
            run.cancel()
            await asyncio.gather(run, waits, return_exceptions=True)
            assert await others_end() == set()

        drive(main())
        if made.events[-1].type != "run_finished":
            assert made.engine.run_ids == ("r",), f"seed {seed}: it neither rests nor has ended"
        assert_whole(made.events, replayed(plan, made.events), 8)


@BLOCKS
def test_a_stream_taken_to_its_end_comes_to_the_same_as_a_run(block: int) -> None:
    for seed in range(block * A_BLOCK, (block + 1) * A_BLOCK):
        plan, outcomes = random_plan(random.Random(seed))
        script = playable(plan, outcomes)
        plan.setdefault("limits", {})["cleanup_timeout"] = 1_000_000
        for parallel in (1, 8):
            player = Player(script, seed, longest=9)
            made = bench(player.skills(), clock=player.clock)

            async def main(plan: Any = plan, made: Bench = made, parallel: int = parallel) -> RunResult:
                stream = made.engine.stream(plan, run_id="r", max_parallel=parallel)
                async for _ in stream:
                    await asyncio.sleep(0)
                assert stream.result is not None
                return stream.result

            streamed = drive(main())
            assert_whole(made.events, streamed, parallel)
            if parallel == 1:
                assert verdict(streamed) == verdict(play(plan, script, max_parallel=1, seed=seed, longest=9)[1]), (
                    f"seed {seed}"
                )
