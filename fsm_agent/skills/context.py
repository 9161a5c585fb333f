"""What a skill gets of the run that calls it: a view of the context, a write buffer, a log and its own identity."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fsm_agent.errors import FsmAgentError, NotJson, UndeclaredWrite, VisitClosed
from fsm_agent.jsonable import copy_plain, to_plain


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """The task that a skill is called for."""

    id: str
    name: str | None = None
    description: str | None = None
    expected_output: str | None = None


class VisitPort(Protocol):
    """The engine's side of a context: reading as of the visit's start, and recording what the skill tells."""

    def read(self, key: str, default: Any) -> Any:
        """The committed value as of the visit's start, as a fresh copy."""

    def results(self) -> Mapping[str, Mapping[str, Any]]:
        """The results of the task's dependencies, as fresh copies."""

    def tell_progress(self, share: float, text: str) -> None:
        """Record progress. May be called from any thread."""

    def tell_log(self, message: str, fields: Mapping[str, Any]) -> None:
        """Record a log line. May be called from any thread."""


class SkillContext:
    """A skill's view of its run. Declare a parameter of this type (or named `context`) to get it.

    Reads see the context as it was committed when the visit began, and the attempt's own writes. Writes are kept back
    and committed only if the task succeeds.
    """

    __slots__ = (
        "_closed", "_declared", "_key", "_lock", "_port", "_results", "_writes", "attempt", "broken",
        "run_id", "task", "visit",
    )  # fmt: skip

    def __init__(
        self,
        port: VisitPort,
        task: TaskInfo,
        *,
        run_id: str,
        visit: int,
        attempt: int,
        idempotency_key: str | Callable[[], str],
        declared: Collection[str] | None = None,
    ) -> None:
        self._port = port
        self._declared = declared
        self._writes: dict[str, Any] = {}
        self._results: Mapping[str, Mapping[str, Any]] | None = None
        self._closed = False
        self._lock = threading.Lock()  # an abandoned thread may write at the very moment the attempt is closed
        self.broken: FsmAgentError | None = None
        """The first rule that a write broke; the attempt fails with it, whatever the skill does about it."""
        self.task = task
        self.run_id = run_id
        self.visit = visit
        self.attempt = attempt
        self._key = idempotency_key

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this visit, and for no other visit of any run. ASCII."""
        if not isinstance(self._key, str):
            self._key = self._key()
        return self._key

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.task.id

    @property
    def results(self) -> Mapping[str, Mapping[str, Any]]:
        """Results of the task's dependencies: id → {status, success, data, error, fallback_used, verified}."""
        if self._results is None:
            self._results = self._port.results()
        return self._results

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a context key, or the default. Changing what is returned changes nothing in the run."""
        if key in self._writes:
            return copy_plain(self._writes[key])
        return self._port.read(key, default)

    def set(self, key: str, value: Any) -> None:
        """Write a context key; committed if the task succeeds.

        Raises NotJson for what is no plain data, UndeclaredWrite, and VisitClosed once the attempt is over.
        """
        try:
            plain = self._writable(key, value)
        except FsmAgentError as error:
            self.broken = self.broken or error
            raise
        with self._lock:
            if self._closed:
                raise VisitClosed(f"task {self.task.id!r}: the attempt is over, its writes no longer count")
            self._writes[key] = plain

    def progress(self, share: float, text: str = "") -> None:
        """Tell how far the work is: a share from 0 to 1, and words."""
        if not self._closed:
            self._port.tell_progress(min(1.0, max(0.0, float(share))), str(text))

    def log(self, message: str, /, **fields: Any) -> None:
        """Add a line to the task's log. A field that is no plain data is shown as its type."""
        if not self._closed:
            self._port.tell_log(str(message), {name: _loggable(value) for name, value in fields.items()})

    def close(self) -> Mapping[str, Any]:
        """End the attempt: later writes are refused. Returns what was written."""
        with self._lock:
            self._closed = True
        return self._writes

    def _writable(self, key: str, value: Any) -> Any:
        if not isinstance(key, str):
            raise NotJson("context", type(key).__name__, "a key must be a string")
        if self._declared is not None and key not in self._declared:
            raise UndeclaredWrite(key, self._declared)
        return to_plain(value, f"context.{key}")


def _loggable(value: Any) -> Any:
    try:
        return to_plain(value)
    except NotJson:
        return f"<{type(value).__name__}>"  # a line in a log must not fail the work it tells of
