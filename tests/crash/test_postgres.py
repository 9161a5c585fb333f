"""The engine on a real PostgreSQL: commits on a thread, lost connections, other processes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from fsm_agent import PlannerEngine, RunResult, SkillContext, skill
from fsm_agent.errors import LeaseLost, RunExists, RunHeld
from fsm_agent.journal.opening import open_store
from fsm_agent.testing import FixedRandom
from tests.crash.harness import scripted
from tests.crash.plans import BUSY, BUSY_SCRIPT
from tests.engine.support import drive


@pytest.fixture
def url(postgres_url: str) -> Iterator[str]:
    """A schema of its own."""
    schema = f"t{uuid.uuid4().hex[:12]}"
    yield f"{postgres_url}{'&' if '?' in postgres_url else '?'}schema={schema}&busy_timeout=1"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@skill(idempotent=True)
async def work(context: SkillContext) -> Any:
    return scripted(BUSY_SCRIPT, context)


def engine(url: str, *skills: Any, **words: Any) -> PlannerEngine:
    return PlannerEngine([work, *skills], store=url, random=FixedRandom(0.0), **words)


def test_a_busy_plan_runs_waits_for_a_person_and_goes_on_in_another_engine(url: str) -> None:
    async def main() -> tuple[RunResult, RunResult, RunResult]:
        async with engine(url) as here, engine(url) as there:
            paused = await here.run(BUSY, run_id="r")
            with pytest.raises(RunExists):
                await there.run(BUSY, run_id="r")
            await there.decide("r", "agreed", "approve", by="Ada", why="好")
            done = await there.resume("r")
            return paused, done, await here.show("r")

    paused, done, shown = drive(main())
    assert [asked["task"] for asked in paused.waiting] == ["agreed"]
    assert (done.phase, done.output, done.context["seen"]) == ("completed", 3, ["左", "右"])
    assert shown.to_json()["tasks"] == done.to_json()["tasks"]


def test_ten_runs_at_once_are_kept_on_one_connection(url: str) -> None:
    async def main() -> list[RunResult]:
        async with engine(url, approver=lambda _: True) as here:
            return await asyncio.gather(*(here.run(BUSY, run_id=f"r{number}") for number in range(10)))

    assert {result.phase for result in drive(main())} == {"completed"}


def test_a_connection_that_is_lost_in_the_middle_is_made_anew_and_the_run_goes_on(url: str, postgres_url: str) -> None:
    @skill(idempotent=True)
    async def cut() -> dict[str, Any]:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        return {}

    tasks = [{"id": "a", "skill": "cut"}, {"id": "b", "skill": "work", "dependencies": ["a"]}]

    async def main() -> tuple[RunResult, RunResult]:
        async with engine(url, cut) as here:
            result = await here.run({"goal": "g", "tasks": tasks}, run_id="r")
            return result, await here.show("r")

    result, shown = drive(main())
    assert result.completed
    assert shown.completed


def test_of_two_engines_one_drives_and_a_live_run_hears_the_other(url: str) -> None:
    @skill
    async def slow() -> dict[str, Any]:
        await asyncio.sleep(20)
        return {}

    async def main() -> RunResult:
        async with engine(url, slow) as here, engine(url, slow) as there:
            run = asyncio.create_task(here.run({"goal": "g", "tasks": [{"id": "a", "skill": "slow"}]}, run_id="r"))
            while "task_started" not in types_of(url):
                await asyncio.sleep(0.02)
            with pytest.raises(RunHeld):
                await there.resume("r")
            began = asyncio.get_running_loop().time()
            assert await there.cancel("r", by="Ada") is None
            result = await run
            assert asyncio.get_running_loop().time() - began < 5
            return result

    result = drive(main())
    assert (result.phase, result.tasks["a"].status) == ("cancelled", "FAILED")


def types_of(url: str) -> list[str]:
    store = open_store(url)
    try:
        return [event.type for head in store.heads() for event in store.events(head.run_id)]
    finally:
        store.close()


def test_a_driver_whose_run_was_taken_over_writes_nothing_more(url: str, postgres_url: str) -> None:
    schema = url.partition("schema=")[2].partition("&")[0]

    @skill(idempotent=True)
    async def robbed() -> dict[str, Any]:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(f"UPDATE {schema}.run_state SET fence = fence + 1")
        return {}

    async def main() -> None:
        async with engine(url, robbed) as here:
            with pytest.raises(LeaseLost):
                await here.run({"goal": "g", "tasks": [{"id": "a", "skill": "robbed"}]}, run_id="r")

    drive(main())
    assert "task_evaluated" not in types_of(url)
