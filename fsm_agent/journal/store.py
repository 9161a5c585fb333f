"""What is asked of a store of runs. Every store passes one suite of tests.

All calls block, and may be made from any thread. They raise nothing but what is named here, and

- StoreBusy: somebody else is writing. Nothing was written; the same call may be made again.
- StoreUnavailable: a full disk, a lost connection, no right to write. Nothing was written, or (a connection lost in
  the middle of a commit) all of it: `commit` or `create` made again tells. The same store may be used on.
- NotAStore: the tables are not what they should be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from fsm_agent.journal.owners import Owner
from fsm_agent.journal.records import Batch, Lease, Request, RunHead, StoredEvent, StoredPlan, StoredSnapshot


class Store(Protocol):
    """Where the journals of runs are kept."""

    @property
    def url(self) -> str:
        """Where it is, without any password."""

    @property
    def is_quick(self) -> bool:
        """Whether a commit is quick enough to be made on the event loop: no network is between."""

    @property
    def patience(self) -> float:
        """For how long others who write are waited for, in seconds.

        All calls do that themselves, but for the `commit` of a quick store: it may be made on an event loop, raises
        StoreBusy at once, and its caller is to try again for so long.
        """

    @property
    def key_file(self) -> Path | None:
        """Where the key of digests over secrets is kept, if there is a place beside the store."""

    def now(self) -> float:
        """The store's time, by which leases run out, in seconds since 1970."""

    # Writing --------------------------------------------------------------------------------------------------------

    def create(self, run_id: str, owner: Owner, ttl: float, batch: Batch) -> Lease:
        """A new run with its first events, driven by `owner` for `ttl` seconds. Raises RunExists.

        A run that this very call has created already (its answer was lost) is not created again.
        """

    def commit(self, lease: Lease, batch: Batch) -> None:
        """Add to a run, all of it or nothing. Raises LeaseLost if the lease is somebody else's by now, or given up. One
        that has run out is good as long as nobody else took the run.

        A batch that is there already (the answer to its commit was lost) is not written again. One that does not
        follow on the run's last event raises JournalBroken.
        """

    def keep_snapshot(self, lease: Lease, snapshot: StoredSnapshot) -> None:
        """Keep a snapshot in place of an older one. Raises LeaseLost."""

    def bring_in(self, run_id: str, batch: Batch, created: float) -> None:
        """A whole run from elsewhere, driven by nobody. Raises RunExists."""

    def remove(self, run_ids: Collection[str]) -> int:
        """Forget runs that nobody drives, and the plans that only they used. Returns how many there were.

        Each run goes by itself: after an error, some may be gone.
        """

    # Leases ---------------------------------------------------------------------------------------------------------

    def acquire(self, run_id: str, owner: Owner, ttl: float) -> Lease:
        """Take a run that nobody drives, whose driver's lease ran out, or whose driver is gone for certain.

        Of several who try at once, one gets it. Raises RunHeld (who, until when), UnknownRun.
        """

    def renew(self, leases: Sequence[Lease], ttl: float) -> list[Lease]:
        """Hold these for `ttl` seconds from now. Returns those that are lost."""

    def release(self, lease: Lease) -> None:
        """Nobody drives the run any more. Does nothing where the lease is lost."""

    # Requests -------------------------------------------------------------------------------------------------------

    def ask(self, run_id: str, kind: str, body: str, *, at: float, key: str | None = None) -> Request | None:
        """Leave word for whoever drives the run. None if that was done; of one key, the first counts, and where there
        is one already it is returned, and nothing is written. Raises UnknownRun.
        """

    def requests(self, run_ids: Collection[str]) -> list[Request]:
        """What was asked of these runs and is not answered yet, in its order."""

    def news(self) -> int:
        """A number that differs from the last one if anybody else may have written since, or if something was asked
        through this store. Much cheaper than `requests`.
        """

    # Reading --------------------------------------------------------------------------------------------------------

    def head(self, run_id: str) -> RunHead:
        """Raises UnknownRun."""

    def heads(self, *, unfinished: bool = False) -> list[RunHead]:
        """All runs, the latest first; or those that are in no final phase."""

    def events(self, run_id: str, after: int = 0, upto: int | None = None) -> Iterable[StoredEvent]:
        """The events of a run whose `seq` is above `after` and at most `upto`, in their order. Raises UnknownRun."""

    def plan(self, digest: str) -> StoredPlan | None:
        """A plan by its digest, if it is there."""

    def snapshot(self, run_id: str) -> StoredSnapshot | None:
        """The run's latest snapshot, if there is one. Raises UnknownRun."""

    def close(self) -> None:
        """Give back connections. Leases that are held run out by themselves."""
