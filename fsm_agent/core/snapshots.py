"""Snapshots: a folded run, kept so that it need not be folded again. A cache, never the truth.

Whoever opens a run reads its whole journal anyway, to see that nothing is missing. So a snapshot holds no data: neither
results nor the context, nor what people were asked. It says how the plan stands, and leaves the rest to the events
themselves (`recall.py`), of which only some need be decoded. It grows with how differently the tasks of the plan stand,
and with nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from fsm_agent.core.events import Event
from fsm_agent.core.recall import CARRIERS, Recall
from fsm_agent.core.run import Run
from fsm_agent.core.state import RunSnapshot
from fsm_agent.errors import SnapshotRefused

__all__ = ["CARRIERS", "FORMAT", "can_dump", "dump", "restore"]

FORMAT: Final = 1
"""Grows whenever what is kept of a run changes. A snapshot of another format is passed over."""


class Snapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run's state, and what tells whether it is that of this run and whole."""

    format: int
    run_id: str
    plan: str | None
    """The digest of its plan, once it has one."""
    check: str
    """A digest of `state`."""
    state: RunSnapshot


def can_dump(run: Run) -> bool:
    """Whether a snapshot can be made. What a run remembers for going back is not kept: such a run is folded."""
    return run.rollbacks is None


def dump(run: Run) -> dict[str, Any]:
    """A snapshot of the run as it stands, between two events, as plain JSON data."""
    state = run.dump()
    snapshot: dict[str, Any] = msgspec.to_builtins(Snapshot(FORMAT, run.run_id, run.plan_digest, _digest(state), state))
    return snapshot


def restore(run: Run, snapshot: object, past: Iterable[Event]) -> None:
    """Bring a fresh run to where folding all of its events up to the snapshot's would.

    `past` are those of them whose type is in `CARRIERS`, in their order. Raises SnapshotRefused for a snapshot of
    another format, run or plan, and for one that is damaged. The run is of no use then: fold another fresh one.
    """
    kept = _read(run.run_id, snapshot)
    recall = Recall(run, kept.state.pointed())
    try:
        recall.take_in(past)
        if run.plan_digest != kept.plan or len(run.trace) != kept.state.trace:
            raise SnapshotRefused(run.run_id, "it is of other events")
        run.restore(kept.state, recall)
    except (LookupError, ValueError) as error:
        raise SnapshotRefused(run.run_id, "it does not fit the events and the plan") from error


def _read(run_id: str, snapshot: object) -> Snapshot:
    if not isinstance(snapshot, dict) or snapshot.get("format") != FORMAT:
        raise SnapshotRefused(run_id, "it is of another format")
    try:
        kept = msgspec.convert(snapshot, Snapshot)
    except msgspec.ValidationError as error:
        raise SnapshotRefused(run_id, "it is damaged") from error
    if kept.check != _digest(kept.state):
        raise SnapshotRefused(run_id, "it is damaged")
    if kept.run_id != run_id:
        raise SnapshotRefused(run_id, "it is of another run")
    return kept


def _digest(state: RunSnapshot) -> str:
    return hashlib.sha256(msgspec.json.encode(state)).hexdigest()[:16]
