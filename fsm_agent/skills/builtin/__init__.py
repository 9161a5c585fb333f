"""The skills that come with the package: HTTP, files in one folder, waiting, notes."""

from __future__ import annotations

from pathlib import Path

from fsm_agent.clock import Clock
from fsm_agent.skills.builtin.files import Files
from fsm_agent.skills.builtin.http import Http
from fsm_agent.skills.builtin.note import note
from fsm_agent.skills.builtin.pause import Pause
from fsm_agent.skills.signature import Function


def builtin_skills(root: Path, clock: Clock) -> tuple[Function, ...]:
    """All of them. Files are read and written below `root` only; `sleep` waits by `clock`."""
    files = Files(root)
    return (Http(clock).http_request, files.read_file, files.write_file, Pause(clock).sleep, note)
