"""Snapshots of random runs, at every position of their journals."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from fsm_agent import Event
from fsm_agent.core.decide import decide
from fsm_agent.core.snapshots import dump
from tests.engine.scripted import Player, compiled, play, playable
from tests.engine.support import bench, drive
from tests.engine.test_interference import Meddler, asking_plan, meddled
from tests.reference import random_plan
from tests.taking_up import assert_taken_up_anywhere, fresh

BLOCKS = pytest.mark.parametrize("block", range(4))
A_BLOCK = 40


def seeds(block: int) -> range:
    return range(block * A_BLOCK, (block + 1) * A_BLOCK)


@BLOCKS
def test_a_run_can_be_taken_up_from_a_snapshot_of_any_moment(block: int) -> None:
    for seed in seeds(block):
        plan, outcomes = random_plan(random.Random(seed))
        made, _ = play(plan, playable(plan, outcomes), max_parallel=8, longest=9, seed=seed)
        assert_taken_up_anywhere(compiled(plan), made.events)


@BLOCKS
@pytest.mark.parametrize("cancels", [False, True])
def test_so_can_a_run_that_people_interfere_with(block: int, cancels: bool) -> None:
    for seed in seeds(block):
        plan, events, _ = meddled(seed, cancels=cancels)
        assert_taken_up_anywhere(compiled(plan), events)


@BLOCKS
def test_a_run_that_is_driven_has_the_snapshots_of_the_one_that_its_journal_gives(block: int) -> None:
    for seed in seeds(block)[::2]:
        plan, events, snapshots = photographed(seed)
        if compiled(plan).has_rollback:
            continue
        run = fresh(compiled(plan))
        for event, snapshot in zip(events, snapshots, strict=True):
            run.evolve(event)
            decide(run)  # who cleans up is worked out when it is first asked
            assert json.dumps({**dump(run), "plan": snapshot["plan"]}) == json.dumps(snapshot), f"seed {seed}"


def photographed(seed: int) -> tuple[dict[str, Any], list[Event], list[dict[str, Any]]]:
    """A run that people interfere with, and a snapshot of it after each event."""
    plan, script = asking_plan(seed)
    player = Player(script, seed, longest=9)
    made = bench(player.skills(), clock=player.clock)
    snapshots: list[dict[str, Any]] = []

    def photograph(_: Event) -> None:
        run = made.engine._runs.get("r").run
        decide(run)
        snapshots.append(dump(run))

    made.engine.add_listener(photograph)
    drive(Meddler(made, seed, cancels=True).see_it_through(plan))
    return plan, made.events, snapshots
