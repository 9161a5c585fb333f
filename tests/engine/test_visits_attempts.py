"""Section 3 of the plan's meaning: attempts, the waits between them, timeouts, cancellation, and the fallback."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fsm_agent import RunResult, SkillContext, skill
from fsm_agent.clock import SystemClock
from fsm_agent.testing import FixedRandom, ScriptedSkill, SimulatedClock, Takes
from tests.engine.support import Basic, basic, bench, drive, others_end, plan_of, statuses, until

FAILS: dict[str, Any] = {"id": "a", "skill": "fail", "parameters": {"n": 99}}


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    """What a hung thread waits for, so that it ends with its test."""
    release = threading.Event()
    yield release
    release.set()


def waits(made: Basic) -> list[float]:
    return [event.delay for event in made.of("attempt_failed") if event.then == "retry"]


# Waits between attempts -----------------------------------------------------------------------------------------------


def test_the_waits_grow_by_the_factor_up_to_the_cap_and_chance_spreads_them() -> None:
    made = basic(random=FixedRandom(0.5))
    backoff = {"base": 1.0, "factor": 3.0, "cap": 20.0}
    made.run(plan_of({**FAILS, "max_retries": 5, "backoff": backoff}))
    assert waits(made) == [0.5, 1.5, 4.5, 10.0, 10.0]
    assert made.clock.monotonic() == sum(waits(made))


@pytest.mark.parametrize(("chance", "expected"), [(0.0, [0.0] * 3), (0.999, [0.4995, 0.999, 1.998])])
def test_the_waits_of_the_engine_itself_are_spread_between_nothing_and_their_bound(
    chance: float, expected: list[float]
) -> None:
    made = basic(random=FixedRandom(chance))
    made.run(plan_of({**FAILS, "max_retries": 3}))
    assert waits(made) == pytest.approx(expected)


def test_without_jitter_the_wait_is_the_bound_itself() -> None:
    made = basic(random=FixedRandom(0.1))
    made.run(plan_of({**FAILS, "max_retries": 3, "backoff": {"base": 2, "factor": 1, "jitter": "none"}}))
    assert waits(made) == [2.0, 2.0, 2.0]


class Busy(Exception):
    """Asks for a wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__("busy")
        self.retry_after = seconds


@pytest.mark.parametrize(("wish", "expected"), [(7.0, 7.0), (0.1, 0.25)])
def test_a_longer_wait_that_the_error_asks_for_is_respected(wish: float, expected: float) -> None:
    scripted = ScriptedSkill("ask", [Busy(wish), "done"], idempotent=True)
    made = basic({"ask": scripted.function})
    assert made.run(plan_of({"id": "a", "skill": "ask"})).tasks["a"].data == "done"
    assert waits(made) == [expected]


def test_a_task_that_waits_to_try_again_holds_its_slot_and_the_others_go_on() -> None:
    made = basic()
    nap = {"skill": "nap", "parameters": {"s": 1}}
    plan = plan_of(
        {**FAILS, "max_retries": 1, "backoff": {"base": 20, "jitter": "none"}, "recovery": "skip"},
        *({"id": f"t{n}", **nap} for n in range(3)),
        limits={"max_parallel": 2},
    )
    made.run(plan)
    assert made.calls.order == ["a", "t0", "t1", "t2", "a"]
    assert made.clock.monotonic() == 20


def test_the_deadline_of_a_run_cuts_a_wait_short() -> None:
    made = basic()
    result = made.run(plan_of({**FAILS, "max_retries": 9, "backoff": {"base": 30, "cap": 100}}), deadline=20)
    assert (result.phase, (result.reason or {})["kind"], made.clock.monotonic()) == ("failed", "limit", 20)
    assert (result.tasks["a"].error or {})["kind"] == "cancelled"
    assert result.tasks["a"].attempts == 2


# Timeouts -------------------------------------------------------------------------------------------------------------


def test_each_attempt_has_its_own_timeout() -> None:
    clock = SimulatedClock()
    scripted = ScriptedSkill("slow", [Takes(9), Takes(9), Takes(4, "done")], clock=clock, idempotent=True)
    made = bench([scripted.function], clock=clock, random=FixedRandom(0))
    result = made.run({"tasks": [{"id": "a", "skill": "slow", "timeout": 5, "max_retries": 2}]})
    assert (result.tasks["a"].data, result.tasks["a"].attempts) == ("done", 3)
    assert made.clock.monotonic() == 14


def test_the_time_between_the_attempts_does_not_count_for_a_timeout() -> None:
    clock = SimulatedClock()
    scripted = ScriptedSkill("flaky", [OSError("down"), Takes(4, "done")], clock=clock, idempotent=True)
    made = bench([scripted.function], clock=clock)
    task = {"id": "a", "skill": "flaky", "timeout": 5, "backoff": {"base": 100, "cap": 100, "jitter": "none"}}
    assert made.run({"tasks": [task]}).tasks["a"].data == "done"
    assert made.clock.monotonic() == 104


@pytest.mark.parametrize(("idempotent", "calls"), [(True, 2), (False, 1)])
def test_a_timeout_is_retried_for_an_idempotent_skill_only(idempotent: bool, calls: int) -> None:
    clock = SimulatedClock()
    scripted = ScriptedSkill("slow", [Takes(9)], clock=clock, idempotent=idempotent, retry_on=["timeout", "OSError"])
    made = bench([scripted.function], clock=clock)
    result = made.run({"tasks": [{"id": "a", "skill": "slow", "timeout": 5, "max_retries": 1}]})
    assert len(scripted.calls) == result.tasks["a"].attempts == calls
    assert (result.reason or {})["kind"] == "timeout"


def test_the_tasks_timeout_wins_over_the_skills_and_the_skills_over_the_engines() -> None:
    made = basic()

    @skill(timeout=7)
    async def slow() -> None:
        await made.clock.sleep(1000)

    made.engine.skills.add(slow)
    nap = {"skill": "nap", "parameters": {"s": 1000}}
    made.run(
        plan_of(
            {"id": "a", "skill": "slow", "timeout": 3},
            {"id": "b", "skill": "slow"},
            {"id": "c", **nap},
            recovery="skip",
        )
    )
    begin = made.of("task_started")[0].at
    assert {event.task: event.at - begin for event in made.of("task_evaluated")} == {"a": 3, "b": 7, "c": 60}


def test_what_returns_after_its_time_is_a_timeout_whatever_it_returned() -> None:
    async def swallows() -> str:
        try:
            await made.clock.sleep(60)
        except asyncio.CancelledError:
            await made.clock.sleep(0.05)
        return "late, but nice"

    made = basic({"swallows": swallows})
    result = made.run(plan_of({"id": "a", "skill": "swallows", "timeout": 5}))
    assert (result.tasks["a"].status, result.tasks["a"].data) == ("FAILED", None)
    assert (result.tasks["a"].error or {})["kind"] == "timeout"
    assert not made.of("call_abandoned")
    assert made.clock.monotonic() == 5.05


def test_a_sync_skill_that_returns_after_its_time_is_a_timeout_too() -> None:
    def late() -> str:
        time.sleep(0.3)
        return "late, but nice"

    made = bench([late], clock=SystemClock())
    result = made.run({"tasks": [{"id": "a", "skill": "late", "timeout": 0.05, "recovery": "skip"}]})
    assert (result.tasks["a"].error or {})["kind"] == "timeout"


def test_an_async_skill_that_swallows_its_cancellation_is_abandoned_after_the_grace() -> None:
    async def stubborn(context: SkillContext) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                context_was_closed.append(context)

    context_was_closed: list[SkillContext] = []
    release = asyncio.Event()
    made = basic({"stubborn": stubborn})

    async def main() -> RunResult:
        plan = plan_of(
            {"id": "a", "skill": "stubborn", "timeout": 5, "recovery": "skip"}, {"id": "b", "dependencies": ["a"]}
        )
        result = await made.engine.run({**plan, "limits": {"cancel_grace": 2}})
        release.set()
        return result

    result = drive(main())
    assert statuses(result) == {"a": "optional", "b": "SUCCEEDED"}
    assert made.clock.monotonic() == 7
    assert [(event.task, event.attempt, event.why) for event in made.of("call_abandoned")] == [("a", 1, "timeout")]
    assert len(context_was_closed) == 1


def test_the_slot_of_an_abandoned_sync_skill_is_not_lost(hang: threading.Event) -> None:
    def hung() -> None:
        hang.wait(30)

    made = bench({"hung": hung}, clock=SystemClock())
    tasks = [{"id": f"t{n}", "skill": "hung", "timeout": 0.05, "recovery": "skip"} for n in range(4)]
    result = made.run({"tasks": tasks, "limits": {"max_parallel": 2}})
    assert set(statuses(result).values()) == {"optional"}
    assert len(made.of("call_abandoned")) == 4


# Late writes ------------------------------------------------------------------------------------------------------


def test_a_timed_out_skill_that_still_runs_can_write_nothing_any_more(hang: threading.Event) -> None:
    errors: list[BaseException] = []
    written = threading.Event()

    def late(context: SkillContext) -> None:
        context.set("early", 1)
        hang.wait(30)
        for act in (lambda: context.set("late", 1), lambda: context.log("late"), lambda: context.progress(1, "late")):
            try:
                act()
            except Exception as error:  # noqa: BLE001 - what it raises is looked at below
                errors.append(error)
        written.set()

    async def wait() -> None:
        hang.set()
        while not written.is_set():
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.01)

    made = bench([late, wait], clock=SystemClock())
    late_task = {"id": "a", "skill": "late", "timeout": 0.05, "recovery": "skip"}
    result = made.run(plan_of(late_task, {"id": "b", "skill": "wait", "dependencies": ["a"]}))
    assert result.completed
    assert result.context == {}
    assert [type(error).__name__ for error in errors] == ["VisitClosed"]
    assert not made.of("task_logged", "progress", "context_changed")


# Cancellation -----------------------------------------------------------------------------------------------------


def test_a_cancel_during_a_back_off_ends_it_at_once() -> None:
    made = basic()

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan_of({**FAILS, "max_retries": 9}), run_id="r"))
        await until(lambda: made.of("attempt_failed"))
        await made.engine.cancel("r")
        return await run

    result = drive(main())
    assert (result.phase, result.tasks["a"].attempts) == ("cancelled", 1)
    assert (result.tasks["a"].error or {})["kind"] == "cancelled"
    assert made.clock.monotonic() == 0


def test_a_cancel_during_a_sync_skill_abandons_it(hang: threading.Event) -> None:
    begun = threading.Event()

    def hung() -> None:
        begun.set()
        hang.wait(30)

    made = bench([hung], clock=SystemClock())

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run({"tasks": [{"id": "a", "skill": "hung"}]}, run_id="r"))
        while not begun.is_set():
            await asyncio.sleep(0.005)
        await made.engine.cancel("r")
        return await run

    began = time.monotonic()
    result = drive(main())
    assert time.monotonic() - began < 5
    assert (result.phase, statuses(result)) == ("cancelled", {"a": "FAILED"})
    assert [event.why for event in made.of("call_abandoned")] == ["cancelled"]


def test_a_cancel_during_an_async_skill_lets_it_clean_up_within_the_grace() -> None:
    cleaned: list[str] = []

    async def careful() -> None:
        try:
            await made.clock.sleep(50)
        finally:
            await made.clock.sleep(0.05)
            cleaned.append("up")

    made = basic({"careful": careful})

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan_of({"id": "a", "skill": "careful"}), run_id="r"))
        await made.clock.sleep(1)
        await made.engine.cancel("r")
        return await run

    assert drive(main()).phase == "cancelled"
    assert cleaned == ["up"]
    assert made.clock.monotonic() == 1.05


def test_a_skill_that_swallows_the_cancellation_of_its_run_does_not_keep_it_from_ending() -> None:
    async def stubborn() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "done anyway"

    release = asyncio.Event()
    made = basic({"stubborn": stubborn})

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan_of({"id": "a", "skill": "stubborn"}), run_id="r"))
        await until(lambda: made.of("task_started"))
        await asyncio.sleep(0)
        await made.engine.cancel("r")
        result = await run
        release.set()
        assert await others_end() == set()
        return result

    result = drive(main())
    assert (result.phase, result.tasks["a"].data) == ("cancelled", None)
    assert [event.why for event in made.of("call_abandoned")] == ["cancelled"]
    assert made.clock.monotonic() == pytest.approx(0.1)


def test_what_a_cancelled_skill_returns_in_time_does_not_count() -> None:
    async def swallows(context: SkillContext) -> str:
        context.set("k", 1)
        with contextlib.suppress(asyncio.CancelledError):
            await made.clock.sleep(50)
        return "done anyway"

    made = basic({"swallows": swallows})

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan_of({"id": "a", "skill": "swallows"}), run_id="r"))
        await made.clock.sleep(1)
        await made.engine.cancel("r")
        return await run

    result = drive(main())
    assert (statuses(result), result.tasks["a"].data, result.context) == ({"a": "FAILED"}, None, {})


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit, BaseException])
def test_a_skill_that_raises_no_ordinary_exception_fails_its_task_and_not_the_engine(
    error: type[BaseException],
) -> None:
    scripted = ScriptedSkill("odd", [error("odd")], idempotent=True)
    made = basic({"odd": scripted.function})
    result = made.run(plan_of({"id": "a", "skill": "odd", "recovery": "skip", "max_retries": 2}, {"id": "b"}))
    assert statuses(result) == {"a": "optional", "b": "SUCCEEDED"}
    assert result.tasks["a"].attempts == 1
