"""Real deaths: a process that kills itself by SIGKILL at its write number N, before it is made or after it.

`DIES_AT=5:after` in its environment does it, once `arm` was called. As a file among the skills of a project it does so
in a real `fsm-agent run`.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fsm_agent.journal.sql_store import SqlStore

VARIABLE = "DIES_AT"


def arm() -> None:
    """From now on the writes of this process count, if it is to die."""
    at, _, when = os.environ.get(VARIABLE, "").partition(":")
    if not at:
        return
    writes = 0

    def deadly(write: Callable[..., Any]) -> Callable[..., Any]:
        def make(*arguments: Any) -> Any:
            nonlocal writes
            writes += 1
            if (writes, when) == (int(at), "before"):
                os.kill(os.getpid(), signal.SIGKILL)
            made = write(*arguments)
            if writes == int(at):
                os.kill(os.getpid(), signal.SIGKILL)
            return made

        return make

    SqlStore.create = deadly(SqlStore.create)  # type: ignore[method-assign]
    SqlStore.commit = deadly(SqlStore.commit)  # type: ignore[method-assign]


def has_begun(path: Path) -> bool:
    """Whether there is a run in the store."""
    if not path.exists():
        return False
    con = sqlite3.connect(path)
    try:
        return bool(con.execute("SELECT count(*) FROM runs").fetchone()[0])
    finally:
        con.close()
