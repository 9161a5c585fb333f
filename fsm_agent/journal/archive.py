"""Stored runs, for whoever looks at them, copies them or clears them away. Nothing here drives a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fsm_agent.core.events import Event, RunForked, RunStarted
from fsm_agent.core.machine import FINAL
from fsm_agent.core.result import RunResult
from fsm_agent.core.run import Run
from fsm_agent.errors import JournalBroken, UnknownRun, UsageError
from fsm_agent.journal import codec
from fsm_agent.journal.holes import EDGE, Holes
from fsm_agent.journal.loading import Loaded, StoredPlans, event_of, fold, load, mark_of
from fsm_agent.journal.owners import driver_of
from fsm_agent.journal.projection import Projection
from fsm_agent.journal.records import Batch, RunHead, StoredEvent, StoredPlan, is_run_id
from fsm_agent.journal.store import Store


@dataclass(frozen=True, slots=True)
class Listed:
    """One run of a store, at a glance."""

    run_id: str
    phase: str
    goal: str | None
    labels: dict[str, str]
    created: float
    changed: float
    events: int
    driver: str | None
    """Who drives it at the moment; None where nobody does."""
    left_behind: bool
    """Whether it was under way when its driver died: `recover` goes on with it."""
    broken: str | None = None
    """What is wrong with its journal, as far as its first event and its plan show."""

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of folding a run's whole journal once more, from its first event."""

    run_id: str
    events: int
    transitions: int
    result: RunResult


class Archive:
    """The runs of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def runs(self, phase: str | None = None) -> Iterator[Listed]:
        """The runs, the latest first; of one phase, or of all. Each is read when it is asked for."""
        now = self._store.now()
        return (self._listed(head, now) for head in self._store.heads() if phase in (None, head.phase))

    def listed(self, run_id: str) -> Listed:
        """One run at a glance. Raises UnknownRun."""
        return self._listed(self._store.head(run_id), self._store.now())

    def _listed(self, head: RunHead, now: float) -> Listed:
        goal, labels, broken = None, {}, None
        try:
            started = self._started(head.run_id)
            goal, labels = started.goal or self._goal_of_plan(head), dict(started.labels)
        except (JournalBroken, UnknownRun) as error:
            broken = error.message
        driver = driver_of(head, now)
        return Listed(
            run_id=head.run_id,
            phase=head.phase,
            goal=goal,
            labels=labels,
            created=head.created,
            changed=head.changed,
            events=head.seq,
            driver=str(driver) if driver is not None else None,
            left_behind=driver is None and head.phase not in FINAL and head.phase != "paused",
            broken=broken,
        )

    def _started(self, run_id: str) -> RunStarted:
        """What was asked for, with secrets as `***`. Raises JournalBroken."""
        first = next(iter(self._store.events(run_id, upto=1)), None)
        if first is None:
            raise JournalBroken(run_id, "it has no events")
        mark = mark_of(self._store.events(run_id), run_id) if EDGE in first.body else ""
        event = event_of(first, run_id, Holes(mark, {}) if mark else None)
        if not isinstance(event, RunStarted):
            raise JournalBroken(run_id, "its first event is no start", seq=1)
        return event

    def _goal_of_plan(self, head: RunHead) -> str | None:
        if head.plan is None:
            return None
        stored = self._store.plan(head.plan)
        try:
            plan = json.loads(stored.body) if stored is not None else None
        except ValueError:
            plan = None
        if not isinstance(plan, dict):
            raise JournalBroken(head.run_id, "its plan is not there any more, or no plan")
        goal = plan.get("goal")
        return goal if isinstance(goal, str) else None

    def load(self, run_id: str, at: int | None = None) -> Loaded:
        """A run, folded. Raises UnknownRun, JournalBroken, UsageError for an event that it does not have."""
        return load(self._store, run_id, self._plans(), upto=at)

    def show(self, run_id: str, at: int | None = None) -> RunResult:
        """A run as its journal has it, or as it was after its event number `at`."""
        return self.load(run_id, at).result()

    def events(self, run_id: str, after: int = 0) -> Iterator[Event]:
        """The events of a run, with secrets as `***`. Raises UnknownRun, JournalBroken."""
        stored = list(self._store.events(run_id))
        mark = mark_of(stored, run_id)
        holes = Holes(mark, {}) if mark else None
        for kept in stored:
            if kept.seq > after:
                yield event_of(kept, run_id, holes)

    def moments(self, run_id: str, events: Sequence[Event]) -> Callable[[int], Run]:
        """The run as it was after an event, by its number; folded anew each time, so that whoever asks may keep it."""
        plans = self._plans()
        return lambda seq: fold(run_id, events[:seq], plans)

    def replay(self, run_id: str) -> Replay:
        """Fold the whole journal through the machine again, without any snapshot. Raises JournalBroken."""
        head = self._store.head(run_id)
        loaded = load(self._store, run_id, self._plans(), upto=head.seq)
        transitions = sum(event.type == "phase_changed" for event in loaded.stored)
        return Replay(run_id, head.seq, transitions, loaded.result())

    def fork(self, run_id: str, at: int, new_id: str) -> RunResult:
        """A new run that begins as the first `at` events of another one. It is then resumed like any that rests.

        Its idempotency keys are its own. Approvals and reruns that nothing had come of yet were for the other run, and
        are asked anew; the plan's approval stays. Raises UnknownRun, RunExists, UsageError.
        """
        loaded = self.load(run_id, at)
        if not loaded.run.plan_version:
            raise UsageError(f"run {run_id!r} has no plan yet at event {at}", hint="fork it later in its journal")
        last = loaded.stored[-1]
        forked = RunForked(source=run_id, upto=at, seq=at + 1, at=last.at, run_id=new_id)
        stored = [*loaded.stored, codec.encode(forked)]
        self.bring_in(new_id, stored, self.plans_of(loaded.stored), created=self._store.now())
        return self.show(new_id)

    def bring_in(
        self, run_id: str, stored: Sequence[StoredEvent], plans: Sequence[StoredPlan], created: float | None = None
    ) -> None:
        """Write a whole run, in one transaction. It was `created` when its first event was, unless told otherwise.

        Raises RunExists, JournalBroken (it does not fold), UsageError for what can be no run's id.
        """
        if not is_run_id(run_id):
            raise UsageError("the run's id is none: it takes 1 to 100 printable characters", hint="give it another id")
        if not stored:
            raise JournalBroken(run_id, "it has no events")
        known = {plan.digest: plan for plan in plans}
        reader = StoredPlans(known.get)
        run = Run(run_id, reader.plan_of)
        projection = Projection(run)
        total = 0
        events = []
        for event in stored:
            total = codec.checksum(total, event)
            events.append(codec.decode(event, run_id))
        fold(run_id, events, reader, run)
        projection.note(events)
        batch = Batch(
            tuple(stored), total, run.phase, run.plan_version, run.plan_digest, tuple(plans), projection.rows()
        )
        self._store.bring_in(run_id, batch, stored[0].at if created is None else created)

    def prune(self, before: float, *, dry: bool = False) -> list[str]:
        """Remove runs that are over, and whose last event was before that time of day. Returns their ids."""
        old = [head.run_id for head in self._store.heads() if head.phase in FINAL and head.changed < before]
        if old and not dry:
            self._store.remove(old)
        return old

    def plans_of(self, stored: Sequence[StoredEvent]) -> list[StoredPlan]:
        """The plans that these events speak of, each once."""
        found = [json.loads(event.body)["digest"] for event in stored if event.type == "plan_adopted"]
        plans = [self._store.plan(digest) for digest in dict.fromkeys(found)]
        return [plan for plan in plans if plan is not None]

    def _plans(self) -> StoredPlans:
        return StoredPlans(self._store.plan)
