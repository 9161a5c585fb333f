"""Random plans through the real engine: as the simulation serially, and whole whatever overlaps."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from fsm_agent import Event, RunResult
from fsm_agent.core.machine import FINAL
from fsm_agent.engine.simulation import simulate
from fsm_agent.errors import IllegalTransition
from tests.engine.scripted import compiled, loops_are_simple, play, playable, replayed, timeless, told
from tests.engine.support import most_at_once, statuses
from tests.reference import interpret, random_plan

BLOCKS = pytest.mark.parametrize("block", range(4))
A_BLOCK = 45


def cases(block: int) -> list[tuple[int, dict[str, Any], dict[str, list[Any]]]]:
    """Seeds with their plans and scripts."""
    found = []
    for seed in range(block * A_BLOCK, (block + 1) * A_BLOCK):
        plan, outcomes = random_plan(random.Random(seed))
        found.append((seed, plan, playable(plan, outcomes)))
    return found


def verdict(result: RunResult) -> dict[str, Any]:
    """What must be the same however a plan was run one task at a time."""
    return {
        "phase": result.phase,
        "outcome": result.outcome,
        "reason": result.reason and {key: result.reason.get(key) for key in ("kind", "task", "setting", "count")},
        "statuses": statuses(result),
        "visits": {task: each.visits for task, each in result.tasks.items()},
        "data": {task: each.data for task, each in result.tasks.items()},
        "verified": {task: each.verified for task, each in result.tasks.items()},
        "trace": result.trace,
        "context": result.context,
        "criteria": result.criteria,
        "output": result.output,
        "rollbacks": result.rollbacks,
        "waiting": [(each["kind"], each["task"], each["visit"]) for each in result.waiting],
    }


@BLOCKS
def test_one_at_a_time_the_engine_does_what_the_simulation_says(block: int) -> None:
    for seed, plan, script in cases(block):
        _, real = play(plan, script, max_parallel=1, longest=3, seed=seed)
        simulated = simulate(compiled(plan), script)
        assert verdict(real) == verdict(simulated), f"seed {seed}"


@BLOCKS
def test_one_at_a_time_the_engine_does_what_the_reference_interpreter_says(block: int) -> None:
    for seed, plan, script in cases(block):
        _, real = play(plan, script, max_parallel=1)
        reference = interpret(plan, script)
        assert (real.phase, real.trace) == (reference.phase, reference.trace), f"seed {seed}"
        found = {task: (each.status.replace("READY", "PENDING"), each.reason) for task, each in real.tasks.items()}
        assert found == reference.status, f"seed {seed}"
        assert (real.context, real.outcome) == (reference.context, reference.outcome), f"seed {seed}"
        compensated = [task for each in real.rollbacks for task in each["compensated"]]
        assert compensated == reference.compensated, f"seed {seed}"


@BLOCKS
def test_in_parallel_final_statuses_are_the_same_where_timing_does_not_matter(block: int) -> None:
    tried = 0
    for seed, whole, full in cases(block):
        plan, script = timeless(whole, full)
        if not loops_are_simple(plan):
            continue
        tried += 1
        expected = simulate(compiled(plan), script)
        for chance in range(3):
            made, real = play(plan, script, max_parallel=8, longest=9, seed=chance)
            assert (real.phase, statuses(real)) == (expected.phase, statuses(expected)), f"seed {seed}, {chance}"
            assert_whole(made.events, real, 8)
    assert tried > A_BLOCK / 3


@BLOCKS
def test_in_parallel_a_run_ends_is_whole_and_is_the_same_twice(block: int) -> None:
    for seed, plan, script in cases(block):
        made, first = play(plan, script, max_parallel=8, longest=9, seed=seed)
        again, second = play(plan, script, max_parallel=8, longest=9, seed=seed)
        assert made.events == again.events, f"seed {seed}"
        assert first == second
        assert_whole(made.events, first, 8)


def assert_whole(events: list[Event], result: RunResult, max_parallel: int) -> None:
    """What holds in every run."""
    asked = any(event.type == "approval_asked" for event in events)
    assert result.phase in FINAL or (result.phase == "paused" and asked)  # a jump may have withdrawn what was asked
    assert (result.reason or {}).get("kind") != "stalled"
    assert most_at_once(events) <= max_parallel
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    judged = Counter(task for task, word in result.trace if word != "skip")
    dropped = Counter(event.task for event in events if event.type == "visit_discarded")
    started = Counter(event.task for event in events if event.type == "task_started")
    for task, each in result.tasks.items():
        assert each.visits == judged[task] + dropped[task]
        assert started[task] <= each.visits
        assert each.status not in ("RUNNING", "READY") or result.phase == "paused"
    if result.phase in FINAL:
        assert events[-1].type == "run_finished"
        assert "WAITING_APPROVAL" not in statuses(result).values()
    if result.phase == "completed":
        assert not {"PENDING"} & set(statuses(result).values())


# Replay -----------------------------------------------------------------------------------------------------------


@BLOCKS
def test_folding_the_events_of_a_run_gives_its_result_again(block: int) -> None:
    for seed, plan, script in cases(block):
        made, result = play(plan, script, max_parallel=3, longest=9, seed=seed)
        assert told(replayed(plan, made.events)) == told(result), f"seed {seed}"


@BLOCKS
def test_folding_the_first_events_of_a_run_never_fails(block: int) -> None:
    for _, plan, script in cases(block)[::10]:
        made, _ = play(plan, script, max_parallel=3, longest=9)
        for size in range(2, len(made.events)):
            replayed(plan, made.events[:size])


def phase_changes(events: list[Event]) -> list[int]:
    return [place for place, event in enumerate(events) if event.type == "phase_changed"]


@BLOCKS
def test_a_journal_without_one_of_its_transitions_is_refused(block: int) -> None:
    for _, plan, script in cases(block)[::6]:
        made, _ = play(plan, script, max_parallel=3, longest=9)
        for place in phase_changes(made.events):
            if place == len(made.events) - 1:
                continue  # a paused run: what is left is a journal that goes on
            with pytest.raises(IllegalTransition):
                replayed(plan, made.events[:place] + made.events[place + 1 :])


@BLOCKS
@pytest.mark.parametrize("field", ["trigger", "source", "dest", "guard"])
def test_a_journal_with_an_altered_transition_is_refused(block: int, field: str) -> None:
    other = {"trigger": "pause", "source": "idle", "dest": "cancelled", "guard": "plan_is_valid"}
    for _, plan, script in cases(block)[::6]:
        made, _ = play(plan, script, max_parallel=3, longest=9)
        for place in phase_changes(made.events):
            event = made.events[place]
            altered = msgspec.structs.replace(event, **{field: other[field]})
            if altered == event:
                continue
            with pytest.raises(IllegalTransition):
                replayed(plan, [*made.events[:place], altered, *made.events[place + 1 :]])
