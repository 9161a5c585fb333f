"""Journals, and whether a run can be taken up from a snapshot of any moment of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from fsm_agent.core.decide import decide
from fsm_agent.core.events import AnyEvent, Event
from fsm_agent.core.result import result_of
from fsm_agent.core.run import Run
from fsm_agent.core.snapshots import CARRIERS, dump, restore
from fsm_agent.plan.compiled import CompiledPlan
from tests.likeness import differences

_decoder = msgspec.json.Decoder(AnyEvent)


def stored(events: Iterable[Event]) -> list[Event]:
    """The events as a store gives them back."""
    return [_decoder.decode(msgspec.json.encode(event)) for event in events]


def fresh(shape: CompiledPlan, secrets: dict[str, Any] | None = None) -> Run:
    """A run of a plan before its first event."""
    return Run("r", lambda _: shape, secrets)


def folded(shape: CompiledPlan, events: Iterable[Event]) -> Run:
    """The run that the events give."""
    run = fresh(shape)
    for event in events:
        run.evolve(event)
    return run


def kept(run: Run) -> Any:
    """A snapshot of the run, as a store gives it back."""
    return json.loads(json.dumps(dump(run)))


def carried(events: Iterable[Event]) -> list[Event]:
    """Those of the events that a snapshot is to be restored with."""
    return [event for event in events if event.type in CARRIERS]


def taken_up(shape: CompiledPlan, run: Run, events: Sequence[Event], secrets: dict[str, Any] | None = None) -> Run:
    """A fresh run that was brought to where `run` stands, by a snapshot of it and the events up to then."""
    again = fresh(shape, secrets)
    restore(again, kept(run), carried(events))
    return again


def assert_taken_up_anywhere(
    shape: CompiledPlan,
    events: Sequence[Event],
    odd: Callable[[Run], object] = bool,
    *,
    secrets: dict[str, Any] | None = None,
) -> None:
    """At each position of the journal: the run comes back as it is, and goes on to the same end.

    `odd` must hold at one position at least.
    """
    if shape.has_rollback:  # such a run is folded
        return
    events = stored(events)
    run, ends = fresh(shape, secrets), []
    oddities = 0
    for at in range(len(events) + 1):
        if at:
            run.evolve(events[at - 1])
        decide(run)  # as its driver does: whose turn it is was looked at
        again = taken_up(shape, run, events[:at], secrets)
        assert differences(run, again) == [], f"after event {at}"
        assert decide(run) == decide(again), f"after event {at}"
        oddities += bool(odd(run))
        for event in events[at:]:
            again.evolve(event)
        ends.append(again)
    assert oddities, "none of the moments is what was looked for"
    for at, end in enumerate(ends):
        assert differences(run, end) == [], f"from event {at}"
        assert result_of(end) == result_of(run), f"from event {at}"
        if run.plan_version:
            assert end.all_results() == run.all_results(), f"from event {at}"
