"""Snapshots by themselves: what is refused, how large they are, how long they take, and how likeness is judged."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from fsm_agent.core.events import Event
from fsm_agent.core.nodes import Node
from fsm_agent.core.packing import pack, unpack
from fsm_agent.core.run import Run
from fsm_agent.core.snapshots import CARRIERS, dump, restore
from fsm_agent.engine.simulation import Simulation
from fsm_agent.errors import JournalBroken, SnapshotRefused
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.plan.loader import check_plan
from tests.likeness import differences
from tests.taking_up import carried, folded, fresh, kept, stored, taken_up

LOOP: dict[str, Any] = {
    "tasks": [
        {"id": "draft", "skill": "s", "max_visits": 10_000_000},
        {"id": "judge", "skill": "s", "dependencies": ["draft"], "on_failure": "draft", "max_visits": 10_000_000},
        {"id": "after", "skill": "s", "dependencies": ["judge"]},
    ],
    "limits": {"max_task_runs": 10_000_000},
}


def shape_of(plan: dict[str, Any]) -> CompiledPlan:
    shape = check_plan(plan).compiled
    assert shape is not None
    return shape


def journal(shape: CompiledPlan, **outcomes: list[Any]) -> list[Event]:
    """The events of a run with these outcomes."""
    simulation = Simulation(shape, outcomes)
    simulation.result()
    return [event for event in stored(simulation.events) if event.seq]


@pytest.fixture(scope="module")
def loop() -> tuple[CompiledPlan, list[Event]]:
    shape = shape_of(LOOP)
    return shape, [*_as_run_r(journal(shape, judge=["fail", {"data": {"v": 1}, "context": {"k": 1}}]))]


def _as_run_r(events: list[Event]) -> Iterator[Event]:
    """Simulations have an id of their own."""
    for event in events:
        yield msgspec.structs.replace(event, run_id="r")


# What is refused ----------------------------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value in a document that is no container, and where it is; empty containers too."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in parts:
        yield from leaves(item, (*path, key))
    if not isinstance(value, (dict, list)) or not value:
        yield path, value


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


def test_a_snapshot_of_which_anything_was_changed_is_refused(loop: tuple[CompiledPlan, list[Event]]) -> None:
    shape, events = loop
    snapshot = kept(folded(shape, events[:12]))
    others = [0, 1, -1, 7, 2.5, 1 << 70, None, True, "SKIPPED", "x", [], [1], {}, {"a": 1}]
    tried = 0
    for path, value in leaves(snapshot):
        for other in others:
            are_numbers = {type(other), type(value)} <= {int, float}
            if other is value or ((are_numbers or type(other) is type(value)) and other == value):
                continue
            tried += 1
            with pytest.raises(SnapshotRefused):
                restore(fresh(shape), changed(snapshot, path, other), carried(events[:12]))
    assert tried > 500


@pytest.mark.parametrize("key", ["format", "run_id", "plan", "check", "state"])
def test_a_snapshot_that_lacks_something_is_refused(loop: tuple[CompiledPlan, list[Event]], key: str) -> None:
    shape, events = loop
    snapshot = kept(folded(shape, events))
    del snapshot[key]
    with pytest.raises(SnapshotRefused):
        restore(fresh(shape), snapshot, carried(events))


@pytest.mark.parametrize("snapshot", [None, [], {}, "x", 1, {"format": 1}, {"format": 1, "state": {}}], ids=repr)
def test_what_is_no_snapshot_is_refused(loop: tuple[CompiledPlan, list[Event]], snapshot: Any) -> None:
    with pytest.raises(SnapshotRefused, match=r"format|damaged"):
        restore(fresh(loop[0]), snapshot, ())


def test_a_snapshot_of_a_later_program_is_refused_and_says_so(loop: tuple[CompiledPlan, list[Event]]) -> None:
    shape, events = loop
    snapshot = {**kept(folded(shape, events)), "format": 2, "more": 1}
    with pytest.raises(SnapshotRefused, match="another format") as caught:
        restore(fresh(shape), snapshot, carried(events))
    assert caught.value.run_id == "r"
    assert "events" in caught.value.hint


def test_a_snapshot_of_another_run_is_refused(loop: tuple[CompiledPlan, list[Event]]) -> None:
    shape, events = loop
    with pytest.raises(SnapshotRefused, match="another run"):
        restore(Run("other", lambda _: shape), kept(folded(shape, events)), carried(events))


def test_a_snapshot_with_the_events_of_another_moment_is_refused(loop: tuple[CompiledPlan, list[Event]]) -> None:
    shape, events = loop
    snapshot = kept(folded(shape, events))
    early, no_start = carried(events[:-8]), carried(events)[1:]
    no_draft = [event for event in carried(events) if event.task != "draft"]
    for past in ([], early, no_start, no_draft):
        with pytest.raises(SnapshotRefused):
            restore(fresh(shape), snapshot, past)


def test_a_snapshot_with_another_plan_of_the_same_name_is_refused(loop: tuple[CompiledPlan, list[Event]]) -> None:
    shape, events = loop
    other = shape_of({"tasks": [*LOOP["tasks"], {"id": "more", "skill": "s"}], "limits": LOOP["limits"]})
    with pytest.raises(SnapshotRefused):
        restore(fresh(other), kept(folded(shape, events)), carried(events))


def test_a_journal_that_is_found_broken_meanwhile_is_told_as_that(loop: tuple[CompiledPlan, list[Event]]) -> None:
    shape, events = loop

    def past() -> Iterator[Event]:
        yield events[0]
        raise JournalBroken("r", "a row is missing", seq=2)

    with pytest.raises(JournalBroken):
        restore(fresh(shape), kept(folded(shape, events)), past())


# What it holds ------------------------------------------------------------------------------------------------------


def test_no_value_of_the_run_is_in_its_snapshot() -> None:
    mark = "a value of the run"
    tasks = [{"id": f"t{n}", "skill": "s", "parameters": {"p": mark}} for n in range(4)]
    shape = shape_of({"tasks": tasks, "context": {"k": mark}, "merge": {"log": "append"}, "output": f"'{mark}'"})
    script = {f"t{n}": [{"data": {"d": mark}, "context": {"k": mark, "log": mark}}] for n in range(4)}
    events = [*_as_run_r(journal(shape, **script))]
    run = folded(shape, events)
    assert mark not in json.dumps(dump(run))
    assert mark in run.context.values["log"]
    assert taken_up(shape, run, events).context.values == run.context.values


def test_a_snapshot_of_a_run_that_goes_round_and_round_does_not_grow() -> None:
    shape = shape_of(LOOP)
    events = [*_as_run_r(journal(shape, judge=["fail"] * 500 + ["ok"]))]
    early, late = (len(json.dumps(kept(folded(shape, events[:size])))) for size in (100, 4_000))
    assert late - early < 20


def chain(size: int) -> dict[str, Any]:
    return {"tasks": [{"id": "t0", "skill": "s"}] + [
        {"id": f"t{n}", "skill": "s", "dependencies": [f"t{n - 1}"]} for n in range(1, size)
    ]}  # fmt: skip


def woven(size: int) -> dict[str, Any]:
    """Tasks with none to four dependencies on earlier ones, some of which are soft."""
    chance = random.Random(1)
    tasks = []
    for n in range(size):
        before = [f"t{chance.randrange(n)}" for _ in range(chance.randint(0, 4))] if n else []
        half = len(before) // 2
        tasks.append({"id": f"t{n}", "skill": "s", "dependencies": before[half:], "soft_dependencies": before[:half]})
    return {"tasks": tasks}


@pytest.mark.parametrize(("plan", "done", "half_way"), [(chain, 0.1, 0.1), (woven, 0.1, 10)])
def test_ten_thousand_tasks_take_few_bytes(plan: Any, done: float, half_way: float) -> None:
    shape = shape_of(plan(10_000))
    events = journal(shape)
    run = folded(shape, events)
    half = folded(shape, events[: len(events) // 2])
    for each, most in ((run, done), (half, half_way)):
        assert len(json.dumps(dump(each), separators=(",", ":"))) / 10_000 < most


def test_tasks_that_all_stand_differently_take_less_than_fifty_bytes_each() -> None:
    chance = random.Random(1)
    shape = shape_of({**woven(10_000), "recovery": "skip"})
    lots = {f"t{n}": [chance.choice(["ok", "ok", "fail"])] for n in range(10_000)}
    events = journal(shape, **lots)
    half = folded(shape, events[: len(events) // 2])
    for node in half.schedule.nodes:
        node.visits, node.attempts = chance.randint(0, 20), chance.randint(0, 5)
    assert len(json.dumps(dump(half), separators=(",", ":"))) / 10_000 < 50


# How long it takes --------------------------------------------------------------------------------------------------


@pytest.mark.timing
@pytest.mark.parametrize("kind", ["loop", "chain"])
def test_a_run_of_a_hundred_thousand_events_is_taken_up_in_no_time(kind: str) -> None:
    shape = shape_of(LOOP if kind == "loop" else chain(25_000))
    outcomes = {"judge": ["fail"] * 12_500 + ["ok"]} if kind == "loop" else {}
    events = [*_as_run_r(journal(shape, **outcomes))]
    assert len(events) > 100_000
    run = folded(shape, events)
    snapshot, past = kept(run), carried(events)
    again = fresh(shape)
    began = time.process_time()
    restore(again, snapshot, past)
    assert time.process_time() - began < 5 * (0.1 if kind == "loop" else 0.25)
    assert len(again.trace) == len(run.trace)
    assert again.schedule.nodes == run.schedule.nodes


# The parts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[], [0], [1, 1, 1], [1, 2, 2, 1], [0, 0, -1, -1, 5]], ids=str)
def test_a_packed_list_can_be_unpacked(values: list[int]) -> None:
    assert unpack(pack(values), len(values)) == values


@pytest.mark.parametrize("packed", [[1], [1, 2, 3], [1, 2], [1, 4], [1, 0, 1, 3], [1, -1, 1, 4], [1, 10**15]], ids=str)
def test_a_packed_list_of_another_length_is_refused(packed: list[int]) -> None:
    with pytest.raises(ValueError, match="3 values"):
        unpack(packed, 3)


def test_all_that_carries_data_is_asked_for_and_the_most_frequent_events_are_not() -> None:
    assert {"task_evaluated", "context_changed", "plan_adopted"} <= CARRIERS
    assert not CARRIERS & {"phase_changed", "progress", "task_logged"}


@pytest.mark.parametrize("name", Node.__struct_fields__)
def test_likeness_looks_at_every_field_of_a_task(loop: tuple[CompiledPlan, list[Event]], name: str) -> None:
    shape, events = loop
    left, right = folded(shape, events), folded(shape, events)
    setattr(right.schedule.nodes[1], name, "other")
    (found,) = differences(left, right)
    assert found.partition(":")[0].endswith(f".nodes.1.{name}")


def test_likeness_looks_at_slots_that_it_has_never_heard_of(loop: tuple[CompiledPlan, list[Event]]) -> None:
    class Longer(Run):
        __slots__ = ("news",)

    left, right = (Longer("r", lambda _: loop[0]) for _ in range(2))
    assert differences(left, right) == []
    right.news = {"a": {1}}
    assert len(differences(left, right)) == 1
    left.news = {"a": {2}}
    assert differences(left, right) == [".news.a: [1, 2] in one of them only"]
