"""The views for people who query a store: right inside every transaction, in both databases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fsm_agent.core import events as ev
from fsm_agent.journal.records import Batch, StoredPlan, TaskRow
from fsm_agent.journal.sql_store import SqlStore
from tests.journal.writing import LONG, ME, Pen, counts, logged, plan_of, query

PLAN = plan_of(
    "d1",
    {"id": "a", "name": "First", "parameters": {"city": "${inputs.city}"}},
    {"id": "2", "parameters": {"n": 2**70, "中": "\0"}},
    {"id": "c"},
    name="trip",
    goal="go away",
)
USED = {"plan": "d1", "plan_version": 1}
SETTLED = ev.PhaseChanged(trigger="settled", source="executing", dest="evaluating", guard="something_to_judge")
EVALUATED = ev.PhaseChanged(trigger="evaluated", source="evaluating", dest="executing")


def rows(store: SqlStore, view: str, order: str) -> list[dict[str, Any]]:
    """What a view shows; what is JSON in it as data."""
    columns = {"runs": RUN, "tasks": TASK, "events": EVENT}[view]
    found = query(store, f"SELECT {', '.join(columns)} FROM {view} ORDER BY {order}")
    as_json = {"labels", "input", "output", "error", "body"} | ({"reason"} if view == "runs" else set())
    return [
        {
            name: json.loads(value) if name in as_json and value is not None else value
            for name, value in zip(columns, row, strict=True)
        }
        for row in found
    ]


RUN = [
    "id", "plan", "version", "digest", "phase", "outcome", "goal", "labels", "started", "finished", "changed", "driver",
    "reason",
]  # fmt: skip
TASK = [
    "run_id", "task", "name", "status", "reason", "visits", "attempts", "retries", "started", "finished", "input",
    "output", "error",
]  # fmt: skip
EVENT = ["run_id", "seq", "at", "type", "task", "visit", "body"]


class Watched:
    """A run, with what the views show of it."""

    def __init__(self, store: SqlStore) -> None:
        self.store, self.pen = store, Pen()
        # Another run of the same plan, which is not to be mixed up with this one.
        other = Pen("other").batch(ev.RunStarted(goal="other"), **USED, plans=(PLAN,))
        store.create("other", ME, LONG, other)
        self.lease = store.create("r", ME, LONG, self.pen.batch(ev.RunStarted(labels={"é": "1"}), phase="idle"))

    def then(self, *events: ev.Event, **more: Any) -> None:
        self.store.commit(self.lease, self.pen.batch(*events, **more))

    @property
    def run(self) -> dict[str, Any]:
        (run,) = [run for run in rows(self.store, "runs", "id") if run["id"] == "r"]
        return run

    def task(self, name: str) -> dict[str, Any]:
        (task,) = [task for task in rows(self.store, "tasks", "task") if (task["run_id"], task["task"]) == ("r", name)]
        return task


@pytest.fixture
def watched(store: SqlStore) -> Watched:
    return Watched(store)


def adopt(watched: Watched) -> None:
    watched.then(ev.PlanAdopted(version=1, digest="d1", inputs={"text": "\0"}), **USED, plans=(PLAN,))


def test_a_run_is_shown_from_its_first_event_to_its_last(watched: Watched) -> None:
    nothing = {"plan": None, "version": 0, "digest": None, "outcome": None, "finished": None, "reason": None}
    begun = {"id": "r", "goal": None, "labels": {"é": "1"}, "started": 1001.0, "driver": ME.to_text()}
    assert watched.run == {**nothing, **begun, "phase": "idle", "changed": 1001.0}
    adopt(watched)
    adopted = {"plan": "trip", "version": 1, "digest": "d1", "goal": "go away"}
    assert watched.run == {**nothing, **begun, **adopted, "phase": "executing", "changed": 1002.0}
    reason = {"kind": "exception", "task": "a", "message": "no \0 seat"}
    watched.then(logged(), phase="failed", **USED)
    assert watched.run == {**nothing, **begun, **adopted, "phase": "failed", "changed": 1003.0}
    watched.then(ev.RunFinished(phase="failed", outcome="failed", reason=reason), phase="failed", **USED)
    shown = {**reason, "message": watched.run["reason"]["message"]}
    ended = {"outcome": "failed", "finished": 1004.0, "changed": 1004.0, "phase": "failed", "reason": shown}
    assert watched.run == {**begun, **adopted, **ended}
    assert shown["message"] in ("no \0 seat", "no � seat")  # PostgreSQL cannot show the character 0
    watched.then(logged(), phase="failed", **USED)
    watched.store.release(watched.lease)
    assert watched.run == {**begun, **adopted, **ended, "changed": 1005.0, "driver": None}


def test_a_goal_that_was_given_goes_before_the_plans(store: SqlStore) -> None:
    batch = Pen().batch(ev.RunStarted(goal="去上海"), **USED, plans=(PLAN,))
    store.create("r", ME, LONG, batch)
    (run,) = rows(store, "runs", "id")
    assert (run["goal"], run["labels"]) == ("去上海", {})


def test_tasks_of_the_plan_are_pending_until_something_is_said_of_them(watched: Watched) -> None:
    assert query(watched.store, "SELECT * FROM tasks WHERE run_id = 'r'") == []
    adopt(watched)
    empty = {
        "run_id": "r", "status": "PENDING", "reason": None, "visits": 0, "attempts": 0, "retries": 0, "started": None,
        "finished": None, "output": None, "error": None,
    }  # fmt: skip
    assert watched.task("a") == {**empty, "task": "a", "name": "First", "input": {"city": "${inputs.city}"}}
    two = watched.task("2")
    assert two == {**empty, "task": "2", "name": None, "input": two["input"]}
    assert two["input"]["n"] == 2**70
    assert watched.task("c") == {**empty, "task": "c", "name": None, "input": {}}


def test_a_task_is_shown_visit_by_visit(watched: Watched) -> None:
    adopt(watched)
    watched.then(
        ev.TaskStarted(task="a", visit=1, parameters={"city": "上海"}),
        tasks=(TaskRow(0, "a", "RUNNING", None, 1, 0, 0, None, 3, None),),
        **USED,
    )
    base = {"run_id": "r", "task": "a", "name": "First", "reason": None}
    running = {"status": "RUNNING", "visits": 1, "attempts": 0, "retries": 0, "started": 1003.0, "finished": None}
    nothing = {"output": None, "error": None}
    assert watched.task("a") == {**base, **running, **nothing, "input": {"city": "上海"}}
    error = ev.TaskError("exception", "no seat", "ValueError", 2)
    watched.then(
        ev.TaskEvaluated(task="a", visit=1, status="FAILED", attempts=2, retried=1, error=error),
        SETTLED,
        EVALUATED,
        tasks=(TaskRow(0, "a", "FAILED", None, 1, 2, 1, None, None, 4),),
        **USED,
    )
    failed = {"status": "FAILED", "visits": 1, "attempts": 2, "retries": 1, "started": 1003.0, "finished": 1004.0}
    assert watched.task("a") == {
        **base, **failed, "input": {"city": "上海"}, "output": None, "error": error.to_json(),
    }  # fmt: skip
    watched.then(
        ev.TaskStarted(task="a", visit=2),
        tasks=(TaskRow(0, "a", "RUNNING", None, 2, 2, 1, None, 7, None),),
        **USED,
    )
    again = {"status": "RUNNING", "visits": 2, "attempts": 2, "retries": 1, "started": 1007.0, "finished": None}
    assert watched.task("a") == {**base, **again, **nothing, "input": {"city": "${inputs.city}"}}
    watched.then(
        ev.TaskEvaluated(task="a", visit=2, status="SUCCEEDED", attempts=1, data={"seat": [1, None, "\0"]}),
        tasks=(TaskRow(0, "a", "SUCCEEDED", None, 2, 3, 1, None, None, 8),),
        **USED,
    )
    done = watched.task("a")
    assert (done["status"], done["finished"], done["attempts"], done["error"]) == ("SUCCEEDED", 1008.0, 3, None)
    assert done["output"]["seat"][:2] == [1, None]
    assert watched.task("2")["status"] == "PENDING"


def test_what_an_approval_holds_is_the_input_until_the_visit_has_its_own(watched: Watched) -> None:
    adopt(watched)
    asked = ev.ApprovalAsked(approval="p1", kind="task", task="a", visit=1, parameters={"city": "Oslo"})
    watched.then(asked, tasks=(TaskRow(0, "a", "WAITING_APPROVAL", None, 0, 0, 0, 3, None, None),), **USED)
    assert watched.task("a")["input"] == {"city": "Oslo"}
    watched.then(
        ev.TaskStarted(task="a", visit=1),
        tasks=(TaskRow(0, "a", "RUNNING", None, 1, 0, 0, None, 4, None),),
        **USED,
    )
    assert watched.task("a")["input"] == {"city": "Oslo"}
    watched.then(
        ev.TaskStarted(task="a", visit=2, parameters={"city": "Rome"}),
        tasks=(TaskRow(0, "a", "RUNNING", None, 2, 0, 0, None, 5, None),),
        **USED,
    )
    assert watched.task("a")["input"] == {"city": "Rome"}
    watched.then(
        ev.ApprovalAsked(approval="p2", kind="task", task="a", visit=3, parameters={"city": "Bonn"}),
        tasks=(TaskRow(0, "a", "WAITING_APPROVAL", None, 2, 0, 0, 6, None, None),),
        **USED,
    )
    assert watched.task("a")["input"] == {"city": "Bonn"}


def test_what_a_person_says_that_a_task_came_to_is_its_output(watched: Watched) -> None:
    adopt(watched)
    watched.then(
        ev.ApprovalDecided(approval="p1", decision="done", task="2", result={"paid": True}),
        tasks=(TaskRow(1, "2", "SUCCEEDED", None, 1, 1, 0, None, None, 3),),
        **USED,
    )
    assert watched.task("2")["output"] == {"paid": True}


def test_a_skipped_task_shows_why(watched: Watched) -> None:
    adopt(watched)
    watched.then(
        ev.TaskSkipped(task="c"),
        tasks=(
            TaskRow(2, "c", "SKIPPED", "condition", 0, 0, 0, None, None, 3),
            TaskRow(1, "2", "SKIPPED", "not_taken", 0, 0, 0, None, None, None),
        ),
        **USED,
    )
    shown = [(name, watched.task(name)["reason"], watched.task(name)["finished"]) for name in "c2"]
    assert shown == [("c", "condition", 1003.0), ("2", "not_taken", None)]


def test_after_a_new_plan_its_own_tasks_are_shown(watched: Watched) -> None:
    adopt(watched)
    kept = TaskRow(0, "a", "SUCCEEDED", None, 1, 1, 0, None, None, 3)
    gone = TaskRow(2, "c", "FAILED", None, 1, 1, 0, None, None, 4)
    ended = ev.TaskEvaluated(task="a", visit=1, status="SUCCEEDED", attempts=1, data="done")
    failed = ev.TaskEvaluated(task="c", visit=1, status="FAILED", attempts=1)
    watched.then(ended, failed, tasks=(kept, gone), **USED)
    plan = plan_of("d2", {"id": "a"}, {"id": "new"})
    more: dict[str, Any] = {"plan": "d2", "plan_version": 2, "plans": (plan,), "forgotten": (2,)}
    watched.then(ev.PlanAdopted(version=2, digest="d2"), **more)
    shown = [task for task in rows(watched.store, "tasks", "task") if task["run_id"] == "r"]
    assert [(task["task"], task["status"], task["output"]) for task in shown] == [
        ("a", "SUCCEEDED", "done"),
        ("new", "PENDING", None),
    ]
    assert (watched.run["version"], watched.run["digest"]) == (2, "d2")
    assert counts(watched.store)["task_state"] == 1


def test_events_are_shown_with_what_they_are_about(watched: Watched) -> None:
    watched.then(ev.TaskStarted(task="a", visit=3), SETTLED, ev.PauseAsked(why="\0"))
    shown = [event for event in rows(watched.store, "events", "seq") if event["run_id"] == "r"]
    assert [(one["seq"], one["at"], one["type"], one["task"], one["visit"]) for one in shown] == [
        (1, 1001.0, "run_started", None, None),
        (2, 1002.0, "task_started", "a", 3),
        (3, 1003.0, "phase_changed", None, None),
        (4, 1004.0, "pause_asked", None, None),
    ]
    assert [json.dumps(one["body"]) for one in shown[1:]] == [
        '{"task": "a", "visit": 3}', '"settled"', '{"why": "\\u0000"}',
    ]  # fmt: skip


@pytest.mark.parametrize("size", [3_000])
def test_the_tasks_of_one_run_are_found_without_a_look_at_others(store: SqlStore, size: int) -> None:
    plan = StoredPlan("big", json.dumps({"tasks": [{"id": f"t{place}"} for place in range(size)]}))
    for name in "abc":
        states = tuple(TaskRow(place, f"t{place}", "RUNNING", None, 1, 0, 0, None, 1, None) for place in range(size))
        batch: Batch = Pen(name).batch(ev.RunStarted(), plan="big", plan_version=1, plans=(plan,), tasks=states)
        store.create(name, ME, LONG, batch)
    found = query(store, "SELECT count(*), count(started) FROM tasks WHERE run_id = 'b' AND status = 'RUNNING'")
    assert found == [(size, size)]
