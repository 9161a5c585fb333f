"""Real processes: many on one file (F11), and time that passes between two of them."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from fsm_agent import PlannerEngine, skill
from tests.engine.support import drive

ROOT = Path(__file__).parents[2]

WORKER = """
import asyncio, sys
from fsm_agent import PlannerEngine, skill

@skill
async def work() -> dict:
    return {"ok": True}

async def main():
    engine = PlannerEngine([work], store=sys.argv[1])
    plan = {"goal": "g", "tasks": [{"id": "a", "skill": "work"}, {"id": "b", "skill": "work", "dependencies": ["a"]}]}
    for number in range(50):
        result = await engine.run(plan, run_id=f"{sys.argv[2]}-{number}")
        assert result.completed, result.reason

asyncio.run(main())
"""


def test_f11_eight_processes_on_one_file_and_a_lock_of_three_seconds_fail_no_run(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path), str(number)], env=environment, stderr=subprocess.PIPE
        )
        for number in range(8)
    ]
    locker = threading.Thread(target=lock_for_a_while, args=(path,))
    locker.start()
    engine = PlannerEngine([], store=path)
    looks = 0
    while any(worker.poll() is None for worker in workers):
        if engine._keeper is not None and engine._keeper.store.heads():
            looks += 1
        time.sleep(0.1)
    locker.join()
    for worker in workers:
        _, err = worker.communicate(timeout=60)
        assert worker.returncode == 0, err.decode()
    assert looks
    con = sqlite3.connect(path)
    assert con.execute("SELECT count(*), count(DISTINCT id) FROM runs WHERE phase = 'completed'").fetchone() == (
        400,
        400,
    )
    assert con.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    con.close()


def lock_for_a_while(path: Path) -> None:
    time.sleep(1)
    con = sqlite3.connect(path, isolation_level=None, timeout=30)
    con.execute("BEGIN IMMEDIATE")
    time.sleep(3)
    con.execute("ROLLBACK")
    con.close()


def test_time_in_which_a_run_rested_does_not_count_for_the_deadline(tmp_path: Path) -> None:
    @skill
    async def quick() -> dict[str, Any]:
        return {}

    plan = {"goal": "g", "tasks": [{"id": "a", "skill": "quick", "approval": "required"}]}

    async def main() -> str:
        engine = PlannerEngine([quick], store=tmp_path / "runs.db")
        await engine.run(plan, run_id="r", deadline=0.5)
        await engine.decide("r", "a", "approve")
        time.sleep(0.7)
        return (await engine.resume("r")).phase

    assert drive(main()) == "completed"
