"""A real language model for tests: llama.cpp's server with a small model, on a free port of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

FOLDER = "FSM_AGENT_TEST_MODEL"
"""This variable names the folder that `.ci/model` has filled."""

MISSING = f"no real model: {FOLDER} names no folder that .ci/model has filled"

PATIENCE = 180.0
"""To load the model, in seconds: the machine may be busy."""


def folder() -> Path | None:
    """Where the server and the model are, if they are there."""
    named = os.environ.get(FOLDER)
    if not named or not all(Path(named, name).exists() for name in ("server", "model.gguf")):
        return None
    return Path(named).resolve()


@dataclass(frozen=True)
class Server:
    """One that runs."""

    process: subprocess.Popen[bytes]
    logs: Path
    port: int

    @property
    def base_url(self) -> str:
        """For clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        """End it, and forget what it logged."""
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.logs, ignore_errors=True)


def start(where: Path) -> Server:
    """Start a server; the model is loaded when this returns."""
    logs, port = Path(tempfile.mkdtemp(prefix="fsm-agent-model-")), _free_port()
    # One thread: its threads spin, and on a shared machine two take many times as long as one.
    options = ["--host", "127.0.0.1", "--port", str(port), "-c", "4096", "-np", "1", "-t", "1", "--jinja"]
    with logs.joinpath("log").open("wb") as log:
        process = subprocess.Popen(
            ["nice", "-n", "19", str(where / "server"), "-m", str(where / "model.gguf"), *options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=logs,
        )  # fmt: skip
    server = Server(process, logs, port)
    end = time.monotonic() + PATIENCE
    while not _healthy(port):
        if process.poll() is not None or time.monotonic() > end:
            told = logs.joinpath("log").read_text(errors="replace")[-2000:]
            server.stop()
            raise AssertionError(f"the model's server did not start:\n{told}")
        time.sleep(0.2)
    return server


def _healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
