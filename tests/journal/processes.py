"""Other processes, and what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def begin(*arguments: str) -> subprocess.Popen[str]:
    """A worker that is ready."""
    process = launched(*arguments)
    assert line_of(process) == "ready"
    return process


def launched(*arguments: str) -> subprocess.Popen[str]:
    """A worker that has just been started."""
    command = [sys.executable, "-m", "tests.journal.worker", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that it says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> str:
    """Waits for its good end. Returns what else it said."""
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return said.strip()


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL. The process is a zombie after this, until somebody waits for it."""
    process.kill()
    while Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z":
        pass


def bury(process: subprocess.Popen[str]) -> None:
    """Waits for one that was killed."""
    process.communicate(timeout=60)
