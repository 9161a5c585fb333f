"""Random plans, several tasks of which run at a time, in processes that die at random moments.

Timing makes a difference here, so that no two runs need end alike. What is looked at holds always: no settled visit is
called again, nothing that may not be called twice is without somebody's word, keys stay the same, a run ends or waits
for somebody, nothing of it still runs then, and its journal gives the very state that its process had.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from fsm_agent import Event, PlannerEngine, RunResult, SkillContext, skill
from fsm_agent.core.decide import decide
from fsm_agent.core.machine import FINAL
from fsm_agent.core.run import Run
from fsm_agent.errors import DecisionRefused, RunNotActive, StoreUnavailable
from fsm_agent.journal import writer
from fsm_agent.testing import FixedRandom
from tests.crash.fuzz import WHEN
from tests.crash.harness import Call, Killed, MortalStore, World
from tests.engine.scripted import Player, playable
from tests.likeness import differences
from tests.reference import random_plan
from tests.reference.graph import is_decision

LIVES = 80
"""So many processes at most come to the end of a run; in the later half of them people do not say `rerun`."""
ONCE = frozenset({"once", "careful", "undo_once"})
"""Skills that are not idempotent."""
WATCHED = ".moved: "
"""Where a driver's projection watches a run: no state of it."""
WORDS = {
    "task": ("approve", "approve", "approve", "reject"),
    "failed": ("rerun", "done", "skip", "fail"),
    "interrupted": ("rerun", "rerun", "done", "skip", "fail"),
    "compensation": ("rerun", "done"),
}
"""What people say about each kind of question."""


class Seen(PlannerEngine):
    """An engine that shows the run that it drives."""

    live: Run | None = None

    def _handle(self, run: Run, *arguments: Any) -> Any:
        self.live = run
        return super()._handle(run, *arguments)


@dataclass
class Overlapping(World):
    """A world whose tasks do what a random plan's script says, some of them at their second attempt only."""

    outcomes: dict[str, list[Any]] = field(default_factory=dict)
    seed: int = 0
    made: list[tuple[str, str, int]] = field(default_factory=list)
    """Each call that may not be made twice: its skill, task and visit."""
    player: Player = field(init=False)

    def engine(self, store: Any, clock: Any = None, **words: Any) -> Seen:
        self.player = Player(self.outcomes, self.seed, longest=9)
        self.player.clock = type(self.player.clock)(self.now)
        return Seen(self.skills(), clock=self.player.clock, random=FixedRandom(0.5), store=store, **words)

    def skills(self) -> Any:
        def of(name: str, does: Callable[[SkillContext], Awaitable[Any]], **declared: Any) -> Any:
            async def call(context: SkillContext) -> Any:
                kind = "undo" if name.startswith("undo") else "do"
                call = Call(f"{kind} {context.task.id}", context.visit, context.attempt, context.idempotency_key)
                self.ledger.append(call)
                if name in ONCE:
                    self.made.append((kind, context.task.id, context.visit))
                return await does(context)

            return skill(name, **declared)(call)

        return [
            of("stub", self._play, idempotent=True),
            of("once", self._play),
            of("careful", self._play, retry_on=("ConnectionError",), max_retries=2),
            of("undo", self._undo, idempotent=True),
            of("undo_once", self._undo),
        ]

    async def _play(self, context: SkillContext) -> Any:
        chance = random.Random(f"{self.seed} {context.task.id} {context.visit} {context.attempt}")
        if chance.random() < 0.2:
            await self.player.clock.sleep(chance.randint(1, 3))
            raise ConnectionError("down for a moment")
        if context.task.id == "slow":
            await self.player.clock.sleep(20)
        return await self.player.stub(context)

    async def _undo(self, context: SkillContext) -> Any:
        return await self.player.undo(context)


def overlapping_round(seed: int) -> Counter[str]:
    """One plan and its deaths. Raises AssertionError; returns what there was to see."""
    chance = random.Random(f"overlapping {seed}")
    plan, outcomes = random_plan(random.Random(seed))
    script = playable(plan, outcomes)
    plan = _varied(plan, chance)
    if plan.get("flow") != "sequential" and chance.random() < 0.4:
        plan = {**plan, "tasks": [*_LOOP, *plan["tasks"]]}
        script |= {"again": ["ok"], "slow": ["ok"], "quick": ["ok"], "judge": ["fail", "fail", "ok"]}
    often = mock.patch.multiple(writer, SELDOM=chance.choice((3, 10, 4_000)), AT_REST=2)
    with tempfile.TemporaryDirectory() as name, often:
        world = Overlapping(Path(name), outcomes=script, seed=seed)
        try:
            return _lives(world, plan, chance)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


_LOOP = (
    {"id": "again", "skill": "stub", "priority": "high"},
    {"id": "slow", "skill": "once", "dependencies": ["again"], "priority": "high"},
    {"id": "quick", "skill": "stub", "dependencies": ["again"], "priority": "high"},
    {"id": "judge", "skill": "stub", "dependencies": ["slow", "quick"], "join": "any", "on_failure": "again",
     "priority": "high", "max_retries": 0},
)  # fmt: skip
"""A loop whose jump comes while a task of it runs."""


def _varied(plan: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The plan with skills that are not idempotent, retries, and people who are asked."""
    tasks = []
    for task in map(dict, plan["tasks"]):
        if not is_decision(plan, task):
            task["skill"] = chance.choice(("stub", "stub", "once", "careful"))
            task.update({"max_retries": chance.randint(0, 3)} if chance.random() < 0.4 else {})
            task.update({"approval": "required"} if chance.random() < 0.08 else {})
        if "compensation" in task:
            task["compensation"] = {"skill": chance.choice(("undo", "undo_once"))}
        tasks.append(task)
    limits = {**plan.get("limits", {}), "cleanup_timeout": 1_000_000, "max_parallel": chance.randint(2, 8)}
    return {**plan, "tasks": tasks, "limits": limits}


# Lives --------------------------------------------------------------------------------------------------------------


def _lives(world: Overlapping, plan: dict[str, Any], chance: random.Random) -> Counter[str]:
    deaths = chance.randint(1, 5)
    for life in range(LIVES):
        at = chance.randint(1, 12) if life < deaths else 0
        store = MortalStore(world.open(), at, chance.choice(WHEN))
        settled = world.settled() if world.exists() else set()
        calls = len(world.ledger)
        engine = world.engine(store)
        try:
            result = asyncio.run(_live(engine, world, plan, chance, is_late=life > LIVES / 2))
            _check_rest(world, engine, result)
        except (Killed, StoreUnavailable):
            assert store.dead
            result = None
        finally:
            world.now = world.player.clock.monotonic() + 1.0
            store._store.close()
        again = {(call.task, call.visit) for call in world.ledger[calls:]} & {(f"do {t}", v) for t, v in settled}
        assert not again, f"called again: {again}"
        if result is not None and result.phase in FINAL:
            return _check_all(world)
    raise AssertionError("it comes to no end")


async def _live(
    engine: Seen, world: Overlapping, plan: dict[str, Any], chance: random.Random, *, is_late: bool
) -> RunResult:
    if not world.exists():
        if chance.random() < 0.5:
            return await engine.run(plan, run_id="r")
        stream = engine.stream(plan, run_id="r")
        async for _ in stream:
            pass
        assert stream.result is not None
        return stream.result
    _interfere(engine, chance)
    shown = await engine.show("r")
    if shown.phase in FINAL:
        return shown
    if shown.phase != "paused":
        try:
            recovery = await engine.recover()
        except BaseExceptionGroup as group:
            raise (group.exceptions[0]) from None
        assert not recovery.failed, recovery.failed
        return recovery.results[0]
    for asked in shown.waiting:
        words = WORDS[asked["kind"]]
        try:
            await engine.decide("r", asked["approval"], words[-1] if is_late else chance.choice(words))
        except DecisionRefused as refused:
            # By a process that died before it was told so; or a decision just now has led back to before the question.
            assert any(words in refused.message for words in ("decided already", "nothing waits"))  # noqa: PT017
    return await engine.resume("r")


def _interfere(engine: Seen, chance: random.Random) -> None:
    """Now and then somebody asks for a pause, or for the end, at some moment."""
    left, asking = chance.randint(1, 15), []
    wish = chance.choices(("", "pause", "cancel"), (80, 15, 5))[0]

    async def ask() -> None:
        if "r" in engine.run_ids:
            with suppress(RunNotActive, Killed):
                await getattr(engine, wish)("r")

    def listen(event: Event) -> None:
        nonlocal left
        left -= 1
        if left == 0 and wish:
            asking.append(asyncio.get_running_loop().create_task(ask()))

    engine.add_listener(listen)


# What holds ---------------------------------------------------------------------------------------------------------


def _check_rest(world: Overlapping, engine: Seen, result: RunResult) -> None:
    """What holds whenever a run is over, or rests."""
    events = world.events()
    assert result.phase in FINAL or result.phase == "paused", result.phase
    assert (result.reason or {}).get("kind") != "stalled"
    if result.phase == "paused":
        # What somebody was asked may have been withdrawn by a jump since.
        asked = {"approval_asked", "pause_asked"} & {event.type for event in events}
        assert result.waiting or asked, "it rests, and nobody was asked anything"
        assert {each["kind"] for each in result.waiting} <= WORDS.keys()
    waits = {each["task"] for each in result.waiting}
    for task, each in result.tasks.items():
        assert each.status != "RUNNING", task
        assert each.status != "WAITING_APPROVAL" or task in waits, f"{task} waits, and nobody is asked about it"
    live = engine.live
    if live is not None:
        fresh = Run("r", lambda _: live.compiled)
        for event in events:
            fresh.evolve(event)
        decide(fresh)  # as its driver does: whose turn it is was looked at
        found = [each for each in differences(live, fresh) if WATCHED not in each]
        assert not found, f"the journal gives another state: {found[:5]}"


def _check_all(world: Overlapping) -> Counter[str]:
    """What holds of all calls, and of all that was recorded. Returns what there was to see."""
    events = world.events()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    keys: dict[tuple[str, int], set[str]] = {}
    for call in world.ledger:
        keys.setdefault((call.task, call.visit), set()).add(call.key)
    assert all(len(found) == 1 for found in keys.values()), "a key changed"
    assert len(set.union(set(), *keys.values())) == len(keys), "two visits share a key"
    made = {(call.task, call.visit, call.attempt) for call in world.ledger if call.task.startswith("do ")}
    assert made <= {(f"do {t}", v, a) for t, v, a in world.started()}, "a call was made whose start was not kept"
    allowed = _allowed(events)
    for which, count in Counter(world.made).items():
        assert count <= 1 + allowed[which], f"{which} was called {count} times"
    return _seen(events)


def _allowed(events: list[Event]) -> Counter[tuple[str, str, int]]:
    """How many calls of a visit, or of its undoing, there may be besides the first: each failed one that is tried
    again, and each that a person wants again."""
    kinds = {event.approval: event.kind for event in events if event.type == "approval_asked"}  # type: ignore[attr-defined]
    found = Counter[tuple[str, str, int]]()
    undoing = False
    for event in events:
        undoing = event.type in ("rollback_started", "compensation_started") or (
            undoing and event.type != "rolled_back"
        )
        which = ("undo" if undoing else "do", event.task or "", getattr(event, "visit", 0))
        if event.type == "attempt_failed":
            found[which] += 1
        elif event.type == "approval_decided" and getattr(event, "decision", "") == "rerun":
            kind = kinds[event.approval]  # type: ignore[attr-defined]
            found[("undo" if kind == "compensation" else "do", *which[1:])] += kind != "failed"
    return found


def _seen(events: list[Event]) -> Counter[str]:
    found = Counter(event.type for event in events)
    lost = found["task_interrupted"]
    interesting = {
        "interrupted": lost,
        "interrupted more than once": max(0, lost - 1),
        "discarded": found["visit_discarded"],
        "tried again": found["attempt_failed"],
        "undone": found["compensated"],
        "decided": found["approval_decided"],
    }
    ends = {f"ended {event.phase}": 1 for event in events if event.type == "run_finished"}  # type: ignore[attr-defined]
    return Counter({name: 1 for name, count in interesting.items() if count} | ends)
