"""Who takes part where runs are kept: each in a SQLite file of its own, in a temporary folder on a disk.

The floor is `stack-normal`: `stack`, and one INSERT and COMMIT for each task. All but Burr, which has a way of its own,
write ahead with `synchronous=NORMAL`.
"""

import json
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from .contestants import Field
from .floor import build_machine, execute, load
from .workloads import Contestant, Once, Tally, Workload, skills

NORMAL = "stack-normal"
_DISK = Path("/var/tmp")  # the other one is memory on many machines


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for the files of one case."""
    with tempfile.TemporaryDirectory(dir=_DISK if _DISK.is_dir() else None, prefix="fsm-agent-bench-") as name:
        yield Path(name)


def contestants(field: Field, place: Path) -> list[Contestant]:
    """The floor, the peer and the engine, as far as they are there, with files in this folder."""
    found: list[Contestant] = [StackNormal(place / "stack.db")]
    if field.peers:
        from .burr_peer import BurrKept  # noqa: PLC0415 - it may not be installed

        found.append(BurrKept(place / "burr.db"))
    return [*found, *ours(field, place)]


def ours(field: Field, place: Path) -> list[Contestant]:
    """The engine, with a store in this folder."""
    if field.ours is None:
        return []
    from .ours import Ours  # noqa: PLC0415 - a broken engine must not hide the floor

    return [Ours(place / "ours.db")]


def pages_of(path: Path) -> int:
    """The size of a database's file, in bytes, once its log is in it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


class StackNormal:
    """The floor with a table for its events."""

    name = NORMAL

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = wal")
        self._connection.execute("PRAGMA synchronous = normal")
        self._connection.execute("CREATE TABLE IF NOT EXISTS event (run TEXT, body TEXT)")

    def prepare(self, workload: Workload, tally: Tally) -> Once:
        plan = load(workload.plan, skills(tally))
        machine = build_machine()

        async def once() -> object:
            phase, context = await execute(plan, machine, _Table(self._connection))
            if phase != "completed":
                raise RuntimeError(f"the floor ended {phase}")
            return context

        return once


class _Table:
    """The events of one run: each is durable before the next thing is done."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._cursor = connection.cursor()
        self._run = uuid.uuid4().hex

    def append(self, event: dict[str, Any], /) -> None:
        cursor = self._cursor
        cursor.execute("BEGIN IMMEDIATE")
        cursor.execute("INSERT INTO event (run, body) VALUES (?, ?)", (self._run, json.dumps(event)))
        cursor.execute("COMMIT")
