"""Runs, and people who decide about them, in processes of their own: each call here is a real one."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, clean_environment, ended
from tests.cli.stored import ledger, task, types_in, wait_for

AT_MOST = 5.0
"""Five times the second within which a run is to be cancelled."""
FLAKY = """
from fsm_agent import skill


@skill(idempotent=True)
async def down() -> None:
    raise OSError("no route")


@skill(idempotent=True)
def large(n: int) -> dict:
    return {"n": n, "text": "界" * 10_000}
"""


@pytest.fixture(autouse=True)
def flaky(shop: Project) -> None:
    shop.plan("skills/flaky.py", FLAKY)


@pytest.fixture
def started(shop: Project) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes of the project, none of which outlives the test."""
    processes = []

    def start(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        processes.append(shop.process(*arguments, **options))
        return processes[-1]

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


Start = Callable[..., "subprocess.Popen[bytes]"]


# Approvals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("handled", [False, True])
def test_who_approves_after_the_time_is_told_and_the_run_goes_on_with_a_rejection(shop: Project, handled: bool) -> None:
    late = {**task("a", "pay", amount=1), "approval_timeout": 0.2, **({"on_failure": "b"} if handled else {})}
    tasks = [late, task("b", "greet")] if handled else [late]
    paused = shop.run("run", shop.plan("plan.yaml", {"goal": "g", "tasks": tasks}), "--run-id", "r", "--json")
    assert paused.code == 3
    expires = paused.document["waiting"][0]["expires_at"]
    time.sleep(max(0.0, expires - time.time() + 0.05))
    told = shop.run("approve", "r", "a", "--by", "Ada", "--json")
    assert (told.code, told.document["error"]["code"]) == (2, "decision_refused")
    assert "expired" in told.document["error"]["message"]
    again = shop.run("approve", "r", "a", "--by", "Bo")
    assert again.code == 2
    done = shop.run("resume", "r", "--json")
    assert (done.code, done.document["phase"]) == ((0, "completed") if handled else (1, "failed"))
    assert (done.document["tasks"]["a"]["status"], done.document["tasks"]["a"]["error"]["kind"]) == (
        "FAILED",
        "expired",
    )
    assert [each["decision"] for each in done.document["approvals"]] == ["expired"]
    assert ledger(shop) == []


def test_an_approval_that_expired_while_nobody_looked_is_a_rejection_when_the_run_is_resumed(shop: Project) -> None:
    late = {**task("a", "pay", amount=1), "approval_timeout": 0.2, "recovery": "skip"}
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [late, task("b", "greet")]})
    assert shop.run("run", plan, "--run-id", "r").code == 3
    time.sleep(0.3)
    done = shop.run("resume", "r", "--approve-all", "--json")
    assert (done.code, done.document["tasks"]["a"]["reason"]) == (0, "optional")
    assert done.document["tasks"]["a"]["error"]["kind"] == "expired"
    assert ledger(shop) == []


@pytest.mark.parametrize("is_driven", [False, True])
def test_f07_of_two_equal_calls_exactly_the_approved_one_is_made(
    shop: Project, started: Start, is_driven: bool
) -> None:
    """The second is rejected first, by one process; the first is approved then, by another."""
    tasks = [{**task(name, "pay", amount=5), "recovery": "skip"} for name in ("one", "two")]
    tasks += [task("busy", "wait", seconds=60)] if is_driven else []
    running = started("run", shop.plan("plan.yaml", {"goal": "g", "tasks": tasks}), "--run-id", "r", "--json")
    if not is_driven:
        assert ended(running).code == 3
    wait_for(lambda: types_in(shop).count("approval_asked") == 2)
    waiting = shop.run("runs", "show", "r", "--json").document["waiting"]
    ids = {asked["task"]: asked["approval"] for asked in waiting}
    assert len(set(ids.values())) == 2
    assert shop.run("reject", "r", ids["two"], "--by", "Bo").code == 0
    assert shop.run("approve", "r", ids["one"], "--by", "Ada").code == 0
    if is_driven:
        wait_for(lambda: types_in(shop).count("approval_decided") == 2 and "task_evaluated" in types_in(shop))
        assert shop.run("cancel", "r").code == 4
        result = ended(running).document
    else:
        result = shop.run("resume", "r", "--json").document
    assert (result["tasks"]["one"]["status"], result["tasks"]["two"]["reason"]) == ("SUCCEEDED", "optional")
    assert result["tasks"]["two"]["error"]["kind"] == "rejected"
    assert {each["task"]: (each["decision"], each["by"]) for each in result["approvals"]} == {
        "one": ("approved", "Ada"),
        "two": ("rejected", "Bo"),
    }
    assert ledger(shop) == ["5"]


# Cancelling ---------------------------------------------------------------------------------------------------------


def cancel(shop: Project) -> None:
    """Cancel the run, which somebody else drives. The command waits for its end for three seconds, and no longer."""
    said = shop.run("cancel", "r", "--by", "Ada", "--why", "enough")
    assert (said.code, said.err) == (4, "")


def assert_cancelled(shop: Project) -> None:
    """It was told so, it has ended, and soon after it was asked to."""
    shown = shop.run("runs", "show", "r", "--json").document
    assert (shown["phase"], shown["waiting"]) == ("cancelled", [])
    assert "by Ada: enough" in shown["reason"]["message"]
    assert "RUNNING" not in {each["status"] for each in shown["tasks"].values()}
    events = shop.run("runs", "events", "r", "--json").document["events"]
    [asked] = [event["at"] for event in events if event["type"] == "cancel_asked"]
    assert events[-1]["type"] == "run_finished"
    assert events[-1]["at"] - asked < AT_MOST
    assert ledger(shop) == []


BACK_OFF = {**task("a", "down"), "max_retries": 5, "backoff": {"base": 60, "jitter": "none", "cap": 60}}


@pytest.mark.timing
@pytest.mark.parametrize(
    ("tasks", "when"),
    [
        pytest.param([BACK_OFF], "attempt_failed", id="in a back-off"),
        pytest.param([task("a", "wait", seconds=60)], "run_started", id="right after its start"),
        pytest.param([task("a", "wait", seconds=60), task("b", "pay", amount=1)], "approval_asked", id="people asked"),
    ],
)
def test_a_run_that_another_process_drives_is_cancelled_at_once(
    shop: Project, started: Start, tasks: list[dict[str, Any]], when: str
) -> None:
    running = started("run", shop.plan("plan.yaml", {"goal": "g", "tasks": tasks}), "--run-id", "r", "--json")
    wait_for(lambda: when in types_in(shop))
    cancel(shop)
    done = ended(running)
    assert (done.code, done.document["phase"]) == (4, "cancelled")
    assert_cancelled(shop)


ASKS = """
import asyncio, json, sys, time
from pathlib import Path
from fsm_agent import PlannerEngine

def ask(request):
    Path("asked").write_text(request.task)
    time.sleep(60)

async def ask_later(request):
    Path("asked").write_text(request.task)
    await asyncio.sleep(60)

async def main():
    approver = {"thread": ask, "loop": ask_later}[sys.argv[1]]
    engine = PlannerEngine("skills", store=".fsm-agent/runs.db", approver=approver)
    result = await engine.run("plan.yaml", run_id="r")
    print(json.dumps(result.to_json()), flush=True)

Path(".fsm-agent").mkdir()
asyncio.run(main())
"""


@pytest.mark.timing
@pytest.mark.parametrize("where", ["thread", "loop"])
def test_a_run_whose_approver_gives_no_answer_is_cancelled_at_once(shop: Project, where: str) -> None:
    shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]})
    command = [sys.executable, "-c", ASKS, where]
    environment = clean_environment()
    running = subprocess.Popen(command, cwd=shop.folder, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        wait_for((shop.folder / "asked").exists)
        cancel(shop)
        assert running.stdout is not None
        assert json.loads(running.stdout.readline())["phase"] == "cancelled"
    finally:
        running.kill()
        running.communicate()
    assert_cancelled(shop)


@pytest.mark.timing
def test_a_run_that_asks_at_a_terminal_is_cancelled_while_nobody_types(shop: Project) -> None:
    pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
    near, far = pty.openpty()
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay", amount=1)]})
    running = shop.process("run", plan, "--run-id", "r", stdin=far, stdout=far, stderr=far, start_new_session=True)
    os.close(far)
    try:
        screen = ""
        while "Approve? [y/n]" not in screen:
            screen += os.read(near, 65536).decode(errors="replace")
        cancel(shop)
        while _more(near):
            pass
        assert running.wait(timeout=10) == 4
    finally:
        running.kill()
        running.wait()
        os.close(near)
    assert_cancelled(shop)


def _more(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other side is closed
        return b""


# A store in trouble -------------------------------------------------------------------------------------------------


def chain(size: int) -> list[dict[str, Any]]:
    return [task(f"t{n}", "large", f"t{n - 1}" if n else None, n=n) for n in range(size)]


def essence(document: Any) -> Any:
    return {key: document[key] for key in ("phase", "outcome", "output", "context")} | {
        name: (each["status"], each["data"]) for name, each in document["tasks"].items()
    }


def test_a_store_that_is_full_in_the_middle_lets_the_run_rest_and_another_process_goes_on(
    shop: Project, started: Start
) -> None:
    """Full is here: the system lets the process write no longer files."""
    resource = pytest.importorskip("resource", reason="needs limits of the system")
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": chain(12), "output": "results.t11.data.n"})
    place = ("--store", "sqlite:///runs.db?busy_timeout=0.2")
    wanted = shop.run("run", plan, "--run-id", "r", "--json", "--store", "whole.db").document

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, resource.RLIM_INFINITY))

    rests = ended(started("run", plan, "--run-id", "r", "--json", *place, preexec_fn=limit))
    assert rests.code == 3, rests.err
    assert (rests.document["outcome"], rests.document["reason"]["kind"]) == ("paused", "store")
    assert "fsm-agent resume r" in rests.err
    succeeded = [name for name, each in rests.document["tasks"].items() if each["status"] == "SUCCEEDED"]
    assert 0 < len(succeeded) < 12
    shown = shop.run("runs", "show", "r", "--json", *place).document
    assert {name: each["status"] for name, each in shown["tasks"].items()} == {
        name: each["status"] for name, each in rests.document["tasks"].items()
    }
    done = shop.run("resume", "r", "--json", *place)
    assert done.code == 0
    assert essence(done.document) == essence(wanted)
    assert all(done.document["tasks"][name]["attempts"] == 1 for name in succeeded)
    assert shop.run("replay", "r", "--json", *place).document["holds"]


def test_f11_a_lock_that_outlasts_the_patience_pauses_the_run_and_loses_nothing(shop: Project, started: Start) -> None:
    tasks = [task("a", "wait", seconds=0.5), task("b", "pay_once", "a"), task("c", "greet", "b")]
    shop.plan("skills/once.py", PAY_ONCE)
    plan = shop.plan("plan.yaml", {"goal": "g", "tasks": tasks})
    place = ("--store", "sqlite:///runs.db?busy_timeout=0.3")
    running = started("run", plan, "--run-id", "r", "--json", *place)
    path = shop.folder / "runs.db"
    wait_for(lambda: "task_started" in _types(path))
    con = sqlite3.connect(path, isolation_level=None, timeout=10)
    con.execute("BEGIN IMMEDIATE")
    rests = ended(running)
    con.execute("ROLLBACK")
    con.close()
    assert (rests.code, rests.document["reason"]["kind"]) == (3, "store")
    assert "fsm-agent resume r" in rests.err
    done = shop.run("resume", "r", "--json", *place)
    # The call of `a` has ended, and nobody could keep what it came to: whether it is made again, a person decides.
    assert (done.code, [asked["kind"] for asked in done.document["waiting"]]) == (3, ["interrupted"])
    assert shop.run("decide", "r", "a", "rerun", *place).code == 0
    done = shop.run("resume", "r", "--json", *place)
    assert (done.code, {each["status"] for each in done.document["tasks"].values()}) == (0, {"SUCCEEDED"})
    assert (shop.folder / "ledger.txt").read_text() == "paid\n"


PAY_ONCE = """
from pathlib import Path

from fsm_agent import skill


@skill
def pay_once() -> dict:
    with Path("ledger.txt").open("a") as ledger:
        ledger.write("paid\\n")
    return {}
"""


def _types(path: Path) -> list[str]:
    if not path.exists():
        return []
    con = sqlite3.connect(path)
    try:
        return [row[0] for row in con.execute("SELECT type FROM events ORDER BY seq")]
    except sqlite3.OperationalError:
        return []
    finally:
        con.close()
