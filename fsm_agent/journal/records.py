"""What a store keeps, as records: nothing here knows SQL, and nothing knows what an event means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

LONGEST_ID: Final = 100


def is_run_id(text: object) -> bool:
    """Whether a text can be the id of a run: 1 to 100 printable characters, without outer blanks."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_ID and text.isprintable() and text.strip() == text


class StoredEvent(NamedTuple):
    """One event as it is kept. `body` is the JSON of its own fields, without those that are columns here."""

    seq: int
    at: float
    type: str
    body: str


stored_event: Final[Callable[[tuple[int, float, str, str]], StoredEvent]] = partial(tuple.__new__, StoredEvent)
"""An event of its four fields; a named tuple's own way takes three times as long, and there are many."""


class TaskRow(NamedTuple):
    """How one task stands, for people who query the store. The values are in the events that the numbers point to.

    None for one of these (`asked`, `started`, `ended`) leaves what was there.
    """

    place: int
    """Its place in the plan, from 0."""
    task: str
    status: str
    reason: str | None
    visits: int
    attempts: int
    """Calls over all visits."""
    retried: int
    """Those of them that were tried again."""
    asked: int | None
    """`seq` of the event that asked for its approval, of the last visit; its parameters are there."""
    started: int | None
    """`seq` of the event that its last visit began with."""
    ended: int | None
    """`seq` of the event that its last visit ended with; its data and its error are there."""


class StoredPlan(NamedTuple):
    """A plan in its normal form, as JSON, under the digest of that."""

    digest: str
    body: str


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to one run. `fence` grows each time that somebody takes the run, so that a holder who lost
    it is found out whatever its clock says.
    """

    run_id: str
    number: int
    """The store's own short number of the run."""
    fence: int


class Batch(msgspec.Struct, frozen=True):
    """What one transaction adds to a run: events, and all that must change together with them."""

    events: tuple[StoredEvent, ...]
    """At least one. Without gaps, from the run's last `seq` + 1."""
    checksum: int
    """Over all events of the run up to these, in their order."""
    phase: str
    """The run's phase after them."""
    plan_version: int = 0
    plan: str | None = None
    """The digest of the run's present plan."""
    plans: tuple[StoredPlan, ...] = ()
    """Plans that these events speak of, whether they are new to the store or not: a run keeps its plans there."""
    tasks: tuple[TaskRow, ...] = ()
    """Tasks that stand differently now."""
    forgotten: tuple[int, ...] = ()
    """Places of tasks that have no row any more: a new plan does not have them."""
    taken: tuple[int, ...] = ()
    """Numbers of the requests that these events answer; they are gone from then on."""


@dataclass(frozen=True, slots=True)
class RunHead:
    """One run as the store knows it, without folding anything."""

    run_id: str
    number: int
    phase: str
    seq: int
    checksum: int
    plan_version: int
    plan: str | None
    driver: str | None
    """Who drives it now or did so last, as `Owner.to_text` wrote it; None once that was given up in good order."""
    until: float
    """The moment at which the driver's lease runs out, in seconds since 1970, by the store's clock."""
    fence: int
    created: float
    changed: float
    """When the last event was written."""


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody wants of a run that another process drives."""

    number: int
    run_id: str
    at: float
    kind: str
    """`pause`, `cancel`, `decide`: a store does not look at it."""
    body: Mapping[str, Any] = field(default_factory=dict)


class StoredSnapshot(NamedTuple):
    """A folded run, to start from. Never the truth: a reader may pass it over."""

    seq: int
    checksum: int
    """Of the events up to `seq`; a snapshot of other events is of no use."""
    body: str
