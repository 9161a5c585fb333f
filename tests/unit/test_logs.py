"""Log lines from events."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
import structlog

from fsm_agent.core import events as ev
from fsm_agent.redaction import Redactor
from fsm_agent.views.logs import EventLogger, Level, configure, fields_of, level_of, redact

ERROR = ev.TaskError("exception", "bad password=abc", "ValueError", 1)
STARTED = ev.TaskStarted(seq=3, at=1_000_000_000.5, run_id="r1", task="t", visit=2, parameters={"amount": 10})


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def logged(*events: ev.Event, level: Level = "debug", secrets: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    stream = io.StringIO()
    configure("json", level, stream, Redactor(secrets))
    listener = EventLogger(level)
    for event in events:
        listener(event)
    return lines(stream)


def test_a_line_is_bound_to_run_task_visit_and_attempt() -> None:
    failed = ev.AttemptFailed(seq=4, at=0.0, run_id="r1", task="t", visit=2, attempt=1, error=ERROR, delay=0.5)
    (line,) = logged(failed)
    assert {key: line[key] for key in ("run_id", "task", "visit", "attempt")} == {
        "run_id": "r1", "task": "t", "visit": 2, "attempt": 1,
    }  # fmt: skip
    assert (line["event"], line["level"], line["error_kind"]) == ("attempt_failed", "warning", "exception")


def test_the_time_of_a_line_is_the_time_of_its_event() -> None:
    (line,) = logged(STARTED)
    assert line["timestamp"] == "2001-09-09T01:46:40.500000+00:00"


def test_no_line_has_parameters_results_or_context_values() -> None:
    changed = ev.ContextChanged(task="t", visit=1, changes={"b": "private", "a": 1})
    done = ev.TaskEvaluated(task="t", visit=1, status="SUCCEEDED", data={"x": "private"})
    begun = ev.PlanAdopted(version=1, digest="d", inputs={"x": "private"})
    found = logged(STARTED, changed, done, begun)
    assert "private" not in json.dumps(found)
    assert "amount" not in json.dumps(found)
    assert found[1]["keys"] == ["a", "b"]


def test_secrets_are_masked_in_every_line() -> None:
    found = logged(
        ev.RunStarted(run_id="r", goal="use hunter2"),
        ev.AttemptFailed(task="t", visit=1, attempt=1, error=ERROR),
        ev.TaskLogged(task="t", visit=1, attempt=1, message="hi", fields={"api_key": "k", "n": 1}),
        secrets=("hunter2",),
    )
    assert found[0]["goal"] == "use ***"
    assert found[1]["error_message"] == "bad password=***"
    assert found[2]["fields"] == {"api_key": "***", "n": 1}


def test_lines_of_other_libraries_are_masked_too() -> None:
    stream = io.StringIO()
    configure("json", "info", stream, Redactor(["hunter2"]))
    logging.getLogger("somewhere").warning("sent %s", "hunter2")
    logging.getLogger("somewhere").debug("not this")
    (line,) = lines(stream)
    assert (line["event"], line["level"]) == ("sent ***", "warning")


def test_what_other_libraries_say_of_their_every_step_is_no_line() -> None:
    stream = io.StringIO()
    configure("json", "debug", stream)
    for name in ("transitions.core", "asyncio", "httpcore.connection", "httpx", "mine"):
        logging.getLogger(name).debug("step")
        logging.getLogger(name).warning("beware")
    logging.getLogger("httpx").info("GET")
    found = [(line["event"], line["level"]) for line in lines(stream)]
    assert found == [("beware", "warning")] * 4 + [("step", "debug"), ("beware", "warning"), ("GET", "info")]


def test_all_lines_have_their_time_in_one_form() -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    EventLogger()(ev.TaskStarted(at=1_000_000_000.0, run_id="r", task="t", visit=1))
    structlog.get_logger().info("mine")
    logging.getLogger("somewhere").warning("theirs")
    for line in lines(stream):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", line["timestamp"])


def test_an_exception_is_logged_with_its_traceback_masked() -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    try:
        raise ValueError("token=abc")
    except ValueError:
        structlog.get_logger().exception("listener_failed", listener="mine")
    (line,) = lines(stream)
    assert line["listener"] == "mine"
    assert line["exception"].endswith("ValueError: token=***")


def test_the_run_that_is_bound_elsewhere_is_in_the_line() -> None:
    stream = io.StringIO()
    configure("json", "info", stream)
    structlog.contextvars.bind_contextvars(run_id="r9")
    structlog.get_logger().info("hello")
    assert lines(stream)[0]["run_id"] == "r9"


def test_a_hostile_name_cannot_command_the_console() -> None:
    stream = io.StringIO()
    configure("console", "info", stream)
    EventLogger()(ev.TaskStarted(task="\x1b[2Jt\n2026 [info] forged \x9b31m\u202e", visit=1))
    (line,) = stream.getvalue().splitlines()
    assert line.isprintable()
    assert "␛[2Jt" in line


def test_the_console_has_no_colours_where_it_is_no_terminal() -> None:
    stream = io.StringIO()
    configure("console", "info", stream)
    EventLogger()(STARTED)
    assert "\x1b" not in stream.getvalue()
    assert "task_started" in stream.getvalue()


def test_below_the_level_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_event: ev.Event) -> dict[str, Any]:
        raise AssertionError("fields were built")

    monkeypatch.setattr("fsm_agent.views.logs.fields_of", never)
    listener = EventLogger("error")
    listener(STARTED)
    listener(ev.TaskEvaluated(task="t", visit=1, status="FAILED", error=ERROR))


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (STARTED, "info"),
        (ev.Progress(task="t", visit=1, attempt=1, share=0.5), "debug"),
        (ev.TaskEvaluated(task="t", visit=1, status="SUCCEEDED", error=ERROR, fallback_used=True), "info"),
        (ev.TaskEvaluated(task="t", visit=1, status="FAILED", error=ERROR), "warning"),
        (ev.TaskEvaluated(task="a_false_decision", visit=1, status="FAILED"), "info"),
        (ev.PlanRejected(message="no"), "error"),
        (ev.RunFinished(phase="failed", outcome="failed"), "error"),
        (ev.RunFinished(phase="completed", outcome="clean"), "info"),
    ],
)
def test_an_event_has_the_level_that_it_matters(event: ev.Event, level: Level) -> None:
    assert level_of(event) == level
    assert [line["level"] for line in logged(event)] == [level]


def test_a_listener_uses_the_logger_it_was_given() -> None:
    with structlog.testing.capture_logs() as captured:
        EventLogger(log=structlog.get_logger().bind(service="shop"))(STARTED)
    assert captured[0]["service"] == "shop"


def test_using_a_listener_configures_nothing() -> None:
    handlers = logging.getLogger().handlers[:]
    EventLogger(log=structlog.wrap_logger(structlog.testing.CapturingLogger()))(STARTED)
    assert not structlog.is_configured()
    assert logging.getLogger().handlers == handlers


def test_the_processor_changes_no_dict_that_it_got() -> None:
    fields = {"password": "x", "deep": {"token": "y"}}
    assert redact(Redactor())(None, "info", fields) == {"password": "***", "deep": {"token": "***"}}
    assert fields == {"password": "x", "deep": {"token": "y"}}


def test_every_kind_of_event_makes_a_line() -> None:
    samples = {
        "version": 1, "digest": "d", "message": "m", "trigger": "start", "source": "idle", "dest": "planning",
        "task": "t", "visit": 1, "attempt": 1, "error": ERROR, "why": "timeout", "seconds": 1.0, "status": "FAILED",
        "changes": {"a": 1}, "setting": "max_visits", "count": 3, "approval": "a", "kind": "task",
        "decision": "approved", "share": 0.5, "filter": "f", "when": "before", "what": "changed", "phase": "failed",
        "outcome": "failed", "driver": "d", "upto": 3, "then": "again",
    }  # fmt: skip
    kinds = get_args(ev.AnyEvent)
    events = [
        kind(**{field.name: samples[field.name] for field in msgspec.structs.fields(kind) if field.required})
        for kind in kinds
    ]
    assert [line["event"] for line in logged(*events)] == [event.type for event in events]


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (ev.RollbackStarted(task="t"), "warning"),
        (ev.CompensationStarted(task="t", visit=1, parameters={"a": "private"}), "info"),
        (ev.Compensated(task="t", visit=1, status="SUCCEEDED", data="private", changes={"k": "private"}), "info"),
        (ev.Compensated(task="t", visit=1, status="FAILED", error=ERROR), "error"),
        (ev.RolledBack(task="t", kept={"k": "out"}), "info"),
    ],
)
def test_a_rollback_is_logged_without_data_and_a_failed_undoing_is_an_error(event: ev.Event, level: str) -> None:
    assert level_of(event) == level
    assert "private" not in str(fields_of(event))
