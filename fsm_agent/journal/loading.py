"""From a store to a run: the events are checked, the plan is compiled, and the run is folded from them.

What does not hold together is a JournalBroken, whatever goes wrong inside: a journal may have been edited.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec
from pydantic import ValidationError

from fsm_agent.core.events import SCHEMA_VERSION, Event, PlanAdopted, RunStarted
from fsm_agent.core.run import Run
from fsm_agent.errors import FsmAgentError, InvalidPlan, JournalBroken, StoreTooNew, UsageError
from fsm_agent.journal.codec import checksum, decode
from fsm_agent.journal.records import RunHead, StoredEvent, StoredPlan
from fsm_agent.journal.store import Store
from fsm_agent.jsonable import encode
from fsm_agent.plan.catalog import Catalog, SkillSpec
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.plan.loader import check_plan
from fsm_agent.plan.model import Plan

DIGEST_LENGTH = 32


def digest_of_plan(plan: Mapping[str, Any]) -> str:
    """The digest of a plan's normal form, under which it is kept."""
    return hashlib.sha256(encode(plan)).hexdigest()[:DIGEST_LENGTH]


class StoredPlans:
    """Compiles the plans of stored runs, each once.

    Without skills any skill is taken to be there: good for looking at a run. With them a plan whose skills are gone,
    or do not fit any more, raises InvalidPlan; lenient, it is taken as without skills.
    """

    def __init__(
        self,
        read: Callable[[str], StoredPlan],
        skills: Mapping[str, SkillSpec] | None = None,
        *,
        lenient: bool = False,
    ) -> None:
        self._read = read
        self._skills = skills
        self._lenient = lenient
        self._known: dict[bytes, CompiledPlan] = {}

    def plan_of(self, adopted: PlanAdopted) -> CompiledPlan:
        """The compiled plan that an event speaks of. Raises JournalBroken, InvalidPlan."""
        key = encode([adopted.digest, adopted.workers, adopted.default_skill, adopted.guarded])
        compiled = self._known.get(key)
        if compiled is None:
            compiled = self._known[key] = self._compile(adopted)
        return compiled

    def _compile(self, adopted: PlanAdopted) -> CompiledPlan:
        body = self._read(adopted.digest).body
        try:
            plan = msgspec.json.decode(body)
        except msgspec.MsgspecError:
            plan = None
        if not isinstance(plan, dict) or digest_of_plan(plan) != adopted.digest:
            raise JournalBroken(adopted.run_id, "its plan was changed in the store", seq=adopted.seq)
        catalog = Catalog({}, adopted.workers, adopted.default_skill, any_skill=True)
        if self._skills is not None:
            catalog = replace(catalog, skills=self._skills, any_skill=False)
        source = _modelled(plan)
        checked = check_plan(source, catalog)
        if checked.compiled is None and self._lenient:
            checked = check_plan(source, replace(catalog, any_skill=True))
        if checked.compiled is None:
            raise InvalidPlan(checked.problems)
        return checked.compiled.with_guarded(adopted.guarded)


def _modelled(plan: dict[str, Any]) -> Plan | dict[str, Any]:
    """A kept plan is in its normal form: it need not be brought to that. What does not fit, the checks will tell."""
    try:
        return Plan.model_validate(plan)
    except ValidationError:
        return plan


class PlanReader(Protocol):
    """Who gives the plans of a run."""

    def plan_of(self, adopted: PlanAdopted) -> CompiledPlan:
        """The compiled plan that an event speaks of. Raises JournalBroken, InvalidPlan."""


@dataclass(slots=True)
class Loaded:
    """A run as its journal has it."""

    run: Run
    head: RunHead
    checksum: int
    events: list[Event]
    """All that were folded."""


def load(store: Store, run_id: str, plans: PlanReader, *, upto: int | None = None) -> Loaded:
    """Fold a run, up to its last event or to that of the number `upto`.

    Raises UnknownRun, JournalBroken, StoreTooNew, InvalidPlan (skills are gone), UsageError for a number that the run
    does not have.
    """
    head = store.head(run_id)
    if upto is not None and not 1 <= upto <= head.seq:
        raise UsageError(f"run {run_id!r} has the events 1 to {head.seq}, and no event {upto}")
    stored = list(store.events(run_id, upto=head.seq))
    total = verify(run_id, stored, head)
    events = [decode(event, run_id) for event in stored[:upto]]
    return Loaded(fold(run_id, events, plans), head, total, events)


def verify(run_id: str, stored: list[StoredEvent], head: RunHead) -> int:
    """The checksum of a whole journal. Raises JournalBroken where events are missing, or are not what was written."""
    total = 0
    for place, event in enumerate(stored, 1):
        if event.seq != place:
            raise JournalBroken(run_id, f"event {place} is missing", seq=place)
        total = checksum(total, event)
    if len(stored) != head.seq:
        raise JournalBroken(run_id, f"it ends here, and had {head.seq} events", seq=len(stored))
    if total != head.checksum:
        raise JournalBroken(run_id, "its events are not those that were written")
    return total


def fold(run_id: str, events: list[Event], plans: PlanReader) -> Run:
    """The run that these events make. Raises JournalBroken, InvalidPlan."""
    run = Run(run_id, plans.plan_of)
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
