"""How often a call is made, whatever dies in between: F02 and F10."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fsm_agent import Event, PlannerEngine, RunResult, SkillContext, skill
from fsm_agent.testing import FixedRandom, SimulatedClock
from tests.crash.harness import Call, Killed, MortalStore, World
from tests.engine.support import drive


class Shop(World):
    """`fail`: fails its first calls of a visit. `pay`: writes a line, then does what the test says."""

    fails = 0
    then: Any = None
    dies_in = 0
    """The call of this number takes its process along."""
    mortal: MortalStore

    def engine(self, store: Any, clock: SimulatedClock | None = None, **words: Any) -> PlannerEngine:
        self.now += 1.0
        clock = SimulatedClock(self.now)

        @skill(idempotent=True)
        async def fail(context: SkillContext) -> dict[str, Any]:
            made = sum(call.visit == context.visit for call in self.ledger)
            self.ledger.append(Call(context.task.id, context.visit, context.attempt, context.idempotency_key))
            if len(self.ledger) == self.dies_in:
                self.mortal.dead = True
            if made < self.fails:
                raise OSError("down")
            return {"calls": made + 1}

        @skill
        async def pay(amount: int) -> dict[str, Any]:
            with (self.folder / "ledger.txt").open("a") as ledger:
                ledger.write(f"{amount}\n")
            if self.then == "time out":
                await clock.sleep(1_000)
            if self.then == "raise":
                raise OSError("after the effect")
            return {"paid": amount}

        return PlannerEngine([fail, pay], clock=clock, random=FixedRandom(0.5), store=store, **words)


def live(shop: Shop, plan: Any = None, listener: Any = None) -> RunResult | None:
    """A process that begins the run, or goes on with it. None if it died."""
    store = shop.mortal = MortalStore(shop.open())
    engine = shop.engine(store)
    if listener is not None:
        engine.add_listener(listener)
    try:
        return drive(engine.resume("r") if plan is None else engine.run(plan, run_id="r"))
    except Killed:
        return None
    finally:
        shop.now += 100.0
        store._store.close()


@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("fails", range(5))
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_f10_a_visit_has_at_most_one_attempt_more_than_retries(
    tmp_path: Path, retries: int, fails: int, fallback: bool
) -> None:
    shop = Shop(tmp_path)
    shop.fails = fails
    task = {"id": "a", "skill": "fail", "max_retries": retries, **({"fallback": {"value": {}}} if fallback else {})}
    store = shop.open()
    result = drive(shop.engine(store).run({"goal": "g", "tasks": [task]}, run_id="r"))
    store.close()
    assert len(shop.ledger) == min(fails, retries) + 1 == result.tasks["a"].attempts
    assert result.completed == (fallback or fails <= retries)
    assert result.tasks["a"].fallback_used == (fallback and fails > retries)


@pytest.mark.parametrize("fails", range(1, 5))
@pytest.mark.parametrize("retries", [1, 3])
def test_f10_attempts_before_a_crash_count(tmp_path: Path, retries: int, fails: int) -> None:
    """A crash in attempt 2: of the last attempt of an idempotent skill the call is made once more, as the same one."""
    shop = Shop(tmp_path)
    shop.fails = fails
    plan = {"goal": "g", "tasks": [{"id": "a", "skill": "fail", "max_retries": retries}]}
    shop.dies_in = 2
    assert live(shop, plan) is None
    assert [call.attempt for call in shop.ledger] == [1, 2]
    result = live(shop)
    assert result is not None
    assert result.tasks["a"].attempts <= retries + 1
    assert max(call.attempt for call in shop.ledger) <= retries + 1
    assert len({call.key for call in shop.ledger}) == 1
    assert result.completed == (fails <= retries + (retries == 1))


@pytest.mark.parametrize("then", ["raise", "time out"])
def test_f02_what_is_not_idempotent_is_not_tried_again(tmp_path: Path, then: str) -> None:
    shop = Shop(tmp_path)
    shop.then = then
    plan = {"goal": "g", "tasks": [{"id": "a", "skill": "pay", "parameters": {"amount": 10}, "max_retries": 3}]}
    store = shop.open()
    result = drive(shop.engine(store).run(plan, run_id="r"))
    store.close()
    assert (result.phase, (tmp_path / "ledger.txt").read_text()) == ("failed", "10\n")


def test_a_call_that_takes_its_process_along_is_not_made_for_ever(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    plan = {"goal": "g", "tasks": [{"id": "a", "skill": "fail", "max_retries": 1}]}
    for life in range(2):
        shop.dies_in = life + 1
        assert live(shop, None if life else plan) is None
    result = live(shop)
    assert [call.attempt for call in shop.ledger] == [1, 2]
    assert result is not None
    assert [asked["kind"] for asked in result.waiting] == ["interrupted"]


@pytest.mark.parametrize(("retries", "share"), [(0, 0.0), (1, 0.5)])
def test_a_call_that_is_made_once_more_as_the_same_attempt_is_not_one_for_nothing(
    tmp_path: Path, retries: int, share: float
) -> None:
    shop = Shop(tmp_path)
    shop.dies_in = 1
    plan = {"goal": "g", "tasks": [{"id": "a", "skill": "fail", "max_retries": retries}]}
    assert live(shop, plan) is None
    result = live(shop)
    assert result is not None
    assert (result.completed, result.tasks["a"].attempts, result.invalid_actions) == (True, retries + 1, share)


def test_a_crash_while_it_waits_to_try_again_interrupts_nothing(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.fails = 1
    task = {"id": "a", "skill": "fail", "max_retries": 3, "backoff": {"base": 50, "jitter": "none"}}

    def die(event: Event) -> None:
        shop.mortal.dead = shop.mortal.dead or event.type == "attempt_failed"

    assert live(shop, {"goal": "g", "tasks": [task]}, die) is None
    result = live(shop)
    assert result is not None
    assert result.completed
    assert [call.attempt for call in shop.ledger] == [1, 2]
    assert "task_interrupted" not in {event.type for event in shop.events()}
