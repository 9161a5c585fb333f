"""A real PostgreSQL server for tests: on a free port of this machine, in a folder of its own, gone at the end."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REQUIRED = "FSM_AGENT_TEST_POSTGRES"
"""Where this variable is `required`, missing binaries are a failure and nothing is skipped."""

_CARELESS = "-c fsync=off -c synchronous_commit=off -c full_page_writes=off"
"""What is written need not outlive the test."""


def binaries() -> Path | None:
    """The folder of the newest server that is installed, if any."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    found = str(versions[-1]) if versions else shutil.which("initdb")
    return Path(found).parent if found else None


@dataclass(frozen=True)
class Server:
    """One that runs."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        """Where its one database is."""
        return f"postgresql://fsm@127.0.0.1:{self.port}/fsm"

    def stop(self) -> None:
        """End it at once, and forget all that it held."""
        _run(["pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop"])
        shutil.rmtree(self.folder, ignore_errors=True)


def start() -> Server:
    """Start a server; it is ready when this returns."""
    folder, port = Path(tempfile.mkdtemp(prefix="fsm-agent-postgres-")), _free_port()
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    data, log = str(folder / "data"), str(folder / "log")
    options = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} {_CARELESS}"
    try:
        _run(["initdb", "-D", data, "-U", "fsm", "-A", "trust", "-E", "UTF8", "--no-sync"])
        _run(["pg_ctl", "-D", data, "-w", "-t", "30", "-l", log, "-o", options, "start"])
        _run(["createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "fsm", "fsm"])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Server(folder, port)


def _run(command: Sequence[str]) -> None:
    """One of the server's own programs; it must not be root who runs it."""
    where = binaries()
    assert where is not None
    somebody = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*somebody, str(where / command[0]), *command[1:]],
        check=False, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
