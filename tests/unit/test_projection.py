"""The rows by which people see how tasks stand: only what has changed, and nothing for what never moved."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from fsm_agent.core import events as ev
from fsm_agent.core.run import Run
from fsm_agent.journal.projection import Projection
from fsm_agent.journal.records import TaskRow
from fsm_agent.plan.loader import check_plan

PLAN = {"tasks": [{"id": "a", "skill": "s"}, {"id": "b", "skill": "s", "dependencies": ["a"]}]}


class Watched:
    """A run, and its projection."""

    def __init__(self) -> None:
        compiled = check_plan(PLAN).compiled
        assert compiled is not None
        self.run = Run("r", lambda _: compiled)
        self.projection = Projection(self.run)

    def take(self, *events: ev.Event) -> tuple[TaskRow, ...]:
        """Take these in, and commit."""
        stamped = []
        for event in events:
            stamped.append(structs.replace(event, seq=self.run.seq + 1, run_id="r"))
            self.run.evolve(stamped[-1])
        self.projection.note(stamped)
        rows = self.projection.rows()
        self.projection.written()
        return rows


def begun() -> Watched:
    watched = Watched()
    watched.take(
        ev.RunStarted(),
        ev.PhaseChanged(trigger="start", source="idle", dest="planning"),
        ev.PlanAdopted(version=1, digest="d"),
        ev.PhaseChanged(trigger="planned", source="planning", dest="executing", guard="plan_is_valid"),
    )
    return watched


def evaluated(task: str, **words: Any) -> ev.TaskEvaluated:
    return ev.TaskEvaluated(task=task, visit=1, status="SUCCEEDED", attempts=1, **words)


def test_a_task_that_only_waits_has_no_row() -> None:
    assert begun().take() == ()


def test_a_start_and_an_end_have_one_row_each_that_points_to_its_event() -> None:
    watched = begun()
    started = watched.take(ev.TaskStarted(task="a", visit=1))
    assert started == (TaskRow(0, "a", "RUNNING", None, 1, 0, 0, None, 5, None),)
    ended = watched.take(evaluated("a", data={"large": "x"}))
    assert ended == (TaskRow(0, "a", "SUCCEEDED", None, 1, 1, 0, None, None, 6),)


def test_what_was_written_is_not_written_again() -> None:
    watched = begun()
    watched.take(ev.TaskStarted(task="a", visit=1))
    assert watched.take() == ()


def test_rows_that_could_not_be_written_come_again() -> None:
    watched = begun()
    event = structs.replace(ev.TaskStarted(task="a", visit=1), seq=watched.run.seq + 1)
    watched.run.evolve(event)
    watched.projection.note([event])
    assert watched.projection.rows() == watched.projection.rows() != ()
