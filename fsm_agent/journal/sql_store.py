"""The store of runs, over any `Database`. See `Store` for what each call means."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from fsm_agent.core.machine import FINAL
from fsm_agent.errors import JournalBroken, LeaseLost, RunExists, RunHeld, StoreBusy, UnknownRun
from fsm_agent.journal.database import Database, Row, Step
from fsm_agent.journal.owners import Owner, driver_of
from fsm_agent.journal.patience import patiently
from fsm_agent.journal.records import Batch, Lease, Request, RunHead, StoredEvent, StoredPlan, StoredSnapshot
from fsm_agent.journal.rounds import packed, unpacked

_BITS = 32
"""A key is a run's number and, in so many bits, the number of what it has: an event's `seq`, a task's place."""

_REST = (1 << _BITS) - 1

_TURN = 0.005
"""How long a commit on an event loop waits for another thread of this process, in seconds."""

T = TypeVar("T")


class SqlStore:
    """Where the journals of runs are kept: in an SQL database."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._lock = threading.Lock()
        self._turn = _TURN if database.is_quick else max(database.patience, _TURN)
        self._asked = 0

    @property
    def url(self) -> str:
        """Where it is, without any password."""
        return self._db.url

    @property
    def is_quick(self) -> bool:
        """Whether a commit is quick enough to be made on the event loop."""
        return self._db.is_quick

    @property
    def key_file(self) -> Path | None:
        """Where the key of digests over secrets is kept, if there is a place beside the store."""
        return self._db.key_file

    @property
    def patience(self) -> float:
        """How long to wait for others who write, in seconds."""
        return self._db.patience

    def now(self) -> float:
        """The store's time."""
        return self._call(self._db.now)

    # Writing --------------------------------------------------------------------------------------------------------

    def create(self, run_id: str, owner: Owner, ttl: float, batch: Batch) -> Lease:
        """A new run, driven by `owner`."""
        driver = owner.to_text()

        def work() -> Lease:
            until = self._db.now() + ttl
            number = self._add(run_id, batch, (1, driver, until, batch.events[0].at))
            if number is None:
                number = self._created(run_id, driver, batch)
            return Lease(run_id, number, 1)

        return self._transact(work)

    def commit(self, lease: Lease, batch: Batch) -> None:
        """Add to a run. It waits for nobody but other threads of this process, and for them a moment."""
        steps = self._steps(lease, batch)
        if not self._lock.acquire(timeout=self._turn):
            raise StoreBusy(f"another thread uses the store {self.url}", hint="try again in a moment")
        try:
            done = self._db.write(steps)
        finally:
            self._lock.release()
        if not done:
            self._call(lambda: self._find_out(lease, batch))

    def keep_snapshot(self, lease: Lease, snapshot: StoredSnapshot) -> None:
        """Keep a snapshot in place of an older one."""
        row = (*snapshot, lease.number, lease.fence)
        if not self._call(lambda: self._db.change("keep_snapshot", row)):
            raise LeaseLost(lease.run_id)

    def bring_in(self, run_id: str, batch: Batch, created: float) -> None:
        """A whole run from elsewhere."""

        def work() -> None:
            if self._add(run_id, batch, (0, None, 0.0, created)) is None:
                raise _exists(run_id)

        self._transact(work)

    def remove(self, run_ids: Collection[str]) -> int:
        """Forget runs that nobody drives. Each goes in a transaction of its own, so that nobody waits for long."""
        return sum(self._transact(partial(self._remove, run_id)) for run_id in dict.fromkeys(run_ids))

    # Leases ---------------------------------------------------------------------------------------------------------

    def acquire(self, run_id: str, owner: Owner, ttl: float) -> Lease:
        """Take a run that nobody drives any more."""
        driver = owner.to_text()

        def work() -> Lease:
            while True:
                head, now = self._head(run_id), self._db.now()
                holder = driver_of(head, now)
                if holder is not None:
                    raise RunHeld(run_id, str(holder), head.until)
                taken = self._db.rows("take_run", (driver, now + ttl, head.number, head.fence))
                if taken:
                    return Lease(run_id, head.number, taken[0][0])

        return self._transact(work)

    def renew(self, leases: Sequence[Lease], ttl: float) -> list[Lease]:
        """Hold these for longer. Returns those that are lost."""

        def work() -> list[Lease]:
            until = self._db.now() + ttl
            # In one order for all, so that no two processes wait for each other.
            rows = sorted((until, lease.number, lease.fence) for lease in leases)
            if not rows or self._db.change("renew", *rows) == len(rows):
                return []
            return [lease for lease in leases if not self._db.rows("held", (lease.number, lease.fence))]

        return self._transact(work)

    def release(self, lease: Lease) -> None:
        """Nobody drives the run any more."""
        self._call(lambda: self._db.change("release", (lease.number, lease.fence)))

    # Requests -------------------------------------------------------------------------------------------------------

    def ask(self, run_id: str, kind: str, body: str, *, at: float, key: str | None = None) -> Request | None:
        """Leave word for whoever drives the run."""

        def work() -> Request | None:
            number = self._number(run_id)
            while not self._db.rows("ask", (number, at, kind, key, body)):
                there = self._db.rows("asked", (number, key))
                if there:
                    return _request(there[0][0], run_id, *there[0][1:])
            return None

        self._asked += 1
        return self._transact(work)

    def requests(self, run_ids: Collection[str]) -> list[Request]:
        """What was asked of these runs and is not answered yet."""
        wanted = frozenset(run_ids)
        return [_request(*row) for row in self._rows("requests") if row[1] in wanted]

    def news(self) -> int:
        """A number that differs from the last one if anybody else may have written, or asked through this store."""
        return self._call(self._db.news) + self._asked

    # Reading --------------------------------------------------------------------------------------------------------

    def head(self, run_id: str) -> RunHead:
        """One run as the store knows it."""
        return self._call(lambda: self._head(run_id))

    def heads(self, *, unfinished: bool = False) -> list[RunHead]:
        """All runs, the latest first; or those that are in no final phase."""
        return [RunHead(*row) for row in self._rows("unfinished" if unfinished else "heads")]

    def events(self, run_id: str, after: int = 0, upto: int | None = None) -> Iterable[StoredEvent]:
        """The events of a run, in their order."""
        return self._call(lambda: self._events(self._number(run_id), after, upto))

    def plan(self, digest: str) -> StoredPlan | None:
        """A plan by its digest."""
        rows = self._rows("plan", (digest,))
        return StoredPlan(*rows[0]) if rows else None

    def snapshot(self, run_id: str) -> StoredSnapshot | None:
        """The run's latest snapshot."""
        rows = self._call(lambda: self._db.rows("snapshot", (self._number(run_id),)))
        return StoredSnapshot(*rows[0]) if rows else None

    def close(self) -> None:
        """Give back the connection."""
        with self._lock:
            self._db.close()

    # How it is done -------------------------------------------------------------------------------------------------

    def _call(self, call: Callable[[], T]) -> T:
        """One call at a time; while it waits for others, commits of this process get their turn."""

        def locked() -> T:
            with self._lock:
                return call()

        return patiently(locked, self._db.patience)

    def _transact(self, work: Callable[[], T]) -> T:
        return self._call(lambda: self._db.transact(work))

    def _rows(self, name: str, values: Row = ()) -> list[Row]:
        return self._call(lambda: self._db.rows(name, values))

    def _steps(self, lease: Lease, batch: Batch) -> list[Step]:
        """A commit, the first step of which finds out whether it may be."""
        events, number = batch.events, lease.number
        last = events[-1]
        advance = (
            batch.phase, last.seq, batch.checksum, batch.plan_version, batch.plan, last.at,
            number, lease.fence, events[0].seq - 1,
        )  # fmt: skip
        steps: list[Step] = [("finish" if batch.phase in FINAL else "advance", (advance,))]
        self._contents(number, batch, steps)
        return steps

    @staticmethod
    def _contents(number: int, batch: Batch, steps: list[Step]) -> None:
        base = number << _BITS
        steps.append(("add_event", [(base | seq, at, kind, body) for seq, at, kind, body in packed(batch.events)]))
        if batch.tasks:
            steps.append(("set_task", [(base | task.place, *task[2:]) for task in batch.tasks]))
        if batch.forgotten:
            steps.append(("forget_task", [(base | place,) for place in batch.forgotten]))
        if batch.plans:
            steps.append(("add_plan", batch.plans))
            steps.append(("use_plan", [(plan.digest, number) for plan in batch.plans]))
        if batch.taken:
            steps.append(("take_request", [(request, number) for request in batch.taken]))

    def _add(self, run_id: str, batch: Batch, holder: tuple[int, str | None, float, float]) -> int | None:
        """A new run; its number, or None where the id is taken."""
        last = batch.events[-1]
        state = (batch.phase, int(batch.phase in FINAL), last.seq, batch.checksum, batch.plan_version, batch.plan)
        added = self._db.rows("add_run", (run_id, *state, *holder, last.at))
        if not added:
            return None
        number: int = added[0][0]
        steps: list[Step] = []
        self._contents(number, batch, steps)
        for name, rows in steps:
            self._db.change(name, *rows)
        return number

    def _created(self, run_id: str, driver: str, batch: Batch) -> int:
        """The number of a run that this very call has created already, when its answer was lost."""
        head = self._head(run_id)
        if (head.driver, head.fence, head.seq, head.checksum) != (driver, 1, batch.events[-1].seq, batch.checksum):
            raise _exists(run_id)
        return head.number

    def _find_out(self, lease: Lease, batch: Batch) -> None:
        """Why a commit changed nothing. Does nothing where the batch is there already."""
        rows = self._db.rows("head_of", (lease.number,))
        head = RunHead(*rows[0]) if rows else None
        if head is None or head.fence != lease.fence or head.driver is None:
            raise LeaseLost(lease.run_id)
        first, last = batch.events[0].seq, batch.events[-1].seq
        if tuple(self._events(lease.number, first - 1, last)) != batch.events:
            why = f"it goes up to event {head.seq}, and others were to be added from event {first} on"
            raise JournalBroken(lease.run_id, why, seq=first, hint="resume the run: it goes on from what is there")

    def _remove(self, run_id: str) -> int:
        rows = self._of_run("head", run_id)
        head = RunHead(*rows[0]) if rows else None
        if head is None or driver_of(head, self._db.now()) is not None:
            return 0
        number = head.number
        removed = self._db.change("remove_run", (number, head.fence))
        if removed:
            base = number << _BITS
            self._db.change("remove_events", (base, base + _REST))
            self._db.change("remove_tasks", (base, base + _REST))
            self._db.change("remove_requests", (number,))
            self._db.change("remove_snapshot", (number,))
            self._db.change("remove_plans", (number, number))
            self._db.change("remove_uses", (number,))
        return removed

    def _head(self, run_id: str) -> RunHead:
        rows = self._of_run("head", run_id)
        if not rows:
            raise _unknown(run_id)
        return RunHead(*rows[0])

    def _number(self, run_id: str) -> int:
        rows = self._of_run("number", run_id)
        if not rows:
            raise _unknown(run_id)
        number: int = rows[0][0]
        return number

    def _of_run(self, name: str, run_id: str) -> list[Row]:
        # Ids are printable, and what is not can be text that no database takes.
        return self._db.rows(name, (run_id,)) if run_id.isprintable() else []

    def _events(self, number: int, after: int, upto: int | None) -> list[StoredEvent]:
        base = number << _BITS
        most = _REST if upto is None else min(upto, _REST)
        rows = self._db.rows("events", (base | max(after - 1, 0), base | max(most, 0)))
        events = unpacked([(key & _REST, at, kind, body) for key, at, kind, body in rows])
        # A row may begin before what is wanted, or end after it.
        if events and events[0].seq <= after:
            del events[0]
        if events and events[-1].seq > most:
            del events[-1]
        return events


def _request(number: int, run_id: str, at: float, kind: str, body: str) -> Request:
    return Request(number, run_id, at, kind, msgspec.json.decode(body))


def _unknown(run_id: str) -> UnknownRun:
    return UnknownRun(f"there is no run {run_id!r} in this store", hint="see the list of runs")


def _exists(run_id: str) -> RunExists:
    return RunExists(f"a run {run_id!r} is in this store already", hint="give the new one another id, or none at all")
