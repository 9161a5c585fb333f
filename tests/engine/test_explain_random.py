"""Explanations of random runs at random moments, and the jumps that they tell against those that really happened."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fsm_agent import Event
from fsm_agent.core.run import Run
from fsm_agent.core.schedule import Schedule
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.views.explain import Explanation, explain
from fsm_agent.views.explaining.history import History
from tests.engine.explained import Folder, explained_by, of
from tests.engine.scripted import compiled, play, playable
from tests.engine.support import basic, plan_of
from tests.reference import random_plan

BLOCKS = pytest.mark.parametrize("block", range(4))
A_BLOCK = 30


def runs(block: int) -> list[tuple[int, CompiledPlan, list[Event]]]:
    """Seeds with their plans and the events of a run."""
    found = []
    for seed in range(block * A_BLOCK, (block + 1) * A_BLOCK):
        plan, outcomes = random_plan(random.Random(seed))
        made, _ = play(plan, playable(plan, outcomes), max_parallel=1 + seed % 3, seed=seed, longest=3)
        found.append((seed, compiled(plan), made.events))
    return found


@BLOCKS
def test_every_task_of_any_run_can_be_explained_at_any_moment(block: int) -> None:
    for seed, shape, events in runs(block):
        chance = random.Random(seed)
        adopted = next(event.seq for event in events if event.type == "plan_adopted")
        for upto in {len(events), *(chance.randint(adopted, len(events)) for _ in range(3))}:
            run = Folder(events, shape)(upto)
            for task in shape.graph.ids:
                found = explained_by(events[:upto], shape, task)
                node = run.node(task)
                shown = "PENDING" if node.status == "READY" and run.final else node.status
                assert (found.status, found.reason) == (shown, node.reason), f"seed {seed}, {task} at {upto}"


@BLOCKS
def test_a_pending_or_ready_task_always_has_something_that_it_waits_for(block: int) -> None:
    for seed, shape, events in runs(block):
        adopted = next(event.seq for event in events if event.type == "plan_adopted")
        for upto in range(adopted + 1, len(events) + 1, 7):
            for task in shape.graph.ids:
                found = explained_by(events[:upto], shape, task)
                if found.status == "PENDING":
                    assert "has not run yet" not in found.summary, f"seed {seed}, {task} at {upto}"


@BLOCKS
def test_the_jumps_that_are_told_are_those_that_happened(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real: list[tuple[str, str]] = []
    jump = Schedule.jump

    def spy(self: Schedule, source: int, target: int, status: Any) -> None:
        real.append((self.graph.ids[source], self.graph.ids[target]))
        jump(self, source, target, status)

    monkeypatch.setattr(Schedule, "jump", spy)
    for seed, shape, events in runs(block):
        real.clear()
        run = Run("r", lambda digest, shape=shape: shape)  # type: ignore[misc] # bound now
        for event in events:
            run.evolve(event)
        happened = list(real)
        for task in shape.graph.ids:
            place = shape.graph.index[task]
            ours = sum(place in shape.graph.reachable(shape.graph.index[target]) for _, target in happened)
            assert History(events, run, task).rounds == 1 + ours, f"seed {seed}, {task}"


def _cpu(work: Callable[[], Explanation]) -> float:
    """The processor's time: what else the machine does is none of it."""
    began = time.process_time()
    assert work().status == "SUCCEEDED"
    return time.process_time() - began


@pytest.mark.timing
def test_explaining_costs_one_pass_over_the_events_however_many_there_are() -> None:
    took = {}
    for size in (1_000, 10_000):
        chain = ({"id": f"t{n}", "dependencies": [f"t{n - 1}"], "condition": "n > 0"} for n in range(1, size))
        plan = plan_of({"id": "t0"}, *chain, context={"n": 1})
        made = basic()
        made.run(plan, run_id="r")
        shape = compiled(plan)
        fold = Folder(made.events, shape)
        known = {
            upto: fold(upto) for upto in (len(made.events), made.of("task_started", task=f"t{size - 1}")[0].seq - 1)
        }
        took[size] = min(_cpu(partial(explain, made.events, known.__getitem__, f"t{size - 1}")) for _ in range(3))
    assert took[10_000] < 1.0
    assert took[10_000] / took[1_000] < 50


def test_a_chain_of_a_thousand_skips_is_traced_to_its_root() -> None:
    size = 1_000
    plan = plan_of(
        {"id": "t0", "verification": "1 > 2", "on_success": "t1", "on_failure": "end"},
        *({"id": f"t{n}", **({"dependencies": [f"t{n - 1}"]} if n > 1 else {})} for n in range(1, size)),
        {"id": "end"},
    )
    made = basic()
    made.run(plan, run_id="r")
    found = explained_by(made.events, compiled(plan), f"t{size - 1}")
    assert of(found, "skip")[-1].startswith("it began with 't0': FAILED (its verification is false) (by way of 't998'")
    assert of(found, "skip")[-1].endswith("… and 992 more)")
