"""A store that cannot be written to: the run waits or rests, nothing is called unkept, and nothing is lost."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import PlannerEngine, RunResult, skill
from fsm_agent.errors import LeaseLost, RunHeld, StoreBusy, StoreError, StoreUnavailable
from fsm_agent.journal.opening import open_store
from fsm_agent.journal.owners import Owner, this_process
from tests.crash.harness import TroubledStore, World, go_on, run_step_by_step, verdict
from tests.crash.plans import PLANS
from tests.crash.test_positions import agree, show, uninterrupted
from tests.engine.support import drive

FOREVER = float("inf")


@pytest.mark.parametrize("error", [StoreBusy, StoreUnavailable])
@pytest.mark.parametrize("name", PLANS)
def test_whichever_write_fails_for_good_the_run_rests_as_its_journal_has_it(
    tmp_path: Path, name: str, error: type[StoreBusy | StoreUnavailable]
) -> None:
    (tmp_path / "whole").mkdir()
    wanted, writes = uninterrupted(tmp_path / "whole", name)
    plan, script = PLANS[name]
    for at in range(1, writes + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        world = World(folder, script)
        result = troubled(world, plan, at, error)
        if result is None:
            assert (at, world.ledger, world.exists()) == (1, [], False)
            continue
        assert (result.outcome, (result.reason or {}).get("kind")) == ("paused", "store"), f"write {at}"
        made = {(call.task, call.visit, call.attempt) for call in world.ledger}
        assert made <= world.started(), f"write {at}: a call was made whose start was not kept"
        shown = show(world)
        assert verdict(shown) == verdict(result), f"write {at}"
        done = go_on(world, approver=agree)
        assert done is not None
        assert verdict(done) == verdict(wanted), f"write {at}"


def troubled(world: World, plan: Any, at: int, error: type[StoreBusy | StoreUnavailable]) -> RunResult | None:
    """A run whose store fails from write `at` on; None where it never came to be."""
    store = world.open()

    async def main() -> RunResult:
        engine = world.engine(TroubledStore(store, at, FOREVER, error), approver=agree)
        return await run_step_by_step(engine, plan)

    try:
        return asyncio.run(main())
    except StoreError:
        return None
    finally:
        world.now += 100.0
        store.close()


@pytest.mark.parametrize("error", [StoreBusy, StoreUnavailable])
def test_whichever_write_fails_for_a_while_the_run_goes_on(
    tmp_path: Path, error: type[StoreBusy | StoreUnavailable]
) -> None:
    (tmp_path / "whole").mkdir()
    wanted, writes = uninterrupted(tmp_path / "whole", "busy")
    plan, script = PLANS["busy"]
    for at in range(1, writes + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        world = World(folder, script, patience=1.0)
        store = world.open()
        engine = world.engine(TroubledStore(store, at, 3, error), approver=agree)
        result = asyncio.run(run_step_by_step(engine, plan))
        store.close()
        assert verdict(result) == verdict(wanted), f"write {at}"


# Real trouble -------------------------------------------------------------------------------------------------------


@skill(idempotent=True)
async def large(n: int) -> dict[str, Any]:
    return {"n": n, "text": "界" * 20_000}


def chain(size: int) -> dict[str, Any]:
    first = {"id": "t0", "skill": "large", "parameters": {"n": 0}}
    more = [
        {"id": f"t{n}", "skill": "large", "parameters": {"n": n}, "dependencies": [f"t{n - 1}"]} for n in range(1, size)
    ]
    return {"goal": "g", "tasks": [first, *more]}


def test_a_full_disk_pauses_the_run_and_with_room_again_it_goes_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db?busy_timeout=0.1"
    store: Any = open_store(url)
    store._db._con.execute("PRAGMA max_page_count = 120")

    async def main() -> tuple[RunResult, RunResult]:
        result = await PlannerEngine([large], store=store).run(chain(30), run_id="r")
        store._db._con.execute("PRAGMA max_page_count = 100000")
        return result, await PlannerEngine([large], store=url).resume("r")

    paused, done = drive(main())
    assert (paused.outcome, (paused.reason or {}).get("kind")) == ("paused", "store")
    assert 0 < sum(task.status == "SUCCEEDED" for task in paused.tasks.values()) < 30
    assert (done.phase, done.tasks["t29"].data["n"]) == ("completed", 29)
    assert all(task.attempts <= 2 for task in done.tasks.values())


def hold_lock(path: Path, seconds: float, held: threading.Event) -> None:
    con = sqlite3.connect(path, isolation_level=None)
    con.execute("BEGIN IMMEDIATE")
    held.set()
    time.sleep(seconds)
    con.execute("ROLLBACK")
    con.close()


@pytest.mark.parametrize(("seconds", "outcome"), [(0.4, "clean"), (3.0, "paused")])
def test_a_lock_is_waited_for_and_one_that_is_held_too_long_pauses_the_run(
    tmp_path: Path, seconds: float, outcome: str
) -> None:
    url = f"sqlite:///{tmp_path}/runs.db?busy_timeout=1"
    open_store(url).close()
    held = threading.Event()
    other = threading.Thread(target=hold_lock, args=(tmp_path / "runs.db", seconds, held))

    @skill
    def lock() -> dict[str, Any]:
        other.start()
        held.wait(5)
        return {}

    plan = {"goal": "g", "tasks": [{"id": "a", "skill": "lock"}, {"id": "b", "skill": "note",
            "parameters": {"text": "x"}, "dependencies": ["a"]}]}  # fmt: skip

    async def main() -> RunResult:
        return await PlannerEngine([lock], store=url).run(plan, run_id="r")

    try:
        result = drive(main())
    finally:
        other.join()
    assert result.outcome == outcome
    if outcome == "paused":
        assert "store" in str(result.reason)


# One driver ---------------------------------------------------------------------------------------------------------


def other_owner(name: str) -> Owner:
    return this_process(name)


def test_a_driver_that_lost_its_lease_writes_nothing_more_and_stops_its_calls(tmp_path: Path) -> None:
    stopped = []

    @skill(idempotent=True)
    async def slow() -> dict[str, Any]:
        try:
            await asyncio.sleep(0.5)
        except asyncio.CancelledError:
            stopped.append("slow")
            raise
        return {}

    @skill(idempotent=True)
    async def quick() -> dict[str, Any]:
        take_over(tmp_path / "runs.db")
        return {}

    plan = {"goal": "g", "tasks": [{"id": "a", "skill": "slow"}, {"id": "b", "skill": "quick"}]}

    async def main() -> None:
        engine = PlannerEngine([slow, quick], store=tmp_path / "runs.db")
        with pytest.raises(LeaseLost):
            await engine.run(plan, run_id="r")
        await asyncio.sleep(0.01)

    drive(main())
    assert stopped == ["slow"]
    store = open_store(tmp_path / "runs.db")
    assert [event.type for event in store.events("r")].count("task_evaluated") == 0
    store.close()


def take_over(path: Path) -> None:
    """Somebody else takes the run: for them the lease has run out."""

    class Later:
        def now(self) -> float:
            return time.time() + 3600

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(name)

    late: Any = Later()
    store = open_store(path, clock=late)
    store.acquire("r", other_owner("rescuer"), 60)
    store.close()


def test_of_two_rescuers_one_wins_and_the_other_is_told_who(tmp_path: Path) -> None:
    calls = []

    @skill(idempotent=True)
    async def work() -> dict[str, Any]:
        calls.append(1)
        await asyncio.sleep(0.1)
        return {}

    plan = {"goal": "g", "tasks": [{"id": "a", "skill": "work", "approval": "required"}]}

    async def main() -> list[Any]:
        engines = [PlannerEngine([work], store=tmp_path / "runs.db") for _ in range(4)]
        await engines[0].run(plan, run_id="r")
        await engines[0].decide("r", "a", "approve")
        return await asyncio.gather(*(engine.resume("r") for engine in engines), return_exceptions=True)

    results = drive(main())
    won = [result for result in results if isinstance(result, RunResult)]
    lost = [result for result in results if isinstance(result, RunHeld)]
    assert (len(won), len(lost), len(calls)) == (1, 3, 1)
    assert "process" in lost[0].holder
    assert lost[0].until > time.time() - 60
