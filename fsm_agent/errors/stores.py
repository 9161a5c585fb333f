"""Errors of the place where runs are kept."""

from __future__ import annotations

from fsm_agent.errors.root import FsmAgentError


class StoreError(FsmAgentError):
    """Something about the place where runs are kept."""

    code = "store"


class StoreBusy(StoreError):
    """Somebody else is writing. Nothing was written."""

    code = "store_busy"


class StoreUnavailable(StoreError):
    """The store cannot be opened, read or written: a full disk, a lost connection, no right to do so."""

    code = "store_unavailable"


class NotAStore(StoreError):
    """A file or a database that another program made, or one that is damaged. Nothing in it was changed."""

    code = "not_a_store"


class StoreTooNew(StoreError):
    """The store was written by a newer version of this package. Nothing in it was changed."""

    code = "store_too_new"


class JournalBroken(StoreError):
    """A run's journal was cut off or changed, or holds what this program cannot read. `seq` is the event's number."""

    code = "journal_broken"

    def __init__(self, run_id: str, why: str, *, seq: int | None = None, hint: str = "") -> None:
        self.run_id = run_id
        self.seq = seq
        at = f" at event {seq}" if seq is not None else ""
        super().__init__(f"the journal of run {run_id!r} is broken{at}: {why}", hint=hint or "nothing of it was run")


class SnapshotRefused(StoreError):
    """A snapshot is of another format, another run or another plan, or it is damaged. The journal alone will do."""

    code = "snapshot_refused"

    def __init__(self, run_id: str, why: str) -> None:
        self.run_id = run_id
        super().__init__(f"the snapshot of run {run_id!r} is of no use: {why}", hint="fold the run from its events")
