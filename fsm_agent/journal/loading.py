"""From a store to a run: the events are checked, the plan is compiled, and the run is folded from them.

What does not hold together is a JournalBroken, whatever goes wrong inside: a journal may have been edited.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from fsm_agent.core.events import SCHEMA_VERSION, Event, PlanAdopted, RunStarted
from fsm_agent.core.result import RunResult, result_of
from fsm_agent.core.run import Run
from fsm_agent.core.snapshots import CARRIERS, restore
from fsm_agent.errors import FsmAgentError, InvalidPlan, JournalBroken, SnapshotRefused, StoreTooNew, UsageError
from fsm_agent.journal.codec import checksum, decode
from fsm_agent.journal.holes import ALL_LEVELS, EDGE, Holes
from fsm_agent.journal.records import RunHead, StoredEvent, StoredPlan, StoredSnapshot
from fsm_agent.journal.store import Store
from fsm_agent.jsonable import encode
from fsm_agent.plan.catalog import Catalog, SkillSpec
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.plan.loader import collecting_later, recheck_plan

DIGEST_LENGTH = 32
MOST_PLANS = 64
"""So many compiled plans are kept at hand."""

_ADOPTED = "plan_adopted"
_EARLY = 16
"""Nearly all runs have adopted their plan by this event."""
_log = logging.getLogger("fsm_agent.journal")


def digest_of_plan(plan: Mapping[str, Any]) -> str:
    """The digest of a plan's normal form, under which it is kept."""
    return digest_of_normal(encode(plan))


def digest_of_normal(normal: bytes) -> str:
    """The same, where the JSON of the normal form is there already."""
    return hashlib.sha256(normal).hexdigest()[:DIGEST_LENGTH]


def _is_digest(digest: str, body: str, plan: Mapping[str, Any]) -> bool:
    """Whether a plan is the one that was kept. Its text is what was digested, if nobody has written it anew."""
    return digest_of_normal(body.encode()) == digest or digest_of_plan(plan) == digest


class StoredPlans:
    """Compiles the plans of stored runs, each once.

    Without skills any skill is taken to be there: good for looking at a run. With them a plan whose skills are gone,
    or do not fit any more, raises InvalidPlan; lenient, it is taken as without skills.
    """

    def __init__(
        self,
        read: Callable[[str], StoredPlan | None],
        skills: Mapping[str, SkillSpec] | None = None,
        *,
        lenient: bool = False,
    ) -> None:
        self._read = read
        self.skills = skills
        self._lenient = lenient
        self._known: dict[bytes, CompiledPlan] = {}

    def plan_of(self, adopted: PlanAdopted) -> CompiledPlan:
        """The compiled plan that an event speaks of. Raises JournalBroken, InvalidPlan."""
        key = encode([adopted.digest, adopted.workers, adopted.default_skill, adopted.guarded])
        compiled = self._known.get(key)
        if compiled is None:
            compiled = self._compile(adopted)
            while len(self._known) >= MOST_PLANS:
                del self._known[next(iter(self._known))]
            self._known[key] = compiled
        return compiled

    def _compile(self, adopted: PlanAdopted) -> CompiledPlan:
        stored = self._read(adopted.digest)
        if stored is None:
            raise JournalBroken(adopted.run_id, "its plan is not there any more", seq=adopted.seq)
        try:
            plan = msgspec.json.decode(stored.body)
        except msgspec.MsgspecError:
            plan = None
        if not isinstance(plan, dict) or not _is_digest(adopted.digest, stored.body, plan):
            raise JournalBroken(adopted.run_id, "its plan was changed in the store", seq=adopted.seq)
        catalog = Catalog({}, adopted.workers, adopted.default_skill, any_skill=True)
        if self.skills is not None:
            catalog = replace(catalog, skills=self.skills, any_skill=False)
        checked = recheck_plan(plan, catalog)
        if checked.compiled is None and self._lenient:
            checked = recheck_plan(plan, replace(catalog, any_skill=True))
        if checked.compiled is None:
            raise InvalidPlan(checked.problems)
        return checked.compiled.with_guarded(adopted.guarded)


class PlanReader(Protocol):
    """Who gives the plans of a run."""

    def plan_of(self, adopted: PlanAdopted) -> CompiledPlan:
        """The compiled plan that an event speaks of. Raises JournalBroken, InvalidPlan."""


@dataclass(slots=True)
class Loaded:
    """A run as its journal has it. Secrets that skills returned are shown as `***`, until they are given again."""

    run: Run
    head: RunHead
    checksum: int
    stored: list[StoredEvent]
    """The events that were folded, as they are kept."""
    snapshot: StoredSnapshot | None = None
    mark: str = ""
    """What holes for secrets bear."""

    def result(self) -> RunResult:
        """The run, for whoever looks at it."""
        return result_of(self.run, resumable=True, elapsed=round(self.run.active_time(self.run.at), 6))

    def with_secrets(self, secrets: Mapping[str, Any], plans: PlanReader) -> Holes | None:
        """Fold anew with the secrets where they were. Returns what stands for them in the store, if anything does."""
        if not self.mark:
            return None
        holes = Holes(self.mark, secrets)
        with collecting_later():
            self.run = _built(self.head.run_id, self.stored, plans, self.snapshot, holes)
        return holes


def load(store: Store, run_id: str, plans: PlanReader, *, upto: int | None = None) -> Loaded:
    """Fold a run, up to its last event or to that of the number `upto`.

    Raises UnknownRun, JournalBroken, StoreTooNew, InvalidPlan (skills are gone), UsageError for a number that the run
    does not have.
    """
    with collecting_later():
        return _load(store, run_id, plans, upto)


def _load(store: Store, run_id: str, plans: PlanReader, upto: int | None) -> Loaded:
    head = store.head(run_id)
    if upto is not None and not 1 <= upto <= head.seq:
        raise UsageError(f"run {run_id!r} has the events 1 to {head.seq}, and no event {upto}")
    snapshot = store.snapshot(run_id) if upto is None else None
    stored = list(store.events(run_id, upto=head.seq))
    total, at_snapshot = verify(run_id, stored, head, snapshot.seq if snapshot is not None else 0)
    if snapshot is not None and snapshot.checksum != at_snapshot:
        snapshot = None
    if upto is not None:
        del stored[upto:]
    mark = mark_of(stored, run_id)
    run = _built(run_id, stored, plans, snapshot, Holes(mark, {}) if mark else None)
    return Loaded(run, head, total, stored, snapshot, mark)


def plan_of_run(store: Store, run_id: str, plans: PlanReader) -> CompiledPlan | None:
    """The plan that a run has, by its journal's word; None while it has none. Raises UnknownRun, InvalidPlan,
    JournalBroken.

    Nothing is folded, and nothing else of the journal is looked at: whoever goes on with the run does that.
    """
    head = store.head(run_id)
    if not head.plan_version:
        return None
    for upto in (_EARLY, None):
        for event in store.events(run_id, upto=upto):
            adopted = decode(event, run_id) if event.type == _ADOPTED else None
            if isinstance(adopted, PlanAdopted) and adopted.digest == head.plan:
                with collecting_later():
                    return plans.plan_of(adopted)
    raise JournalBroken(run_id, "it does not say how the run got its plan")


def mark_of(stored: Iterable[StoredEvent], run_id: str) -> str:
    """What the holes in a run's events bear; nothing where it has no secrets."""
    adopted = (decode(event, run_id) for event in stored if event.type == _ADOPTED)
    return next((event.mark for event in adopted if isinstance(event, PlanAdopted) and event.mark), "")


def event_of(stored: StoredEvent, run_id: str, holes: Holes | None) -> Event:
    """The event that is kept so, with what stands in its holes. Raises JournalBroken."""
    event = decode(stored, run_id)
    return event if holes is None or EDGE not in stored.body else holes.filled(event)


def verify(run_id: str, stored: list[StoredEvent], head: RunHead, seq: int = 0) -> tuple[int, int]:
    """The checksum of a whole journal, and that of its first `seq` events.

    Raises JournalBroken where events are missing, or are not what was written.
    """
    total = upto_seq = 0
    for place, event in enumerate(stored, 1):
        if event.seq != place:
            raise JournalBroken(run_id, f"event {place} is missing", seq=place)
        total = checksum(total, event)
        if place == seq:
            upto_seq = total
    if len(stored) != head.seq:
        raise JournalBroken(run_id, f"it ends here, and had {head.seq} events", seq=len(stored))
    if total != head.checksum:
        raise JournalBroken(run_id, "its events are not those that were written")
    return total, upto_seq


def _built(
    run_id: str, stored: list[StoredEvent], plans: PlanReader, snapshot: StoredSnapshot | None, holes: Holes | None
) -> Run:
    """The run, from a snapshot and what came after it where there is one that fits, else from its first event on."""

    def events(rows: Iterable[StoredEvent]) -> Iterator[Event]:
        return (event_of(row, run_id, holes) for row in rows)

    if snapshot is not None:
        run = Run(run_id, plans.plan_of)
        try:
            past = events(row for row in stored[: snapshot.seq] if row.type in CARRIERS)
            kept = msgspec.json.decode(snapshot.body)
            restore(run, kept if holes is None else holes.filled_record(kept, ALL_LEVELS), past)
            return fold(run_id, events(stored[snapshot.seq :]), plans, run)
        except (SnapshotRefused, msgspec.MsgspecError) as error:
            _log.debug("run %s is folded from its first event: %s", run_id, error)
    return fold(run_id, events(stored), plans)


def fold(run_id: str, events: Iterable[Event], plans: PlanReader, run: Run | None = None) -> Run:
    """The run that these events make, or make of `run`. Raises JournalBroken, StoreTooNew, InvalidPlan."""
    run = run or Run(run_id, plans.plan_of)
    for event in events:
        if type(event) is RunStarted and event.schema_version > SCHEMA_VERSION:
            raise StoreTooNew(
                f"run {run_id!r} was written by a newer version of fsm-agent", hint="use that version, or a newer one"
            )
        try:
            run.evolve(event)
        except (InvalidPlan, JournalBroken):
            raise
        except FsmAgentError as error:
            raise JournalBroken(run_id, error.message, seq=event.seq) from None
        except (LookupError, AttributeError, TypeError, ValueError) as error:
            why = f"{event.type} does not fit what is before it ({type(error).__name__})"
            raise JournalBroken(run_id, why, seq=event.seq) from error
    return run
