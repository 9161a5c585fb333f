"""SIGKILL in the middle of a real process; another one goes on, and comes to what nothing had disturbed."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import clean_environment
from tests.crash.deadly import VARIABLE
from tests.crash.own import OWN, ROOT, a_copy, essence, written
from tests.crash.plans import PLANS

SHARES = (0.3, 0.8)
"""Where in a run its process dies: after this share of its writes."""


def begun(folder: Path, *command: str, dies: str = "") -> subprocess.Popen[bytes]:
    environment = clean_environment({VARIABLE: dies} if dies else {})
    program = [sys.executable, "-m", *command]
    return subprocess.Popen(program, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def document(process: subprocess.Popen[bytes]) -> Any:
    """What it said at its end."""
    out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 1), err.decode()
    return json.loads(out)


def assert_killed(process: subprocess.Popen[bytes]) -> None:
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, err.decode()


def deaths(writes: int) -> list[str]:
    """Some moments, before a write and after one in turn."""
    return [f"{max(2, round(writes * share))}:{('before', 'after')[n % 2]}" for n, share in enumerate(SHARES)]


def events(path: Path) -> list[tuple[str, str | None, int | None, int]]:
    """Types, tasks, visits and numbers of what happened in the one run of a store."""
    con = sqlite3.connect(path)
    try:
        return con.execute("SELECT type, task, visit, seq FROM events ORDER BY seq").fetchall()
    finally:
        con.close()


def settled(path: Path) -> set[str]:
    over = ("task_evaluated", "visit_discarded")
    return {f"{task} {visit}" for kind, task, visit, _ in events(path) if kind in over}


def calls(folder: Path) -> list[tuple[str, str]]:
    """Each call that was made: its task and visit, and its key."""
    file = folder / "calls.txt"
    lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return [(f"{task} {visit}", key) for task, visit, _, key in lines]


@pytest.mark.parametrize("name", PLANS)
def test_a_process_that_is_killed_is_followed_by_another_and_nothing_tells_the_difference(
    tmp_path: Path, name: str
) -> None:
    command = ("tests.crash.worker",)
    whole = tmp_path / "whole"
    whole.mkdir()
    wanted = document(begun(ROOT, *command, str(whole), name))
    torn = [tmp_path / f"torn {number}" for number in range(len(SHARES))]
    for folder in torn:
        folder.mkdir()
    for process in [
        begun(ROOT, *command, str(folder), name, dies=dies)
        for folder, dies in zip(torn, deaths(len(events(whole / "runs.db")) // 2), strict=True)
    ]:
        assert_killed(process)
    before = [(settled(folder / "runs.db"), len(calls(folder))) for folder in torn]
    for process in [begun(ROOT, *command, str(folder), name) for folder in torn]:
        assert document(process) == wanted
    for folder, (over, made) in zip(torn, before, strict=True):
        assert not over & {which for which, _ in calls(folder)[made:]}, "called again"
        keys = {which: {key for other, key in calls(folder) if other == which} for which, _ in calls(folder)}
        assert max(map(len, keys.values())) == 1


@pytest.mark.parametrize("name", OWN)
def test_a_run_of_the_command_line_that_is_killed_is_resumed_by_another_to_the_same_end(
    tmp_path: Path, name: str
) -> None:
    folders = [a_copy(tmp_path / str(number), deadly=True) for number in range(len(SHARES) + 1)]
    words = ("--approve-all", "--json")
    # One task at a time: calls that end at once would share a write, and there were not as many each time.
    run = ("fsm_agent", "run", f"plans/{name}.yaml", "--run-id", "r", "--max-parallel", "1", *words)
    wanted = document(begun(folders[0], *run))
    store = Path(".fsm-agent", "runs.db")
    for process in [
        begun(folder, *run, dies=dies)
        for folder, dies in zip(folders[1:], deaths(writes_of(folders[0] / store)), strict=True)
    ]:
        assert_killed(process)
    for process in [begun(folder, "fsm_agent", "resume", "r", *words) for folder in folders[1:]]:
        assert essence(document(process)) == essence(wanted)
    for folder in folders[1:]:
        assert written(folder) == written(folders[0])
        told = [(kind, task, visit) for kind, task, visit, _ in events(folder / store)]
        assert ("run_taken_up", None, None) in told
        judged = Counter((task, visit) for kind, task, visit in told if kind == "task_evaluated")
        assert set(judged.values()) == {1}


def writes_of(path: Path) -> int:
    """How many writes there were, at the least: each start of a call is a write of its own."""
    return sum(kind == "task_started" for kind, *_ in events(path))


def test_a_process_that_is_killed_within_a_call_is_followed_by_another_which_makes_it_again(tmp_path: Path) -> None:
    """The one that kills is another process, and the call goes on at that time."""
    a_copy(tmp_path)
    slow = (
        "import time\nfrom pathlib import Path\nfrom fsm_agent import SkillContext, skill\n\n\n"
        "@skill(idempotent=True)\ndef crawl(context: SkillContext) -> dict:\n"
        "    with Path('keys.txt').open('a') as file:\n        file.write(f'{context.idempotency_key}\\n')\n"
        "    time.sleep(0 if len(Path('keys.txt').read_text().split()) > 1 else 60)\n    return {'done': True}\n"
    )
    (tmp_path / "skills" / "crawl.py").write_text(slow, encoding="utf-8")
    plan = {"goal": "g", "tasks": [{"id": "a", "skill": "crawl"}, {"id": "b", "skill": "crawl", "dependencies": ["a"]}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    running = begun(tmp_path, "fsm_agent", "run", "plan.json", "--run-id", "r", "--json")
    keys = tmp_path / "keys.txt"
    until = time.monotonic() + 20
    while not keys.exists() or not keys.read_text().endswith("\n"):
        assert time.monotonic() < until
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    assert_killed(running)
    done = document(begun(tmp_path, "fsm_agent", "resume", "r", "--json"))
    assert done["phase"] == "completed"
    first, again, other = keys.read_text().split()
    assert first == again != other
