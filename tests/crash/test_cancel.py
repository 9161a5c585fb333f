"""A run is cancelled within a second of being asked, wherever it stands, and nothing of it is RUNNING then."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import PlannerEngine, RunResult, skill
from tests.engine.support import drive


@skill
def blocks() -> dict[str, Any]:
    time.sleep(3)
    return {}


@skill
async def hangs() -> dict[str, Any]:
    await asyncio.sleep(60)
    return {}


@skill(idempotent=True)
async def fails() -> dict[str, Any]:
    raise OSError("down")


@skill(risk="high")
async def pays() -> dict[str, Any]:
    return {}


def task(name: str, **words: Any) -> dict[str, Any]:
    return {"id": name, "skill": name, **words}


PLANS = {
    "in a back-off": ([task("fails", max_retries=5, backoff={"base": 60, "jitter": "none"})], "attempt_failed"),
    "in a sync skill": ([task("blocks")], "task_started"),
    "in an async skill": ([task("hangs")], "task_started"),
    "while one waits for a person and another runs": ([task("pays"), task("hangs")], "approval_asked"),
    "right after its start": ([task("hangs")], "run_started"),
    "with many at once": (
        [{**task("hangs"), "id": f"t{number}"} for number in range(20)],
        "task_started",
    ),
}


@pytest.mark.timing
@pytest.mark.parametrize("where", PLANS)
def test_a_run_is_cancelled_within_a_second(tmp_path: Path, where: str) -> None:
    tasks, when = PLANS[where]
    seen = asyncio.Event()

    async def main() -> tuple[RunResult, float]:
        skills = [blocks, hangs, fails, pays]
        here = PlannerEngine(skills, store=tmp_path / "runs.db")
        there = PlannerEngine(skills, store=tmp_path / "runs.db")
        here.add_listener(lambda event: seen.set() if event.type == when else None)
        run = asyncio.create_task(here.run({"goal": "g", "tasks": tasks}, run_id="r"))
        await seen.wait()
        began = time.monotonic()
        await there.cancel("r", by="Ada")
        result = await run
        took = time.monotonic() - began
        assert (await there.show("r")).phase == "cancelled"
        return result, took

    result, took = drive(main())
    assert result.phase == "cancelled"
    assert "RUNNING" not in {each.status for each in result.tasks.values()}
    assert took < 5, "five times what is promised"
