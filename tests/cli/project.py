"""A small project in a folder of its own, and the command line as a real process there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import fsm_agent

ROOT = Path(fsm_agent.__file__).parents[1]

SKILLS = '''
import asyncio
import subprocess
import time
from pathlib import Path

from fsm_agent import skill


@skill
def greet(name: str = "you") -> dict:
    """Say hello."""
    return {"text": f"Hello, {name}!"}


@skill
def fail() -> None:
    raise OSError("no route")


@skill(risk="high")
def send(to: str, body: str = "", password: str = "") -> dict:
    """Send a mail."""
    return {"sent": to}


@skill(requires={"mail.send"})
def post(to: str) -> dict:
    return {"to": to}


@skill
def echo(value: object) -> object:
    return value


@skill
def wait(seconds: float, mark: str = "") -> dict:
    """Wait, and leave a mark when it is done."""
    time.sleep(seconds)
    if mark:
        Path(mark).write_text("done")
    return {}


@skill
async def stubborn() -> None:
    """Swallow every cancellation."""
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass


@skill
async def forget() -> dict:
    """Begin something that never ends, and forget it."""
    asyncio.get_running_loop().left = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    return {}


@skill
def loud() -> dict:
    """Write to standard output, and have another process do so."""
    print("loud and", flush=True)
    subprocess.run(["echo", "clear"], check=True)
    return {}


@skill
def mark(path: str) -> dict:
    Path(path).write_text("done")
    return {}
'''


@dataclass(frozen=True, slots=True)
class Ended:
    """What a call of the command line came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document, which is all that there is on standard output."""
        return json.loads(self.out)


Call = Callable[..., Ended]
"""The command line in this process: arguments in, what it came to out."""


def clean_environment(more: Mapping[str, str] = {}) -> dict[str, str]:
    """The environment of this process without settings of ours."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FSM_AGENT_")}
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **more}


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with skills and plans."""

    folder: Path

    def plan(self, name: str, content: Mapping[str, Any] | list[Any] | str) -> str:
        """Write a plan file; returns its path below the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        path.write_text(text, encoding="utf-8")
        return name

    def command(self, *arguments: str) -> list[str]:
        """The command line of a real process."""
        return [sys.executable, "-m", "fsm_agent", *arguments]

    def process(self, *arguments: str, env: Mapping[str, str] = {}, **options: Any) -> subprocess.Popen[bytes]:
        """A real process that goes on."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen(self.command(*arguments), cwd=self.folder, env=clean_environment(env), **options)

    def script(self, text: str) -> subprocess.Popen[bytes]:
        """A Python program of a user's in this folder, which goes on."""
        return subprocess.Popen([sys.executable, "-c", text], cwd=self.folder, env=clean_environment())

    def run(self, *arguments: str, env: Mapping[str, str] = {}) -> Ended:
        """A real process, to its end."""
        return ended(self.process(*arguments, env=env))


def ended(process: subprocess.Popen[bytes], timeout: float = 20) -> Ended:
    """Wait for a process; one that does not end is killed, and that is a failure."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Ended(process.returncode, (out or b"").decode(), (err or b"").decode())
