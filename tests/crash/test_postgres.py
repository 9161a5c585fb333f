"""The engine on a real PostgreSQL: commits on a thread, lost connections, other processes."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from fsm_agent import PlannerEngine, RunResult, SkillContext, skill
from fsm_agent.engine import keeping
from fsm_agent.errors import LeaseLost, RunExists, RunHeld
from fsm_agent.journal.opening import open_store
from fsm_agent.testing import FixedRandom
from tests.crash.harness import scripted
from tests.crash.plans import BUSY, BUSY_SCRIPT
from tests.engine.support import drive
from tests.journal.proxy import Proxy


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


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_server_that_is_gone_during_a_call_is_waited_for_and_then_the_run_rests(
    url: str, postgres_url: str, comes_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LEASE", 1.0)
    port = urlsplit(postgres_url).port
    assert port is not None
    lines = [Proxy(port)]
    own = lines[0].port

    @skill(idempotent=True)
    def cut(context: SkillContext) -> dict[str, Any]:
        if len(lines) == 1:
            lines[0].close()
            if comes_back:
                threading.Timer(0.3, lambda: lines.append(Proxy(port, own))).start()
            else:
                lines.append(lines[0])
        return {"visit": context.visit}

    tasks = [{"id": "a", "skill": "cut"}, {"id": "b", "skill": "work", "dependencies": ["a"]}]

    async def main() -> tuple[RunResult, RunResult]:
        async with engine(url.replace(f":{port}", f":{own}").replace("timeout=1", "timeout=3"), cut) as through:
            result = await through.run({"goal": "g", "tasks": tasks}, run_id="r")
        async with engine(url, cut) as here:
            return result, await (here.show("r") if comes_back else here.resume("r"))

    try:
        result, done = drive(main())
    finally:
        lines[-1].close()
    if comes_back:
        assert result.completed
        assert result.tasks["a"].attempts == 1
    else:
        assert (result.outcome, result.reason and result.reason["kind"]) == ("paused", "store")
    assert done.completed


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
