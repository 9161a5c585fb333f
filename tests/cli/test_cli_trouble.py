"""Runs in trouble, on the command line with real processes: no room, nobody in time, and an end in the middle."""

from __future__ import annotations

import resource
import sqlite3
import time
from typing import Any

import pytest

from tests.cli.project import Call, Project, ended
from tests.cli.stored import ledger, task, types_in, wait_for

MORE = """
import time
from pathlib import Path

from fsm_agent import skill


@skill
def large(number: int) -> dict:
    with Path("ledger.txt").open("a") as ledger:
        ledger.write(f"{number}\\n")
    return {"text": "x" * 20_000}


@skill(idempotent=True)
def fails() -> None:
    raise OSError("down")


@skill
async def hangs() -> None:
    import asyncio

    await asyncio.sleep(60)
"""


@pytest.fixture
def troubled(shop: Project) -> Project:
    shop.plan("skills/more.py", MORE)
    return shop


def no_file_above(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_a_store_without_room_pauses_the_run_and_another_process_ends_it(troubled: Project) -> None:
    tasks = [task(f"t{n}", "large", f"t{n - 1}" if n else None, number=n) for n in range(40)]
    plan = troubled.plan("plan.yaml", {"goal": "g", "tasks": tasks})
    paused = ended(troubled.process("run", plan, "--run-id", "r", "--json", preexec_fn=lambda: no_file_above(400_000)))
    assert (paused.code, paused.document["outcome"], paused.document["reason"]["kind"]) == (3, "paused", "store")
    assert "fsm-agent resume r" in paused.err
    called = ledger(troubled)
    assert 5 < len(called) < 40
    shown = troubled.run("runs", "show", "r", "--json").document
    assert {**shown, "elapsed_s": 0, "reason": None} == {**paused.document, "elapsed_s": 0, "reason": None}
    assert troubled.run("replay", "r").code == 0
    result = troubled.run("resume", "r", "--json")
    if result.code == 3:  # the outcome of the last call could not be written: nobody knows whether it had its effect
        [asked] = result.document["waiting"]
        assert (asked["kind"], ledger(troubled)) == ("interrupted", called)
        assert troubled.run("decide", "r", asked["task"], "done").code == 0
        result = troubled.run("resume", "r", "--json")
    assert (result.code, result.document["phase"]) == (0, "completed")
    assert ledger(troubled) == [str(n) for n in range(40)]


def test_an_approval_expires_while_no_process_runs(call: Call, shop: Project) -> None:
    asks = {**task("a", "pay", amount=1), "approval_timeout": 0.5, "on_failure": "b"}
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [asks, task("b", "greet")]})
    assert call("run", plan, "--run-id", "r").code == 3
    time.sleep(0.7)
    late = call("approve", "r", "a", "--json")
    assert (late.code, late.document["error"]["code"]) == (2, "decision_refused")
    assert "expired" in late.document["error"]["message"]
    result = call("resume", "r", "--json").document
    assert (result["phase"], result["tasks"]["a"]["error"]["kind"]) == ("completed", "expired")
    assert ledger(shop) == []


WHERE = {
    "in a back-off": (
        [{**task("a", "fails"), "max_retries": 5, "backoff": {"base": 60, "jitter": "none"}}],
        "attempt_failed",
    ),
    "right after its start": ([task("a", "hangs")], "run_started"),
    "in an async call": ([task("a", "hangs")], "task_started"),
    "while one waits for a person and another runs": (
        [task("a", "hangs"), task("b", "pay", amount=1)],
        "approval_asked",
    ),
}


@pytest.mark.timing
@pytest.mark.parametrize("where", WHERE)
def test_a_run_of_another_process_is_cancelled_within_a_second(troubled: Project, where: str) -> None:
    tasks, event = WHERE[where]
    running = troubled.process(
        "run", troubled.plan("plan.yaml", {"goal": "g", "tasks": tasks}), "--run-id", "r", "--json"
    )
    wait_for(lambda: event in types_in(troubled))
    asked = troubled.run("cancel", "r", "--by", "Ada")
    assert asked.code == 4, asked.err
    done = ended(running)
    assert (done.code, done.document["phase"]) == (4, "cancelled")
    assert "RUNNING" not in {each["status"] for each in done.document["tasks"].values()}
    con = sqlite3.connect(troubled.folder / ".fsm-agent" / "runs.db")
    times = dict(con.execute("SELECT type, at FROM events WHERE type IN ('cancel_asked', 'run_finished')").fetchall())
    con.close()
    assert times["run_finished"] - times["cancel_asked"] < 5


def test_a_run_is_cancelled_while_its_approver_in_another_process_thinks(troubled: Project) -> None:
    script = """
import asyncio, sys, time
from fsm_agent import PlannerEngine

async def approver(request):
    await asyncio.sleep(60)

async def main():
    engine = PlannerEngine("skills", store=".fsm-agent/runs.db", approver=approver)
    tasks = [{"id": "a", "skill": "pay", "parameters": {"amount": 1}}]
    result = await engine.run({"goal": "g", "tasks": tasks}, run_id="r")
    sys.exit(0 if result.phase == "cancelled" else 1)

asyncio.run(main())
"""
    running = troubled.script(script)
    wait_for(lambda: "approval_asked" in types_in(troubled))
    assert troubled.run("cancel", "r").code == 4
    assert running.wait(10) == 0
    shown: dict[str, Any] = troubled.run("runs", "show", "r", "--json").document
    assert (shown["phase"], shown["waiting"], ledger(troubled)) == ("cancelled", [], [])


def test_f07_of_two_alike_the_second_is_rejected_and_then_the_first_approved_each_by_a_new_process(
    troubled: Project,
) -> None:
    tasks = [{**task(name, "pay", amount=5), "recovery": "skip"} for name in ("one", "two")]
    assert troubled.run("run", troubled.plan("plan.yaml", {"goal": "g", "tasks": tasks}), "--run-id", "r").code == 3
    waiting = troubled.run("runs", "show", "r", "--json").document["waiting"]
    ids = {asked["task"]: asked["approval"] for asked in waiting}
    assert troubled.run("reject", "r", ids["two"], "--by", "Bo").code == 0
    assert troubled.run("approve", "r", ids["one"], "--by", "Ada").code == 0
    result = troubled.run("resume", "r", "--json").document
    assert (result["tasks"]["one"]["status"], result["tasks"]["two"]["reason"]) == ("SUCCEEDED", "optional")
    assert ledger(troubled) == ["5"]
