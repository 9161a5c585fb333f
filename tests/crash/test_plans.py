"""Ten seeded deaths for each natural plan, and for each of the repository's own with its real skills."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import PlannerEngine, RunResult
from fsm_agent.core.machine import FINAL
from fsm_agent.journal.opening import open_store
from tests.crash.fuzz import torn_round
from tests.crash.harness import Killed, MortalStore
from tests.engine.scripted import playable

ROOT = Path(__file__).parents[2]
NATURAL = json.loads((ROOT / "tests" / "data" / "natural_plans.json").read_text(encoding="utf-8"))["cases"]
POSITIONS = 10


@pytest.mark.parametrize("case", NATURAL, ids=lambda case: case["name"])
def test_a_natural_plan_survives_ten_deaths(case: dict[str, Any]) -> None:
    plan = case["plan"] if isinstance(case["plan"], dict) else {"goal": "g", "tasks": case["plan"]}
    script = playable(plan, case.get("outcomes", {}))
    for seed in range(POSITIONS):
        torn_round(plan, script, seed, random.Random(f"{case['name']} {seed}"))


OWN = ("sales_east_china", "business_trip", "umbrella")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("plans", "skills"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def live(folder: Path, name: str, at: int, run_id: str) -> tuple[RunResult | None, int]:
    """A process that begins the run or goes on with it, and dies at its write number `at` (0: it does not)."""
    store = MortalStore(open_store(folder / "runs.db"), at)

    async def main() -> RunResult:
        engine = PlannerEngine(folder / "skills", store=store, approver=lambda _: True)
        known = {head.run_id for head in store.heads()}
        if run_id in known:
            return await engine.resume(run_id)
        return await engine.run(folder / "plans" / f"{name}.yaml", run_id=run_id, grants={"file.write"})

    try:
        return asyncio.run(main()), store.writes
    except Killed:
        return None, store.writes
    finally:
        store._store.close()


def rerun(folder: Path, run_id: str) -> None:
    """A person says of each interrupted call that it is to be made again."""
    store = open_store(folder / "runs.db")

    async def main() -> None:
        engine = PlannerEngine(folder / "skills", store=store)
        for asked in (await engine.show(run_id)).waiting:
            await engine.decide(run_id, asked["approval"], "rerun" if asked["kind"] == "interrupted" else "approve")

    asyncio.run(main())
    store.close()


def told(result: RunResult) -> dict[str, Any]:
    statuses = {task: (each.status, each.reason, each.visits) for task, each in result.tasks.items()}
    return {"phase": result.phase, "outcome": result.outcome, "tasks": statuses}


@pytest.mark.parametrize("name", OWN)
def test_a_plan_of_the_repository_survives_ten_deaths(here: Path, name: str) -> None:
    wanted, writes = live(here, name, 0, "whole")
    assert wanted is not None
    assert wanted.phase in FINAL
    chance = random.Random(name)
    for number in range(POSITIONS):
        run_id = f"torn {number}"
        result, _ = live(here, name, chance.randint(2, max(writes, 3)), run_id)
        for _ in range(5):
            if result is not None and result.phase in FINAL:
                break
            result, _ = live(here, name, 0, run_id)
            if result is not None and result.phase not in FINAL:
                rerun(here, run_id)
        assert result is not None
        assert told(result) == told(wanted), f"death {number}"
