"""Listeners: frozen records of everything, in their order; a bad one is the listener's own fault alone."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from fsm_agent import Event
from tests.engine.support import basic, drive, plan_of, until

PLAN = plan_of({"id": "a", "skill": "fail", "parameters": {"n": 1}}, {"id": "b", "dependencies": ["a"]})


def test_listeners_get_every_event_of_a_run_in_its_order() -> None:
    made = basic()
    made.run(PLAN, run_id="r")
    assert [event.seq for event in made.events] == list(range(1, len(made.events) + 1))
    assert {event.run_id for event in made.events} == {"r"}
    phases = [(event.source, event.dest) for event in made.of("phase_changed")]
    assert phases == [
        ("idle", "planning"), ("planning", "executing"), ("executing", "evaluating"), ("evaluating", "executing"),
        ("executing", "evaluating"), ("evaluating", "completed"),
    ]  # fmt: skip
    assert [kind for kind in made.types() if kind != "phase_changed"] == [
        "run_started", "plan_adopted", "task_started", "attempt_failed", "attempt_started", "task_evaluated",
        "task_started", "task_evaluated", "criteria_judged", "run_finished",
    ]  # fmt: skip


def test_events_carry_the_time_of_the_clock() -> None:
    made = basic()
    made.run(plan_of({"id": "a", "skill": "nap", "parameters": {"s": 30}}))
    (started,), (evaluated,) = made.of("task_started"), made.of("task_evaluated")
    assert evaluated.at - started.at == 30


def test_an_event_is_frozen() -> None:
    made = basic()
    made.run(PLAN)
    for event in made.events:
        with pytest.raises(AttributeError):
            event.seq = 0  # type: ignore[misc] # that it cannot be set is the point


def test_a_listener_that_raises_is_logged_with_its_name_and_fails_no_task(caplog: pytest.LogCaptureFixture) -> None:
    made = basic()

    def broken_listener(event: Event) -> None:
        raise RuntimeError("the listener broke")

    heard: list[Event] = []
    made.engine.add_listener(broken_listener)
    made.engine.add_listener(heard.append)
    with caplog.at_level(logging.ERROR, "fsm_agent"):
        result = made.run(PLAN)
    assert (result.phase, result.outcome) == ("completed", "clean")
    assert heard == made.events
    assert len(caplog.records) == len(heard)
    assert "broken_listener" in caplog.records[0].getMessage()
    assert "run_started" in caplog.records[0].getMessage()


def test_a_listener_that_is_an_object_is_named_by_its_class(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def __call__(self, event: Event) -> None:
            raise RuntimeError("broke")

    made = basic(listeners=[Broken()])
    with caplog.at_level(logging.ERROR, "fsm_agent"):
        made.run(PLAN)
    assert "Broken" in caplog.records[0].getMessage()


def test_a_listener_that_cancels_the_run_hears_of_it_after_the_event_that_made_it_do_so() -> None:
    made = basic()
    doings: list[asyncio.Task[None]] = []

    def cancels(event: Event) -> None:
        if event.type == "task_started":
            doings.append(asyncio.get_running_loop().create_task(made.engine.cancel("r")))

    made.engine.add_listener(cancels)
    result = made.run(plan_of({"id": "a", "skill": "nap", "parameters": {"s": 60}}), run_id="r")
    assert result.phase == "cancelled"
    assert made.types().index("cancel_asked") > made.types().index("task_started")


def test_one_that_is_added_later_hears_of_the_runs_that_start_from_then_on() -> None:
    made = basic()
    heard: list[Any] = []

    async def main() -> None:
        first = asyncio.create_task(made.engine.run(PLAN, run_id="first"))
        await until(lambda: made.events)
        made.engine.add_listener(heard.append)
        await made.engine.run(PLAN, run_id="second")
        await first

    drive(main())
    assert {event.run_id for event in heard} == {"second"}
