"""What the tests of the engine share: an engine on a simulated clock that keeps all its events, and a few skills."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fsm_agent import Event, PlannerEngine, RunResult, SkillContext, skill
from fsm_agent.clock import Clock
from fsm_agent.plan.loader import PlanSource
from fsm_agent.testing import FixedRandom, SimulatedClock

T = TypeVar("T")
Skills = Mapping[str, Callable[..., Any]]


@dataclass
class Bench:
    """An engine under test, its clock, and the events of all its runs."""

    engine: PlannerEngine
    clock: Clock
    events: list[Event] = field(default_factory=list)

    def run(self, plan: PlanSource | None = None, **options: Any) -> RunResult:
        return self.engine.run_sync(plan, **options)

    def of(self, *types: str, task: str | None = None) -> list[Any]:
        """The events of these types, of one task or of all."""
        return [event for event in self.events if event.type in types and task in (None, event.task)]

    def types(self) -> list[str]:
        return [event.type for event in self.events]


def bench(skills: Any = None, *, clock: Clock | None = None, **engine: Any) -> Bench:
    """An engine on a simulated clock, with half of every random wait."""
    clock = clock or SimulatedClock()
    engine.setdefault("random", FixedRandom(0.5))
    made = Bench(PlannerEngine(skills, clock=clock, **engine), clock)
    made.engine.add_listener(made.events.append)
    return made


def drive(main: Coroutine[Any, Any, T]) -> T:
    """Run a test's own coroutine; a hung one is a failure, not a hang."""

    async def bounded() -> T:
        async with asyncio.timeout(20):
            return await main

    return asyncio.run(bounded())


def bounded(made: Bench, plan: Any, **options: Any) -> RunResult:
    """A run that must not hang: after two seconds it is given up."""

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan, **options))
        done, _ = await asyncio.wait({run}, timeout=2)
        for _ in range(3):
            if not run.done():
                run.cancel()
                await asyncio.wait({run}, timeout=0.2)
        assert done, "the run hangs"
        return run.result()

    return drive(main())


async def until(condition: Callable[[], object]) -> None:
    """Let the event loop go on until something has become so. Meanwhile a simulated clock stands still."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never became so")


async def others_end() -> set[asyncio.Task[Any]]:
    """What still runs beside the caller, once the loop had a few turns to let things end."""
    for _ in range(5):
        await asyncio.sleep(0)
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type] # there is a current task here


def plan_of(*tasks: Mapping[str, Any], **keys: Any) -> dict[str, Any]:
    """A plan; a task without skill, verification or worker is done by `ok`."""
    named = {"skill", "verification", "worker"}
    return {**keys, "tasks": [dict(task) if named & task.keys() else {**task, "skill": "ok"} for task in tasks]}


def resumed_after(
    made: Bench, plan: dict[str, Any], *decisions: tuple[Any, ...], **words: Any
) -> tuple[RunResult, RunResult]:
    """A run that pauses, and what becomes of it after these decisions: (task, decision)."""

    async def main() -> tuple[RunResult, RunResult]:
        paused = await made.engine.run(plan, run_id="r")
        for task, decision in decisions:
            await made.engine.decide("r", task, decision, **words)
        return paused, await made.engine.resume("r")

    return drive(main())


def statuses(result: RunResult) -> dict[str, str]:
    """Each task's status, or the reason of its skip."""
    return {task: each.reason or each.status for task, each in result.tasks.items()}


def most_at_once(events: list[Event]) -> int:
    """The greatest number of tasks that ran at one time, by the events alone."""
    running: set[str | None] = set()
    most = 0
    for event in events:
        if event.type == "task_started":
            running.add(event.task)
        elif event.type in ("task_evaluated", "visit_discarded"):
            running.discard(event.task)
        most = max(most, len(running))
    return most


def shared_locks(events: list[Event], locks: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Pairs of tasks that ran at once though they name a common lock."""
    running: set[str] = set()
    found = []
    for event in events:
        task = event.task or ""
        if event.type == "task_started":
            found += [(task, other) for other in running if set(locks[task]) & set(locks[other])]
            running.add(task)
        elif event.type in ("task_evaluated", "visit_discarded"):
            running.discard(task)
    return found


class Calls:
    """Skills that keep count of their calls, by task."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        self.order: list[str] = []

    def note(self, context: SkillContext) -> None:
        self.of[context.task_id] += 1
        self.order.append(context.task_id)


def basic_skills(calls: Calls, clock: SimulatedClock) -> Skills:
    """`ok`, `nap(s)`, `write(key, value, s)`, and `fail(n)`, which fails its first n calls of a task."""

    async def pause(seconds: float) -> None:
        if seconds:
            await clock.sleep(seconds)

    async def ok(context: SkillContext) -> dict[str, Any]:
        calls.note(context)
        return {}

    async def nap(s: float, context: SkillContext) -> dict[str, Any]:
        calls.note(context)
        await pause(s)
        return {"napped": s}

    async def write(key: str, value: Any, context: SkillContext, s: float = 0.0) -> dict[str, Any]:
        calls.note(context)
        await pause(s)
        context.set(key, value)
        return {"seen": context.get(key)}

    @skill(idempotent=True)
    async def fail(n: int, context: SkillContext, s: float = 0.0) -> dict[str, Any]:
        calls.note(context)
        await pause(s)
        if calls.of[context.task_id] <= n:
            raise OSError(f"call {calls.of[context.task_id]} fails")
        return {"calls": calls.of[context.task_id]}

    return {"ok": ok, "nap": nap, "write": write, "fail": fail}


@dataclass
class Basic(Bench):
    """A bench with the basic skills."""

    calls: Calls = field(default_factory=Calls)


def basic(more: Skills | None = None, **engine: Any) -> Basic:
    """A bench with the basic skills on a simulated clock, and some more."""
    clock, calls = SimulatedClock(), Calls()
    made = bench({**basic_skills(calls, clock), **(more or {})}, clock=clock, **engine)
    return Basic(made.engine, made.clock, made.events, calls)
