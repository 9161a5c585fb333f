"""Log lines from events. The library only has a listener to offer; `configure` is for the command line alone."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO, get_args

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from fsm_agent.core.events import (
    AnyEvent,
    AttemptFailed,
    CallAbandoned,
    Compensated,
    ContextChanged,
    DecisionIgnored,
    Event,
    LimitPassed,
    LoopBlocked,
    PhaseChanged,
    PlanRejected,
    Progress,
    RollbackStarted,
    RunFinished,
    TaskError,
    TaskEvaluated,
    TaskInterrupted,
    VisitDiscarded,
    VisitRefused,
)
from fsm_agent.redaction import Redactor
from fsm_agent.views.text import harmless, one_line

Format = Literal["console", "json"]
Level = Literal["debug", "info", "warning", "error"]
Fields = MutableMapping[str, Any]

_NUMBERS: Final[dict[Level, int]] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_LEVELS: Final[dict[type[Event], Level]] = {
    PhaseChanged: "debug",
    ContextChanged: "debug",
    Progress: "debug",
    AttemptFailed: "warning",
    CallAbandoned: "warning",
    TaskInterrupted: "warning",
    DecisionIgnored: "warning",
    LoopBlocked: "warning",
    VisitRefused: "warning",
    VisitDiscarded: "warning",
    RollbackStarted: "warning",
    LimitPassed: "warning",
    PlanRejected: "error",
}
_VARYING: Final = frozenset({TaskEvaluated, Compensated, RunFinished})
"""Events whose level depends on what they say."""
_DATA: Final = frozenset({"data", "parameters", "inputs", "result", "output", "problems"})
"""Fields that hold a plan's data: they may be large and are nobody's business, so no line has them."""

_LEAST_OF_OTHERS: Final = {
    "asyncio": logging.WARNING, "httpcore": logging.WARNING, "httpx": logging.INFO, "psycopg": logging.ERROR,
    "transitions": logging.WARNING,
}  # fmt: skip
"""The least level of lines of libraries that say much."""


def redact(redactor: Redactor) -> Processor:
    """A processor that takes secrets out of a line, wherever they stand in it."""

    def processor(_logger: Any, _method: str, fields: Fields) -> Fields:
        redacted: Fields = redactor.value(fields)
        return redacted

    return processor


def configure(
    form: Format = "console", level: Level = "info", stream: TextIO | None = None, redactor: Redactor | None = None
) -> None:
    """Set up logging for this process: structlog's lines and those of the standard library, to `stream` (stderr).

    Secrets that `redactor` knows, and what well-known names hold, are shown as ***.
    """
    out = stream if stream is not None else sys.stderr
    shared = _shared(redactor or Redactor())
    last = _last(form, out)
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(_NUMBERS[level]),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler = logging.StreamHandler(out)
    handler.addFilter(_is_worth_a_line)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=[remove, *last], foreign_pre_chain=shared))
    logging.basicConfig(handlers=[handler], level=_NUMBERS[level], force=True)


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """A filter for lines of other libraries: what these say of their every step helps nobody."""
    return record.levelno >= _LEAST_OF_OTHERS.get(record.name.partition(".")[0], logging.NOTSET)


def _shared(redactor: Redactor) -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        _stamp,
        structlog.processors.format_exc_info,
        redact(redactor),
    ]


_now = structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%S.%f+00:00", utc=True)
"""The time as lines of events have it."""


def _stamp(logger: Any, method: str, fields: Fields) -> Fields:
    return fields if "timestamp" in fields else _now(logger, method, fields)


def _last(form: Format, stream: TextIO) -> list[Processor]:
    if form == "json":
        return [structlog.processors.JSONRenderer()]
    # The plain formatter: the others show local variables, which may be secrets.
    plain = structlog.dev.plain_traceback
    return [_harmless, structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=plain)]


def _harmless(_logger: Any, _method: str, fields: Fields) -> Fields:
    """A console obeys control characters, and what comes from data must not command it."""
    return {key: _shown(key, value) if isinstance(value, str) else value for key, value in fields.items()}


def _shown(key: str, text: str) -> str:
    return harmless(text) if key == "exception" else one_line(text)


class EventLogger:
    """A listener that makes a log line of each event, bound to its run, task, visit and attempt.

    Where the event's level is below `level`, nothing is built. Results, parameters and context values are in no line.
    """

    def __init__(self, level: Level = "info", log: FilteringBoundLogger | None = None) -> None:
        self._least = _NUMBERS[level]
        self._log = log
        self._silent = frozenset(
            kind
            for kind in get_args(AnyEvent)
            if kind not in _VARYING and _NUMBERS[_LEVELS.get(kind, "info")] < self._least
        )

    def __call__(self, event: Event) -> None:
        """Log one event."""
        if type(event) in self._silent:
            return
        level = level_of(event)
        if _NUMBERS[level] >= self._least:
            log = self._log if self._log is not None else structlog.get_logger()
            getattr(log, level)(event.type, **fields_of(event))


def level_of(event: Event) -> Level:
    """How much an event matters."""
    if isinstance(event, TaskEvaluated):
        # A failure without an error is a decision that came out false.
        return "warning" if event.status == "FAILED" and event.error is not None else "info"
    if isinstance(event, Compensated):
        return "error" if event.status == "FAILED" else "info"
    if isinstance(event, RunFinished):
        return "error" if event.phase == "failed" else "info"
    return _LEVELS.get(type(event), "info")


def fields_of(event: Event) -> dict[str, Any]:
    """What a line says of an event: what it is bound to, and its facts, without the plan's data."""
    fields: dict[str, Any] = {"timestamp": datetime.fromtimestamp(event.at, UTC).isoformat(timespec="microseconds")}
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if name in _DATA or name == "at" or value is None or value in ("", (), {}):
            continue
        if isinstance(value, TaskError):
            fields |= {f"{name}_kind": value.kind, f"{name}_type": value.type, f"{name}_message": value.message}
        elif name == "changes":
            fields["keys"] = sorted(value)
        else:
            fields[name] = value
    return fields
