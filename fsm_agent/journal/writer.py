"""The journal of one run in a store: what was appended is kept by the next commit, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from fsm_agent.core.events import Event, PlanAdopted
from fsm_agent.core.run import Run
from fsm_agent.core.snapshots import can_dump, dump
from fsm_agent.errors import LeaseLost, StoreError
from fsm_agent.journal import codec
from fsm_agent.journal.holes import ALL_LEVELS, Holes
from fsm_agent.journal.owners import Owner
from fsm_agent.journal.projection import Projection
from fsm_agent.journal.records import Batch, Lease, StoredEvent, StoredPlan, StoredSnapshot
from fsm_agent.journal.store import Store
from fsm_agent.jsonable import encode

SELDOM: Final = 4_000
AT_REST: Final = 1_000
"""After so many events at least there is a snapshot: under way, and when the run rests or is over."""


class StoredJournal:
    """Writes what happens in one run. Commits block; what could not be written is kept for the next one."""

    durable = True

    def __init__(
        self, store: Store, run: Run, owner: Owner, ttl: float, *, lease: Lease | None = None, checksum: int = 0
    ) -> None:
        """`ttl` is how long the lease of a new run holds, in seconds. `lease`, `checksum`: of a run that is there."""
        self.holes: Holes | None = None
        """What stands for the run's secrets in the store; None where it has none."""
        self.store = store
        self.lease = lease
        self._run = run
        self._owner = owner
        self._ttl = ttl
        self._checksum = checksum
        self._fresh: list[Event] = []
        self._answered: list[int] = []
        self._projection = Projection(run)
        self._snapshot_seq = 0 if lease is None else run.seq
        self._batch: Batch | None = None
        self._in_batch: list[Event] = []
        self.append: Callable[[Event], None] = self._fresh.append

    @property
    def run_id(self) -> str:
        """The run that it is of."""
        return self._run.run_id

    @property
    def pending(self) -> bool:
        """Whether anything was appended that is not durable yet."""
        return bool(self._fresh or self._in_batch)

    def answer(self, request: int) -> None:
        """A request is answered by what is appended next; both are kept together."""
        self._answered.append(request)

    def prepare(self) -> None:
        """Put all that was appended into the batch that `write` writes. To be called in the thread of the run."""
        fresh = self._fresh.copy()
        self._fresh.clear()
        stored: list[StoredEvent] = []
        plans: list[StoredPlan] = []
        total = self._checksum
        if self.holes is None and self._run.secrets:
            self.holes = self._holes_of(fresh)
        holes = self.holes
        for event in fresh:
            kept = codec.encode(event)
            if holes is not None and holes.may_be_in(kept.body):
                kept = codec.encode(holes.punched(event))
            total = codec.checksum(total, kept)
            stored.append(kept)
            if type(event) is PlanAdopted:
                compiled = self._run.compiled
                normal = compiled.normal or encode(compiled.plan.to_record())
                plans.append(StoredPlan(event.digest, normal.decode()))
        self._checksum = total
        self._projection.note(fresh)
        before = self._batch
        if before is not None:
            stored = [*before.events, *stored]
            plans = [*before.plans, *plans]
        run = self._run
        self._in_batch += fresh
        self._batch = Batch(
            tuple(stored),
            total,
            run.phase,
            run.plan_version,
            run.plan_digest,
            tuple(plans),
            self._projection.rows(),
            taken=tuple(self._answered),
        )

    def _holes_of(self, fresh: Sequence[Event]) -> Holes | None:
        """What stands for the secrets of a plan that is adopted now; in the goal too, which comes before it."""
        mark = next((event.mark for event in fresh if type(event) is PlanAdopted), "")
        return Holes(mark, self._run.secrets) if mark else None

    def write(self) -> None:
        """Make the batch durable. Raises StoreError, RunExists, LeaseLost; it is then still to be written."""
        batch = self._batch
        if batch is None:
            return
        if self.lease is None:
            self.lease = self.store.create(self._run.run_id, self._owner, self._ttl, batch)
        else:
            self.store.commit(self.lease, batch)

    def written(self) -> Sequence[Event]:
        """The batch is durable: returns its events, and makes room for the next."""
        events, self._in_batch = self._in_batch, []
        taken = len(self._batch.taken) if self._batch is not None else 0
        del self._answered[:taken]
        self._batch = None
        self._projection.written()
        return events

    # Snapshots ------------------------------------------------------------------------------------------------------

    def snapshot(self, least: int | None = None) -> StoredSnapshot | None:
        """A snapshot of the run, if so many events came since the last one that it is worth its while.

        They come the more seldom the longer the run is, so that all of them together cost no more than the run does.
        """
        run = self._run
        fresh = run.seq - self._snapshot_seq
        if (
            fresh < max(SELDOM if least is None else least, self._snapshot_seq // 2)
            or self.pending
            or not can_dump(run)
        ):
            return None
        self._snapshot_seq = run.seq
        body = encode(dump(run)).decode()
        if self.holes is not None and self.holes.may_be_in(body):
            body = encode(self.holes.punched_record(dump(run), ALL_LEVELS)).decode()
        return StoredSnapshot(run.seq, self._checksum, body)

    def keep(self, snapshot: StoredSnapshot) -> None:
        """Keep a snapshot, if it can be done: it is a cache."""
        if self.lease is not None:
            with suppress(StoreError, LeaseLost):
                self.store.keep_snapshot(self.lease, snapshot)

    def close(self) -> None:
        """Give the lease back, if it can be done: the run is over, or rests."""
        if self.lease is not None:
            snapshot = self.snapshot(AT_REST)
            if snapshot is not None:
                self.keep(snapshot)
            try:
                self.store.release(self.lease)
            except StoreError:
                return  # it runs out by itself
