"""A world in which processes die: stores that kill or fail at a chosen write, and skills that note each of their calls.

A killed process is one whose engine hears nothing more: the write that kills raises what no engine expects, and from
then on the store takes nothing of it, not even its lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from msgspec import structs

from fsm_agent import Event, PlannerEngine, RunResult, SkillContext, skill
from fsm_agent.core.machine import FINAL
from fsm_agent.errors import StoreBusy, StoreUnavailable
from fsm_agent.journal import codec
from fsm_agent.journal.opening import open_store
from fsm_agent.journal.owners import Owner
from fsm_agent.journal.store import Store
from fsm_agent.testing import FixedRandom, SimulatedClock


class Killed(BaseException):
    """The process has died."""


class MortalStore:
    """A store whose user dies at its write number `at`, before it (the write is lost) or after it."""

    def __init__(self, store: Store, at: int = 0, when: Literal["before", "after"] = "before") -> None:
        self._store = store
        self._at = at
        self._when = when
        self.writes = 0
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            if self.dead:
                raise StoreUnavailable("the process is dead")
            return found(*map(_doomed, arguments), **options)

        return call

    def create(self, *arguments: Any) -> Any:
        return self._write(self._store.create, *map(_doomed, arguments))

    def commit(self, *arguments: Any) -> Any:
        return self._write(self._store.commit, *arguments)

    def _write(self, write: Callable[..., Any], *arguments: Any) -> Any:
        if self.dead:
            raise Killed
        self.writes += 1
        if self.writes == self._at:
            self.dead = True
            if self._when == "after":
                write(*arguments)
            raise Killed
        return write(*arguments)


def _doomed(argument: Any) -> Any:
    """An owner that others take for gone: it began at another time than the process of its number."""
    return structs.replace(argument, started="0") if isinstance(argument, Owner) else argument


class TroubledStore:
    """A store whose writes fail from number `at` on, for so many of them; each with a fresh error."""

    def __init__(self, store: Store, at: int, fails: float, error: type[StoreBusy | StoreUnavailable]) -> None:
        self._store = store
        self._at = at
        self._fails = fails
        self._error = error
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def create(self, *arguments: Any) -> Any:
        return self._write(self._store.create, *arguments)

    def commit(self, *arguments: Any) -> Any:
        return self._write(self._store.commit, *arguments)

    def _write(self, write: Callable[..., Any], *arguments: Any) -> Any:
        self.writes += 1
        if self._at <= self.writes < self._at + self._fails:
            raise self._error("there is trouble")
        return write(*arguments)


@dataclass
class Call:
    """One call of a skill."""

    task: str
    visit: int
    attempt: int
    key: str


def scripted(script: Mapping[str, Callable[[int, int], Any]], context: SkillContext) -> Any:
    """What a script says of a call: data, with its `writes` made, or an exception, which is raised."""
    play = script.get(context.task.id)
    outcome = play(context.visit, context.attempt) if play is not None else {"n": context.visit}
    if isinstance(outcome, Exception):
        raise outcome
    for key, value in (outcome.pop("writes", None) or {}).items():
        context.set(key, value)
    return outcome


@dataclass
class World:
    """A folder with a store, a clock that goes on over all deaths, and a ledger of all calls."""

    folder: Path
    script: Mapping[str, Callable[[int, int], Any]] = field(default_factory=dict)
    """What tasks do: (visit, attempt) → data, or an exception to raise. All others return their visit."""
    ledger: list[Call] = field(default_factory=list)
    now: float = 0.0
    patience: float = 0.05

    def open(self) -> Store:
        clock = SimulatedClock(self.now)
        return open_store(f"sqlite:///{self.folder}/runs.db?busy_timeout={self.patience}", clock=clock)

    def engine(self, store: Any, clock: SimulatedClock | None = None, **words: Any) -> PlannerEngine:
        self.now += 1.0
        clock = clock or SimulatedClock(self.now)
        return PlannerEngine(self.skills(), clock=clock, random=FixedRandom(0.5), store=store, **words)

    def skills(self) -> list[Any]:
        async def play(context: SkillContext) -> Any:
            name = context.task.id
            self.ledger.append(Call(name, context.visit, context.attempt, context.idempotency_key))
            await asyncio.sleep(0)
            return scripted(self.script, context)

        @skill(idempotent=True)
        async def work(context: SkillContext) -> Any:
            return await play(context)

        @skill
        async def once(context: SkillContext) -> Any:
            return await play(context)

        return [work, once]

    def events(self) -> list[Event]:
        store = self.open()
        try:
            return [codec.decode(stored, "r") for stored in store.events("r")]
        finally:
            store.close()

    def settled(self) -> set[tuple[str, int]]:
        """The visits that the journal says are over."""
        over = ("task_evaluated", "visit_discarded")
        return {(event.task or "", getattr(event, "visit", 0)) for event in self.events() if event.type in over}

    def started(self) -> set[tuple[str, int, int]]:
        """The calls whose start is in the journal."""
        found = set()
        for event in self.events():
            if event.type == "task_started":
                found.add((event.task or "", getattr(event, "visit", 0), 1))
            elif event.type == "attempt_started":
                found.add((event.task or "", getattr(event, "visit", 0), getattr(event, "attempt", 0)))
        return found

    def exists(self) -> bool:
        store = self.open()
        try:
            return bool(store.heads())
        finally:
            store.close()


async def run_step_by_step(engine: PlannerEngine, plan: Any, **options: Any) -> RunResult:
    """Each command with a commit of its own: so that there are as many moments to die at as can be."""
    stream = engine.stream(plan, run_id="r", **options)
    async for _ in stream:
        pass
    assert stream.result is not None
    return stream.result


def die(world: World, plan: Any, at: int, when: Literal["before", "after"], *, steps: bool, **options: Any) -> int:
    """Run until death; returns the number of writes that were asked for."""
    store = MortalStore(world.open(), at, when)

    async def main() -> None:
        engine = world.engine(store, **options)
        await (run_step_by_step(engine, plan) if steps else engine.run(plan, run_id="r"))

    try:
        asyncio.run(main())
    except Killed:
        pass
    finally:
        world.now += 1.0
        store._store.close()
    return store.writes


def go_on(world: World, at: int = 0, when: Literal["before", "after"] = "before", **options: Any) -> RunResult | None:
    """Resume in a fresh process, which may die as well: then there is no result."""
    store = MortalStore(world.open(), at, when)

    async def main() -> RunResult:
        return await world.engine(store, **options).resume("r")

    try:
        return asyncio.run(main())
    except Killed:
        return None
    finally:
        world.now += 1.0
        store._store.close()


def verdict(result: RunResult) -> dict[str, Any]:
    """What must be the same whether or not a process died on the way."""
    return {
        "phase": result.phase,
        "outcome": result.outcome,
        "statuses": {task: (each.status, each.reason) for task, each in result.tasks.items()},
        "visits": {task: each.visits for task, each in result.tasks.items()},
        "data": {task: each.data for task, each in result.tasks.items()},
        "context": result.context,
        "output": result.output,
    }


def is_over(result: RunResult | None) -> bool:
    return result is not None and result.phase in FINAL
