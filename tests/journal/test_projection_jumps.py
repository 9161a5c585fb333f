"""The rows by which people see tasks, over whole runs: jumps, commits of any size, and runs that were read."""

from __future__ import annotations

from typing import Any

import msgspec

from fsm_agent.core.events import Event
from fsm_agent.core.run import Run
from fsm_agent.engine.simulation import Simulation
from fsm_agent.journal.projection import Projection
from fsm_agent.journal.records import TaskRow
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.plan.loader import check_plan
from tests.taking_up import folded, fresh

CHAIN: list[dict[str, Any]] = [
    {"id": "a", "skill": "s"},
    {"id": "b", "skill": "s", "dependencies": ["a"]},
    {"id": "c", "skill": "s", "dependencies": ["b"], "condition": "False"},
]
LOOP: list[dict[str, Any]] = [
    {"id": "draft", "skill": "s"},
    {"id": "judge", "skill": "s", "dependencies": ["draft"], "on_failure": "draft"},
]


def journal(*tasks: dict[str, Any], **outcomes: list[Any]) -> tuple[CompiledPlan, list[Event]]:
    """A plan, and the events of a run of it."""
    shape = check_plan({"tasks": list(tasks)}).compiled
    assert shape is not None
    simulation = Simulation(shape, outcomes)
    simulation.result()
    return shape, [msgspec.structs.replace(event, run_id="r") for event in simulation.events]


class Store:
    """What the table of tasks says after some commits."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.projection = Projection(run)
        self.rows: dict[str, TaskRow] = {}

    def commit(self, *events: Event) -> list[str]:
        """Take these in and commit them. Returns the tasks whose rows were written."""
        for event in events:
            self.run.evolve(event)
        self.projection.note(events)
        rows = self.projection.rows()
        for row in rows:
            before = self.rows.get(row.task, row)
            kept = {name: getattr(before, name) for name in ("asked", "started", "ended") if getattr(row, name) is None}
            self.rows[row.task] = row._replace(**kept)
        self.projection.written()
        return sorted(row.task for row in rows)


def test_a_commit_writes_what_changed_since_the_last_one_and_nothing_else() -> None:
    shape, events = journal(*CHAIN)
    store = Store(fresh(shape))
    written = [(event.type, names) for event in events if (names := store.commit(event))]
    assert written == [
        ("task_started", ["a"]),
        ("task_evaluated", ["a"]),
        ("task_started", ["b"]),
        ("task_evaluated", ["b"]),
        ("task_skipped", ["c"]),
    ]


def test_a_row_says_how_its_task_stands_and_which_events_tell_of_its_last_visit() -> None:
    shape, events = journal(*LOOP, judge=["fail", "ok"])
    store = Store(fresh(shape))
    for event in events:
        store.commit(event)
    kinds = ("task_started", "task_evaluated")
    for place, task in enumerate(("draft", "judge")):
        marks = [max(e.seq for e in events if e.type == kind and e.task == task) for kind in kinds]
        assert store.rows[task] == TaskRow(place, task, "SUCCEEDED", None, 2, 2, 0, None, *marks)


def test_rows_come_to_the_same_however_many_events_a_commit_has() -> None:
    shape, events = journal(*LOOP, *CHAIN, judge=["fail", "fail", "ok"])
    tables = []
    for size in (1, 2, 5, len(events)):
        store = Store(fresh(shape))
        for start in range(0, len(events), size):
            store.commit(*events[start : start + size])
        tables.append(store.rows)
    assert all(table == tables[0] for table in tables)


def test_a_task_that_a_jump_has_reset_is_seen_to_be_pending_again() -> None:
    shape, events = journal(*LOOP, judge=["fail", "ok"])
    store = Store(fresh(shape))
    failed = next(index for index, e in enumerate(events) if e.type == "task_evaluated" and e.task == "judge")
    for event in events[: failed + 1]:
        store.commit(event)
    assert store.rows["judge"].status == "PENDING"


def test_of_a_run_that_was_read_from_a_store_a_task_that_becomes_pending_is_written() -> None:
    """Which rows are there is not known: one too many is harmless, one that stays as it was is wrong."""
    shape, events = journal(*LOOP, judge=["fail", "ok"])
    failed = next(index for index, e in enumerate(events) if e.type == "task_evaluated" and e.task == "judge")
    store = Store(folded(shape, events[:failed]))
    assert store.commit(events[failed]) == ["draft", "judge"]
