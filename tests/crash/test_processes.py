"""Real processes: killed by the system, and many on one file (F11)."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import PlannerEngine, skill
from tests.crash.harness import World, go_on, verdict
from tests.crash.plans import PLANS
from tests.crash.test_positions import show, uninterrupted
from tests.engine.support import drive

ROOT = Path(__file__).parents[2]

KILLED = """
import asyncio, sys
from pathlib import Path
from tests.crash.harness import World
from tests.crash.plans import PLANS

name, folder, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
plan, script = PLANS[name]
world = World(folder, script)

def slowed(task):
    known = script.get(task)
    def play(visit, attempt):
        with (folder / "calls.txt").open("a") as calls:
            calls.write(f"{task} {visit} {attempt}\\n")
        return known(visit, attempt) if known else {"n": visit}
    return play

world.script = {task["id"]: slowed(task["id"]) for task in plan["tasks"]}

from fsm_agent import PlannerEngine
from fsm_agent.testing import FixedRandom

async def main():
    engine = PlannerEngine(world.skills(), store=folder / "runs.db", approver=lambda _: True, random=FixedRandom(0.0))
    stream = engine.stream(plan, run_id="r")
    async for _ in stream:
        await asyncio.sleep(seconds)

asyncio.run(main())
"""


@pytest.mark.parametrize("name", PLANS)
def test_a_run_whose_process_is_killed_by_the_system_comes_to_the_same_end(tmp_path: Path, name: str) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "torn").mkdir()
    wanted, _ = uninterrupted(tmp_path / "whole", name)
    folder = tmp_path / "torn"
    command = [sys.executable, "-c", KILLED, name, str(folder), "0.02"]
    running = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    calls = folder / "calls.txt"
    until = time.monotonic() + 30
    while not calls.exists() or len(calls.read_text().splitlines()) < 2:
        assert time.monotonic() < until
        assert running.poll() is None
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    world = World(folder, PLANS[name][1])
    world.now = time.time() - 1_700_000_000 + 100
    before = calls.read_text().splitlines()
    assert show(world).phase not in ("completed", "failed")
    settled = world.settled()
    result = go_on(world, approver=lambda _: True)
    assert result is not None
    assert verdict(result) == verdict(wanted)
    assert not {(call.task, call.visit) for call in world.ledger} & settled
    assert len(before) >= 2


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
