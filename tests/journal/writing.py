"""Writes a run into a store as an engine would, event by event."""

from __future__ import annotations

import json
from time import monotonic, sleep
from typing import Any

import msgspec

from fsm_agent.core import events as ev
from fsm_agent.errors import StoreBusy
from fsm_agent.journal.codec import checksum, encode
from fsm_agent.journal.owners import Owner, this_process
from fsm_agent.journal.records import Batch, Lease, StoredEvent, StoredPlan
from fsm_agent.journal.sql_store import SqlStore

ME = this_process("me")
YOU = this_process("you")
ELSEWHERE = Owner("away", "another/host/there", 1, "1")
"""Nothing is certain of it."""

LONG, SHORT = 1000.0, 0.05
STARTED = ev.RunStarted(goal="it works")


class Pen:
    """The next batch of one run's journal."""

    def __init__(self, run_id: str = "r") -> None:
        self.run_id = run_id
        self.seq = 0
        self.checksum = 0
        self.at = 1000.0
        self.written: list[StoredEvent] = []

    def batch(self, *events: ev.Event, phase: str = "executing", **more: Any) -> Batch:
        """These events, each a second after the other."""
        return Batch(tuple(map(self._stored, events)), self.checksum, phase, **more)

    def _stored(self, event: ev.Event) -> StoredEvent:
        self.seq += 1
        self.at += 1
        stored = encode(msgspec.structs.replace(event, seq=self.seq, at=self.at, run_id=self.run_id))
        self.checksum = checksum(self.checksum, stored)
        self.written.append(stored)
        return stored


def plan_of(digest: str, *tasks: dict[str, Any], **more: Any) -> StoredPlan:
    """A plan in its normal form."""
    return StoredPlan(digest, json.dumps({**more, "tasks": list(tasks)}, ensure_ascii=False))


def logged(text: str = "hello") -> ev.TaskLogged:
    """An event that changes nothing."""
    return ev.TaskLogged(task="a", visit=1, attempt=1, message=text)


def query(store: SqlStore, text: str) -> list[tuple[Any, ...]]:
    """What a person would ask the database, of its views or its tables."""
    database: Any = store._db
    rows: list[tuple[Any, ...]] = database._con.execute(text).fetchall()
    return rows


def counts(store: SqlStore) -> dict[str, int]:
    """How many rows each table has."""
    names = ("run_state", "plan", "plan_use", "journal", "task_state", "request", "snapshot")
    return {name: query(store, f"SELECT count(*) FROM {name}")[0][0] for name in names}


def commit(store: SqlStore, lease: Lease, batch: Batch) -> None:
    """As an engine does it: again and again while others write."""
    deadline = monotonic() + store.patience
    while True:
        try:
            return store.commit(lease, batch)
        except StoreBusy:
            if monotonic() > deadline:
                raise
        sleep(0.002)
