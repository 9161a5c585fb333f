"""Random plans in processes that die at random moments.

A run that is interrupted comes to the same end as one that is not, where nothing but timing could make a difference;
and always: it ends or rests, nothing of it still runs, its journal replays, no settled visit is called again, and no
call was made whose start was not kept.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from fsm_agent import Event, PlannerEngine, RunResult, SkillContext, skill
from fsm_agent.core.machine import FINAL
from fsm_agent.journal.archive import Archive
from fsm_agent.testing import FixedRandom, SimulatedClock
from tests.crash.harness import Call, Killed, MortalStore, World, run_step_by_step
from tests.engine.scripted import Player, playable
from tests.engine.test_properties import verdict
from tests.reference import random_plan

MOST_DEATHS = 3
WHEN: tuple[Literal["before", "after"], ...] = ("before", "after")
Death = tuple[int, Literal["before", "after"]]
"""The number of the write at which a process dies, and whether that is made first."""


class Fuzzed(World):
    """A world whose tasks do what a random plan's script says."""

    def __init__(self, folder: Path, script: dict[str, list[Any]], seed: int) -> None:
        super().__init__(folder)
        self.outcomes = script
        self.seed = seed
        self.undone: list[tuple[str, int]] = []

    def engine(self, store: Any, clock: SimulatedClock | None = None, **words: Any) -> PlannerEngine:
        self.now += 1.0
        player = Player(self.outcomes, self.seed, longest=3)
        player.clock = SimulatedClock(self.now)

        @skill(idempotent=True)
        async def stub(context: SkillContext) -> Any:
            self.ledger.append(Call(context.task.id, context.visit, context.attempt, context.idempotency_key))
            return await player.stub(context)

        @skill(idempotent=True)
        async def undo(context: SkillContext) -> Any:
            self.undone.append((context.task.id, context.visit))
            return await player.undo(context)

        return PlannerEngine(
            {"stub": stub, "undo": undo}, clock=player.clock, random=FixedRandom(0.5), store=store, **words
        )


def one_round(seed: int) -> str:
    """One plan and its deaths. Raises AssertionError; returns what kind of round it was."""
    chance = random.Random(f"crash {seed}")
    plan, outcomes = random_plan(random.Random(seed))
    return torn_round(plan, playable(plan, outcomes), seed, chance)


def torn_round(plan: dict[str, Any], script: dict[str, list[Any]], seed: int, chance: random.Random) -> str:
    """The same for a given plan and script."""

    def deaths(writes: int) -> list[Death]:
        count = chance.randint(1, MOST_DEATHS)
        return [(chance.randint(1, max(writes, 2)), chance.choice(WHEN)) for _ in range(count)]

    return _round(plan, script, seed, deaths, steps=chance.random() < 0.5)[0]


def every_position(plan: dict[str, Any], script: dict[str, list[Any]]) -> int:
    """One death at each write of a plan, before it and after it. Returns how many there were."""
    at, most, count = 1, 1, 0
    while at <= most:
        for when in WHEN:
            death = (at, when)
            _, most = _round(plan, script, 0, lambda _, death=death: [death], steps=True)  # type: ignore[misc]
            count += 1
        at += 1
    return count


def _round(
    plan: dict[str, Any],
    script: dict[str, list[Any]],
    seed: int,
    deaths: Callable[[int], list[Death]],
    *,
    steps: bool,
) -> tuple[str, int]:
    plan = {**plan, "limits": {**plan.get("limits", {}), "cleanup_timeout": 1_000_000}}
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "whole").mkdir()
        (Path(name) / "torn").mkdir()
        whole = Fuzzed(Path(name) / "whole", script, seed)
        wanted, writes = _whole(whole, plan)
        torn = Fuzzed(Path(name) / "torn", script, seed)
        result = _torn(torn, plan, deaths(writes), steps=steps)
        _check(torn, result, seed)
        times = Counter((event.task, getattr(event, "visit", 0)) for event in torn.events() if _tells_of_death(event))
        if max(times.values(), default=0) > 1:
            return "interrupted twice", writes
        assert verdict(result) == verdict(wanted), f"seed {seed}"
        return "interrupted" if times else "between calls", writes


def _tells_of_death(event: Event) -> bool:
    """An interrupted call, also where its run was ending and it counted as failed."""
    error = getattr(event, "error", None)
    return event.type == "task_interrupted" or (
        event.type in ("task_evaluated", "visit_discarded") and error is not None and error.kind == "interrupted"
    )


def _whole(world: Fuzzed, plan: dict[str, Any]) -> tuple[RunResult, int]:
    store = MortalStore(world.open())

    async def main() -> RunResult:
        return await run_step_by_step(world.engine(store), plan, max_parallel=1)

    try:
        return asyncio.run(main()), store.writes
    finally:
        store._store.close()


def _torn(world: Fuzzed, plan: dict[str, Any], deaths: list[Death], *, steps: bool) -> RunResult:
    """The same run through some deaths; people say of interrupted calls that they are to be made again."""
    for life in range(len(deaths) + 40):
        at, when = deaths[life] if life < len(deaths) else (0, "before")
        store = MortalStore(world.open(), at, when)
        settled = world.settled() if world.exists() else set()
        calls = len(world.ledger)
        try:
            result = asyncio.run(_live(world, store, plan, steps=steps))
        except Killed:
            continue
        finally:
            world.now += 1.0
            store._store.close()
            again = {(call.task, call.visit) for call in world.ledger[calls:]} & settled
            assert not again, f"seed {world.seed}: called again: {again}"
        if result.phase in FINAL or not any(asked["kind"] == "interrupted" for asked in result.waiting):
            return result
        _rerun(world, result)
    raise AssertionError(f"seed {world.seed}: it comes to no end")


async def _live(world: Fuzzed, store: Any, plan: dict[str, Any], *, steps: bool) -> RunResult:
    engine = world.engine(store)
    if world.exists():
        shown = await engine.show("r")
        if shown.phase in FINAL or shown.phase == "paused":
            asked = [each for each in shown.waiting if each["kind"] == "interrupted"]
            if shown.phase in FINAL or (shown.waiting and not asked):
                return shown
            return await engine.resume("r")
        try:
            recovery = await engine.recover()
        except BaseExceptionGroup as group:
            raise (group.exceptions[0]) from None
        assert not recovery.failed, recovery.failed
        return recovery.results[0]
    if steps:
        return await run_step_by_step(engine, plan, max_parallel=1)
    return await engine.run(plan, run_id="r", max_parallel=1)


def _rerun(world: Fuzzed, result: RunResult) -> None:
    store = world.open()

    async def main() -> None:
        for asked in result.waiting:
            if asked["kind"] == "interrupted":
                await world.engine(store).decide("r", asked["approval"], "rerun")

    try:
        asyncio.run(main())
    finally:
        store.close()


def _check(world: Fuzzed, result: RunResult, seed: int) -> None:
    assert result.phase in FINAL or result.phase == "paused", f"seed {seed}: {result.phase}"
    assert not [task for task, each in result.tasks.items() if each.status == "RUNNING"], f"seed {seed}"
    made = {(call.task, call.visit, call.attempt) for call in world.ledger}
    assert made <= world.started(), f"seed {seed}: a call was made whose start was not kept"
    store = world.open()
    try:
        replay = Archive(store).replay("r")
    finally:
        store.close()
    assert verdict(replay.result) == verdict(result), f"seed {seed}"
