"""What the tests of explanations share: the explanation of a task from the events that a bench has kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from fsm_agent import Event
from fsm_agent.core import events as ev
from fsm_agent.core.events import Trigger
from fsm_agent.core.run import Run
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.views.explain import Explanation, Fact, explain, explanation_text
from tests.engine.scripted import compiled
from tests.engine.support import Bench


class Folder:
    """Folds a run's events anew for each moment that is asked for, and counts how often that is."""

    def __init__(self, events: Sequence[Event], shape: CompiledPlan) -> None:
        self.asked: list[int] = []
        self._events = events
        self._shape = shape

    def __call__(self, upto: int) -> Run:
        self.asked.append(upto)
        run = Run("r", lambda digest: self._shape)
        for event in self._events[:upto]:
            run.evolve(event)
        return run


MOST_FOLDS = 4


def explained(made: Bench, plan: dict[str, Any], task: str, *, upto: int | None = None) -> Explanation:
    """The explanation of a task after so many events, with all that must be so of any explanation."""
    return explained_by(made.events[:upto], compiled(plan), task)


def explained_by(events: Sequence[Event], shape: CompiledPlan, task: str) -> Explanation:
    """The same for events of any origin."""
    fold = Folder(events, shape)
    found = explain(events, fold, task)
    assert len(fold.asked) == len(set(fold.asked)) <= MOST_FOLDS
    assert found.summary.startswith(f"{task!r} is {found.status}")
    assert found.summary.count("\n") == 0
    assert list(found.to_json()) == ["format", "task", "status", "reason", "summary", "facts"]
    assert json.loads(json.dumps(found.to_json())) == found.to_json()
    assert all(fact.seq is None or 1 <= fact.seq <= len(events) for fact in found.facts)
    assert len(found.facts) < 120
    assert explanation_text(found).isprintable() or "\n" in explanation_text(found)
    return found


PLAN_ASKED: tuple[Event | Trigger, ...] = (
    ev.RunStarted(plan_approval=True),
    "start",
    ev.PlanAdopted(version=1, digest="d"),
    ev.ApprovalAsked(approval="p", kind="plan"),
    "planned",
)
"""A run that waits for a person's word on its plan: there is no door to it yet."""


def by_hand(shape: CompiledPlan, *steps: Event | Trigger) -> list[Event]:
    """The events of a run that is led by hand: events, and triggers that are fired."""
    run = Run("r", lambda digest: shape)
    events: list[Event] = []
    for step in steps:
        if isinstance(step, Event):
            events.append(msgspec.structs.replace(step, seq=run.seq + 1, run_id="r"))
            run.evolve(events[-1])
        else:
            events.append(run.fire(step, run.seq + 1, 0.0))
    return events


def of(found: Explanation, kind: str) -> list[str]:
    """The texts of the facts of a kind."""
    return [fact.text for fact in found.facts if fact.kind == kind]


def the(found: Explanation, kind: str) -> Fact:
    """The one fact of a kind."""
    (fact,) = [fact for fact in found.facts if fact.kind == kind]
    return fact
