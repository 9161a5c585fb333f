"""Ten seeded deaths for each natural plan; for each of the repository's own one at each write, with its real skills."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest

from fsm_agent import PlannerEngine, RunResult
from fsm_agent.core.machine import FINAL
from fsm_agent.journal.opening import open_store
from tests.crash.fuzz import torn_round
from tests.crash.harness import Killed, MortalStore
from tests.crash.own import OWN, ROOT, essence, written
from tests.engine.scripted import playable

NATURAL = json.loads((ROOT / "tests" / "data" / "natural_plans.json").read_text(encoding="utf-8"))["cases"]
POSITIONS = 10


@pytest.mark.parametrize("case", NATURAL, ids=lambda case: case["name"])
def test_a_natural_plan_survives_ten_deaths(case: dict[str, Any]) -> None:
    plan = case["plan"] if isinstance(case["plan"], dict) else {"goal": "g", "tasks": case["plan"]}
    script = playable(plan, case.get("outcomes", {}))
    for seed in range(POSITIONS):
        torn_round(plan, script, seed, random.Random(f"{case['name']} {seed}"))


Here = Callable[[], Path]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Goes to an empty folder with the repository's plans, each time to another one."""
    numbers = count()

    def go() -> Path:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        (folder / "plans").symlink_to(ROOT / "plans")
        monkeypatch.chdir(folder)
        return folder

    return go


def live(folder: Path, name: str, at: int = 0, when: Literal["before", "after"] = "before") -> tuple[Any, int]:
    """A process that begins the run or goes on with it, and dies at its write number `at` (0: it does not).

    What the run came to, None if the process died; and how many writes there were. One task at a time: calls that end
    at once would share a write, and there were not as many each time.
    """
    store = MortalStore(open_store(folder / "runs.db"), at, when)

    async def main() -> RunResult:
        engine = PlannerEngine(ROOT / "skills", store=store, approver=lambda _: True)
        heads = store.heads()
        if not heads:
            return await engine.run(f"plans/{name}.yaml", run_id="r", max_parallel=1)
        if heads[0].phase in FINAL:
            return await engine.show("r")
        return await engine.resume("r")

    try:
        return essence(asyncio.run(main()).to_json()), store.writes
    except Killed:
        return None, store.writes
    finally:
        store._store.close()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", OWN)
def test_a_plan_of_the_repository_survives_a_death_at_any_of_its_writes(
    here: Here, name: str, when: Literal["before", "after"]
) -> None:
    """With its real skills: the same statuses, data, context and output, and the same files."""
    whole = here()
    wanted, writes = live(whole, name)
    assert wanted["phase"] == "completed"
    assert writes > 5
    for at in range(1, writes + 1):
        folder = here()
        died, _ = live(folder, name, at, when)
        assert died is None
        done, _ = live(folder, name)
        assert done == wanted, f"killed {when} write {at}"
        assert written(folder) == written(whole), f"killed {when} write {at}"
