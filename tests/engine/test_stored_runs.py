"""Runs that are kept in a store: what is told and kept, plans that people approve, and snapshots."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import PlannerEngine, RunResult
from fsm_agent.core.result import result_of
from fsm_agent.errors import DecisionRefused, RunExists, RunNotActive, UnknownRun, UsageError
from fsm_agent.journal import writer
from fsm_agent.journal.opening import open_store
from fsm_agent.testing import ScriptedSkill, SimulatedClock, Takes
from tests.engine.support import bench, drive

TWO = [{"id": "a", "skill": "work"}, {"id": "b", "skill": "work", "dependencies": ["a"]}]


def engine(folder: Path, *skills: Any, **words: Any) -> PlannerEngine:
    return PlannerEngine([skill.function for skill in skills], store=folder / "runs.db", **words)


def types_in(folder: Path) -> list[str]:
    with sqlite3.connect(folder / "runs.db") as con:
        found = [row[0] for row in con.execute("SELECT type FROM events ORDER BY seq")]
    con.close()
    return found


def test_what_listeners_are_told_is_what_the_store_has(tmp_path: Path) -> None:
    made = bench([ScriptedSkill("work").function], store=tmp_path / "runs.db")
    assert made.run(TWO, run_id="r").completed
    assert made.types() == types_in(tmp_path)


def test_an_event_is_told_once_it_is_in_the_store_and_never_before(tmp_path: Path) -> None:
    seen: list[bool] = []
    made = engine(tmp_path, ScriptedSkill("work"))
    made.add_listener(lambda event: seen.append(len(types_in(tmp_path)) >= event.seq))
    assert made.run_sync(TWO, run_id="r").completed
    assert seen
    assert all(seen)


def test_a_stream_keeps_its_events_one_step_after_the_other(tmp_path: Path) -> None:
    async def main() -> None:
        async with engine(tmp_path, ScriptedSkill("work")) as made:
            stream = made.stream(TWO, run_id="r")
            count = 0
            async for event in stream:
                count += 1
                assert event.seq == count
                assert len(types_in(tmp_path)) >= count
            assert stream.result is not None
            assert stream.result.completed

    drive(main())


def test_an_id_that_the_store_has_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    work = ScriptedSkill("work")
    engine(tmp_path, work).run_sync(TWO, run_id="r")
    before = types_in(tmp_path)
    with pytest.raises(RunExists):
        engine(tmp_path, work).run_sync(TWO, run_id="r")
    assert len(work.calls) == 2
    assert types_in(tmp_path) == before


def test_what_the_result_says_is_what_the_journal_gives(tmp_path: Path) -> None:
    made = engine(tmp_path, ScriptedSkill("work", [{"cost": 3, "城市": "苏州"}]))

    async def main() -> tuple[RunResult, RunResult]:
        result = await made.run(TWO, run_id="r", labels={"team": "一"})
        return result, await made.show("r")

    result, shown = drive(main())
    assert {**shown.to_json(), "elapsed_s": 0, "resumable": 0} == {**result.to_json(), "elapsed_s": 0, "resumable": 0}


def test_a_run_is_shown_as_it_was_after_any_event(tmp_path: Path) -> None:
    made = bench([ScriptedSkill("work").function], store=tmp_path / "runs.db")

    async def main() -> list[str]:
        await made.engine.run(TWO, run_id="r")
        shown = [await made.engine.show("r", at=seq) for seq in range(1, len(made.events) + 1)]
        with pytest.raises(UsageError, match="no event 99"):
            await made.engine.show("r", at=99)
        return [each.phase for each in shown]

    phases = drive(main())
    assert (phases[0], phases[-1]) == ("idle", "completed")
    assert {"planning", "executing", "evaluating"} <= set(phases)


# Plans that people approve ------------------------------------------------------------------------------------------


def test_nothing_runs_before_the_plan_is_approved(tmp_path: Path) -> None:
    work = ScriptedSkill("work")

    async def main() -> None:
        async with engine(tmp_path, work) as made:
            paused = await made.run(TWO, run_id="r", require_plan_approval=True)
            assert (paused.phase, paused.waiting[0]["kind"], work.calls) == ("paused", "plan", [])
            assert (await made.resume("r")).phase == "paused"
            await made.decide("r", None, "approve", by="Ada", why="fine")
            assert (await made.resume("r")).phase == "completed"

    drive(main())
    assert len(work.calls) == 2


def test_who_decides_second_is_told_who_was_first_and_when_even_before_that_is_in_the_journal(tmp_path: Path) -> None:
    async def main() -> None:
        async with engine(tmp_path, ScriptedSkill("work")) as made:
            paused = await made.run(TWO, run_id="r", require_plan_approval=True)
            approval = paused.waiting[0]["approval"]
            store = open_store(tmp_path / "runs.db", clock=SimulatedClock())
            words = {"approval": approval, "decision": "approved", "by": "Ada"}
            store.ask("r", "decide", json.dumps(words), at=86_400.0, key=approval)
            store.close()
            with pytest.raises(DecisionRefused) as refused:
                await made.decide("r", None, "reject", by="Bo")
        told = "'the plan' was decided already: approved by Ada at 1970-01-02T00:00:00+00:00"
        assert refused.value.message == told

    drive(main())


class Racing:
    """A store in which others decide just before one's own decision is left there."""

    def __init__(self, store: Any, before: Callable[[], None]) -> None:
        self._store = store
        self._before = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def ask(self, *arguments: Any, **options: Any) -> Any:
        before, self._before = self._before, lambda: None
        before()
        return self._store.ask(*arguments, **options)


def test_who_decides_third_is_told_who_was_first_and_not_who_was_second(tmp_path: Path) -> None:
    made = engine(tmp_path, ScriptedSkill("work"))
    paused = made.run_sync(TWO, run_id="r", require_plan_approval=True)
    store = open_store(tmp_path / "runs.db")

    def others() -> None:
        drive(engine(tmp_path, ScriptedSkill("work")).decide("r", None, "approve", by="Ada"))
        words = {"approval": paused.waiting[0]["approval"], "decision": "rejected", "by": "Bo"}
        store.ask("r", "decide", json.dumps(words), at=1.0, key=paused.waiting[0]["approval"])

    slow: Any = Racing(store, lambda: in_a_thread(others))
    with pytest.raises(DecisionRefused, match="approved by Ada"):
        drive(PlannerEngine([], store=slow).decide("r", None, "reject", by="Cy"))
    store.close()


def in_a_thread(work: Callable[[], None]) -> None:
    """An event loop of its own, as in another process."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_plan_that_is_rejected_fails_the_run(tmp_path: Path) -> None:
    work = ScriptedSkill("work")

    async def main() -> RunResult:
        async with engine(tmp_path, work) as made:
            await made.run(TWO, run_id="r", require_plan_approval=True)
            await made.decide("r", None, "reject", by="Ada")
            with pytest.raises(DecisionRefused):
                await made.decide("r", None, "approve")
            return await made.resume("r")

    result = drive(main())
    assert (result.phase, result.reason and result.reason["kind"], work.calls) == ("failed", "rejected", [])


@pytest.mark.parametrize("answer", [True, False])
def test_an_approver_is_asked_about_the_plan(answer: bool) -> None:
    work = ScriptedSkill("work")
    asked: list[str] = []
    made = bench([work.function], approver=lambda request: asked.append(request.kind) or answer)
    result = made.run(TWO, require_plan_approval=True)
    assert (result.phase, asked) == ("completed" if answer else "failed", ["plan"])


# Across engines -----------------------------------------------------------------------------------------------------


def test_a_live_run_hears_what_another_engine_asks_of_it(tmp_path: Path) -> None:
    async def main() -> RunResult:
        async with engine(tmp_path, slow()) as driver, engine(tmp_path, slow()) as other:
            run = asyncio.create_task(driver.run([{"id": "a", "skill": "slow"}], run_id="r"))
            while not (tmp_path / "runs.db").exists() or "task_started" not in types_in(tmp_path):
                await asyncio.sleep(0.01)
            assert await other.cancel("r", by="Ada", why="enough") is None
            return await run

    result = drive(main())
    assert (result.phase, result.reason and result.reason["message"]) == (
        "cancelled",
        "the run was cancelled by Ada: enough",
    )
    assert types_in(tmp_path).count("cancel_asked") == 1


def slow() -> ScriptedSkill:
    return ScriptedSkill("slow", [Takes(30, {})])


def test_a_run_that_nobody_drives_cannot_be_paused(tmp_path: Path) -> None:
    async def main() -> None:
        async with engine(tmp_path, ScriptedSkill("work")) as made:
            await made.run(TWO, run_id="r")
            with pytest.raises(RunNotActive):
                await made.pause("r")
            with pytest.raises(UnknownRun):
                await made.pause("q")

    drive(main())


def test_a_cancelled_pause_ends_the_run_here_and_now(tmp_path: Path) -> None:
    async def main() -> RunResult | None:
        async with engine(tmp_path, ScriptedSkill("work")) as made:
            await made.run([{"id": "a", "skill": "work", "approval": "required"}], run_id="r")
            return await made.cancel("r", by="Ada")

    result = drive(main())
    assert result is not None
    assert (result.phase, result.tasks["a"].status) == ("cancelled", "PENDING")


def test_an_engine_without_a_store_says_so() -> None:
    made = bench([ScriptedSkill("work").function]).engine
    with pytest.raises(UsageError, match="no store"):
        drive(made.recover())


# Time ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("second", "phase"), [(30, "completed"), (70, "failed")])
def test_time_that_an_earlier_process_used_counts_for_the_deadline_and_the_pause_does_not(
    tmp_path: Path, second: int, phase: str
) -> None:
    clock = SimulatedClock()
    long = ScriptedSkill("long", [Takes(50, {}), Takes(second, {})], clock=clock)
    tasks = [
        {"id": "a", "skill": "long"},
        {"id": "b", "skill": "long", "dependencies": ["a"], "approval": "required", "timeout": 1_000},
    ]

    async def main() -> RunResult:
        first = PlannerEngine([long.function], store=tmp_path / "runs.db", clock=clock)
        assert (await first.run({"goal": "g", "tasks": tasks}, run_id="r", deadline=100)).phase == "paused"
        await clock.sleep(10_000)
        second = PlannerEngine([long.function], store=tmp_path / "runs.db", clock=clock)
        await second.decide("r", "b", "approve")
        return await second.resume("r")

    result = drive(main())
    assert result.phase == phase
    if phase == "failed":
        assert result.reason is not None
        assert (result.reason["kind"], result.reason["setting"]) == ("limit", "limits.deadline")


def test_an_approval_that_nobody_gave_in_time_has_expired_in_any_process(tmp_path: Path) -> None:
    clock = SimulatedClock()
    work = ScriptedSkill("work")
    tasks = [{"id": "a", "skill": "work", "approval": "required", "approval_timeout": 60}]

    def fresh() -> PlannerEngine:
        return PlannerEngine([work.function], store=tmp_path / "runs.db", clock=clock)

    async def main() -> RunResult:
        await fresh().run({"goal": "g", "tasks": tasks}, run_id="r")
        await clock.sleep(61)
        with pytest.raises(DecisionRefused, match="expired"):
            await fresh().decide("r", "a", "approve", by="Ada")
        return await fresh().resume("r")

    result = drive(main())
    assert (result.phase, result.tasks["a"].status, work.calls) == ("failed", "FAILED", [])
    assert result.tasks["a"].error is not None
    assert result.tasks["a"].error["kind"] == "expired"


@pytest.mark.parametrize(("recovery", "phase"), [("abort", "failed"), ("skip", "completed")])
def test_a_rejected_task_fails_and_its_recovery_decides(tmp_path: Path, recovery: str, phase: str) -> None:
    work = ScriptedSkill("work")
    tasks = [{"id": "a", "skill": "work", "approval": "required", "recovery": recovery}]

    async def main() -> RunResult:
        async with engine(tmp_path, work) as made:
            await made.run({"goal": "g", "tasks": tasks}, run_id="r")
            await made.decide("r", "a", "reject", by="Ada")
            return await made.resume("r")

    result = drive(main())
    assert (result.phase, work.calls) == (phase, [])


# Snapshots ----------------------------------------------------------------------------------------------------------

LOOP = {
    "tasks": [
        {"id": "again", "skill": "work", "condition": "true_so_far < 300", "on_success": "again", "max_visits": 400},
        {"id": "ask", "skill": "work", "approval": "required", "dependencies": ["again"]},
    ],
    "context": {"true_so_far": 0},
}


def long_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SELDOM", 50)
    monkeypatch.setattr(writer, "AT_REST", 10)
    clock = SimulatedClock()
    made = PlannerEngine({"work": counting}, store=folder / "runs.db", clock=clock)
    assert made.run_sync(LOOP, run_id="r").phase == "paused"


async def counting(context: Any) -> dict[str, Any]:
    context.set("true_so_far", context.get("true_so_far") + 1)
    return {"n": context.get("true_so_far")}


def test_a_long_run_goes_on_from_a_snapshot_as_from_its_first_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_run(tmp_path, monkeypatch)
    made = PlannerEngine({"work": counting}, store=tmp_path / "runs.db")

    async def main() -> RunResult:
        keeper = made._keeper
        assert keeper is not None
        loaded = await keeper.load("r")
        assert loaded.snapshot is not None
        assert loaded.snapshot.seq > 1_000
        early = await keeper.load("r", upto=loaded.head.seq)
        assert early.snapshot is None
        assert result_of(early.run) == result_of(loaded.run)
        await made.decide("r", "ask", "approve")
        return await made.resume("r")

    result = drive(main())
    assert (result.phase, result.tasks["again"].visits, result.tasks["ask"].data) == ("completed", 300, {"n": 301})


def test_a_broken_snapshot_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_run(tmp_path, monkeypatch)
    con = sqlite3.connect(tmp_path / "runs.db")
    name = next(
        n for (n,) in con.execute("SELECT name FROM sqlite_master WHERE name LIKE '%snapshot%' AND type='table'")
    )
    with con:
        con.execute(f"UPDATE {name} SET body = '{{}}'")
    con.close()
    made = PlannerEngine({"work": counting}, store=tmp_path / "runs.db")

    async def main() -> RunResult:
        return await made.show("r")

    assert drive(main()).tasks["again"].visits == 300


def test_the_plan_of_a_stored_run_is_had_without_folding_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine(tmp_path, ScriptedSkill("work"))
    assert made.run_sync(TWO, run_id="r").completed
    monkeypatch.setattr("fsm_agent.journal.loading.fold", lambda *_: pytest.fail("it was folded"))
    compiled = asyncio.run(made.plan_of("r"))
    assert compiled is not None
    assert compiled.graph.ids == ("a", "b")
    with pytest.raises(UnknownRun):
        asyncio.run(made.plan_of("q"))
