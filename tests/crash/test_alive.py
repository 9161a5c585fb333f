"""One real death for each natural plan: its process is killed by the system in the middle, and another one goes on."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.crash.alive import NATURAL, ROOT

WAIT = 60.0


def process(name: str, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-m", "tests.crash.alive", name, *more], cwd=folder, env=environment)


def lived(name: str, folder: Path) -> dict[str, Any]:
    """What the run comes to that this process begins, or goes on with."""
    assert process(name, folder).wait(WAIT) == 0
    told: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return told


def died(name: str, folder: Path, at: int) -> None:
    """A process that is killed right after an event."""
    running = process(name, folder, str(at))
    until = time.monotonic() + WAIT
    while not (folder / "hung.txt").exists():
        assert running.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    assert running.wait(WAIT) == -signal.SIGKILL


def events_in(folder: Path) -> list[tuple[str, str | None]]:
    con = sqlite3.connect(folder / "runs.db")
    found = con.execute("SELECT type, task FROM events ORDER BY seq").fetchall()
    con.close()
    return found


@pytest.mark.parametrize("name", NATURAL)
def test_another_process_goes_on_to_the_same_end(tmp_path: Path, name: str) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    whole.mkdir()
    torn.mkdir()
    wanted = lived(name, whole)
    events = events_in(whole)
    died(name, torn, max(4, len(events) // 2))
    left = events_in(torn)
    assert left == events[: len(left)]
    assert ("run_finished", None) not in left
    assert lived(name, torn) == wanted
