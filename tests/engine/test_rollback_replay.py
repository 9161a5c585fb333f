"""Rollback from a journal: folding it at any position gives the same run, and that one goes on in the same way."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from fsm_agent import Event, SkillContext, SkillRegistry, skill
from fsm_agent.core.commands import AskAboutCompensation, Compensate, End, Rest
from fsm_agent.core.decide import decide
from fsm_agent.core.events import RunStarted, TaskInterrupted
from fsm_agent.core.result import result_of
from fsm_agent.core.run import Run
from fsm_agent.engine.compensating import what_became_of
from fsm_agent.engine.driver import Driver
from fsm_agent.engine.planning import Planning, Prepared
from fsm_agent.engine.services import Services
from fsm_agent.engine.simulation import Simulation, check_outcomes
from fsm_agent.journal.memory import MemoryJournal
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.testing import FixedRandom, SimulatedClock
from tests.engine.scripted import compiled, play, playable, told
from tests.engine.support import drive, plan_of
from tests.reference import random_plan


def folded(shape: CompiledPlan, events: list[Event], run_id: str = "r") -> Run:
    run = Run(run_id, lambda _: shape)
    for event in events:
        run.evolve(event)
    return run


def rolling(count: int) -> list[tuple[int, dict[str, Any], dict[str, list[Any]]]]:
    """Seeds with plans and scripts in whose simulation something is compensated."""
    found: list[tuple[int, dict[str, Any], dict[str, list[Any]]]] = []
    seed = 0
    while len(found) < count:
        plan, outcomes = random_plan(random.Random(seed))
        simulation = Simulation(compiled(plan), check_outcomes(outcomes, compiled(plan)))
        if any(each["compensated"] for each in simulation.result().rollbacks):
            found.append((seed, plan, outcomes))
        seed += 1
    return found


def test_a_simulation_goes_on_from_every_position_of_its_journal_as_it_did() -> None:
    for seed, plan, outcomes in rolling(25):
        shape = compiled(plan)
        script = check_outcomes(outcomes, shape)
        whole = Simulation(shape, script)
        positions = []
        while not isinstance(decide(whole.run), End | Rest):
            positions.append(len(whole.events))
            whole._perform(decide(whole.run))
        for position in positions:
            again = Simulation(shape, script)
            again.run = folded(shape, whole.events[:position], "simulation")
            again.events = whole.events[:position]
            result = again.result()
            assert again.events == whole.events, f"seed {seed}, position {position}"
            assert result == result_of(whole.run)


def test_folding_the_journal_of_a_real_run_gives_what_the_run_was_at_each_moment() -> None:
    for seed, plan, outcomes in rolling(10):
        script = playable(plan, outcomes)
        made, result = play(plan, script, max_parallel=4, longest=5, seed=seed)
        shape = compiled(plan)
        live = Run("r", lambda _, shape=shape: shape)  # type: ignore[misc] # bound at once
        for position, event in enumerate(made.events):
            live.evolve(event)
            assert told(result_of(folded(shape, made.events[: position + 1]))) == told(result_of(live))
        assert told(result_of(live)) == told(result), f"seed {seed}"


# After a crash --------------------------------------------------------------------------------------------------------


class Shop:
    """Skills of a plan that rolls back once; `undo` fails its first call of task `b` and is tried again."""

    def __init__(self, *, idempotent: bool) -> None:
        self.undone: list[tuple[str, int, str]] = []
        self.clock = SimulatedClock()

        def ok() -> None: ...

        def pay(context: SkillContext) -> None:
            if context.visit == 1:
                raise OSError("not paid")

        @skill(idempotent=idempotent, retry_on=["OSError"], max_retries=3)
        def undo(context: SkillContext) -> None:
            self.undone.append((context.task_id, context.attempt, context.idempotency_key))
            if context.task_id == "b" and context.attempt == 1:
                raise OSError("not yet")

        self.registry = SkillRegistry()
        for name, function in (("ok", ok), ("pay", pay), ("undo", undo)):
            self.registry.add(function, name=name)
        self.services = Services(self.registry, self.clock, FixedRandom(0.5))

    def driver(self, run: Run, shape: CompiledPlan) -> Driver:
        planning = Planning({}, Prepared.of(shape))
        return Driver(run, self.services, MemoryJournal(), planning)


PLAN = plan_of(
    {"id": "a", "skill": "ok", "compensation": {"skill": "undo", "parameters": {}}},
    {"id": "b", "skill": "ok", "dependencies": ["a"], "compensation": {"skill": "undo", "parameters": {}}},
    {"id": "c", "skill": "pay", "dependencies": ["b"], "recovery": "rollback"},
)


def whole_journal(shop: Shop, shape: CompiledPlan) -> list[Event]:
    async def main() -> list[Event]:
        planning = Planning({}, Prepared.of(shape))
        driver = Driver(Run("r", planning.plan_of), shop.services, MemoryJournal(), planning)
        driver.record(RunStarted())
        await driver.drive()
        return list(driver.journal.events)

    return drive(main())


def gone_on(shop: Shop, shape: CompiledPlan, events: list[Event]) -> Run:
    """The run, taken up from these events by a new driver."""

    async def main() -> Run:
        run = folded(shape, events)
        driver = shop.driver(run, shape)
        interrupted = what_became_of(run, shop.registry)
        if interrupted is not None:
            driver.record(interrupted)
        await driver.drive()
        return run

    return drive(main())


def under_way(run: Run) -> str | None:
    """The task whose own call is under way."""
    back = run.going_back
    places = run.running - {back.calling if back is not None else None}
    return next((run.compiled.graph.ids[place] for place in places), None)


def test_after_a_crash_anywhere_the_rollback_goes_on_and_nothing_is_undone_twice_but_what_was_under_way() -> None:
    shape = compiled(PLAN)
    shop = Shop(idempotent=True)
    events = whole_journal(shop, shape)
    whole = shop.undone
    assert [(task, attempt) for task, attempt, _ in whole] == [("b", 1), ("b", 2), ("a", 1)]
    tried = 0
    for position in range(4, len(events)):
        before = folded(shape, events[:position])
        if under_way(before) is not None or before.final:
            continue
        tried += 1
        calling = before.going_back.calling if before.going_back is not None else None
        shop.undone = []
        run = gone_on(shop, shape, events[:position])
        assert (run.phase, run.schedule.nodes[2].visits) == ("completed", 2)
        done = {event.task for event in events[:position] if event.type == "compensated"}
        again = [task for task, _, _ in shop.undone]
        begun = [event for event in events[:position] if event.type == "rollback_started"]
        if begun and calling is None:
            assert not done & set(again)
        if calling is not None:
            assert again[0] == shape.graph.ids[calling]
        assert {key for _, _, key in shop.undone} <= {key for _, _, key in whole}
    assert tried > 20


def test_a_compensation_that_was_interrupted_counts_its_attempts_on() -> None:
    shape = compiled(PLAN)
    shop = Shop(idempotent=True)
    events = whole_journal(shop, shape)
    failed = next(place for place, event in enumerate(events) if event.type == "attempt_failed" and event.task == "b")
    shop.undone = []
    run = folded(shape, events[: failed + 1])
    back = run.going_back
    assert back is not None
    assert (run.compiled.graph.ids[back.calling or 0], back.attempts) == ("b", 1)
    gone_on(shop, shape, events[: failed + 1])
    assert [(task, attempt) for task, attempt, _ in shop.undone] == [("b", 2), ("a", 1)]


def test_one_that_is_not_idempotent_waits_for_a_person_after_a_crash() -> None:
    shape = compiled(PLAN)
    shop = Shop(idempotent=False)
    events = whole_journal(shop, shape)
    started = next(place for place, event in enumerate(events) if event.type == "compensation_started")
    shop.undone = []
    run = gone_on(shop, shape, events[: started + 1])
    assert (run.phase, shop.undone) == ("paused", [])
    [asked] = run.approvals.open.values()
    assert (asked.kind, asked.task, asked.error and asked.error.kind) == ("compensation", "b", "interrupted")


@pytest.mark.parametrize(("then", "command"), [("again", Compensate), ("ask", AskAboutCompensation)])
def test_what_is_next_after_an_interruption_is_a_matter_of_its_event(then: Any, command: type) -> None:
    shape = compiled(PLAN)
    events = whole_journal(Shop(idempotent=True), shape)
    started = next(place for place, event in enumerate(events) if event.type == "compensation_started")
    run = folded(shape, events[: started + 1])
    interrupted = what_became_of(run, SkillRegistry())
    assert isinstance(interrupted, TaskInterrupted)
    assert (interrupted.task, interrupted.then) == ("b", "ask")  # the skill is not there any more
    run.evolve(msgspec.structs.replace(interrupted, then=then, seq=run.seq + 1))
    assert type(decide(run)) is command
