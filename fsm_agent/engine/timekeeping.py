"""The clocks of one run: its deadline, which stands still in *paused*, and the time for cleaning up."""

from __future__ import annotations

from collections.abc import Callable

from fsm_agent.clock import Clock, Timer
from fsm_agent.core.events import LimitPassed
from fsm_agent.core.run import Run


class Timekeeper:
    """Tells when a bound in time was passed."""

    __slots__ = ("_armed_at", "_cleanup", "_clock", "_deadline", "_left", "_run", "_tell")

    def __init__(self, run: Run, clock: Clock, tell: Callable[[LimitPassed], None]) -> None:
        self._run = run
        self._clock = clock
        self._tell = tell
        self._deadline: Timer | None = None
        self._cleanup: Timer | None = None
        self._left: float | None = None
        self._armed_at = 0.0

    def arm(self) -> None:
        """The run goes on: its deadline comes nearer."""
        limit = self._limit()
        if limit is None or self._deadline is not None:
            return
        if self._left is None:
            self._left = limit
        self._armed_at = self._clock.monotonic()
        self._deadline = self._clock.call_later(max(0.0, self._left), lambda: self._passed("limits.deadline", limit))

    def disarm(self) -> None:
        """The run is paused, or over."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self._left = (self._left or 0.0) - (self._clock.monotonic() - self._armed_at)

    def begin_cleanup(self) -> None:
        """The first finalizer starts."""
        if self._cleanup is None:
            limit = self._run.compiled.plan.limits.cleanup_timeout
            self._cleanup = self._clock.call_later(limit, lambda: self._passed("limits.cleanup_timeout", limit))

    def close(self) -> None:
        """No more timers."""
        self.disarm()
        if self._cleanup is not None:
            self._cleanup.cancel()

    def _limit(self) -> float | None:
        started = self._run.started
        if started is not None and started.deadline is not None:
            return started.deadline
        return self._run.compiled.plan.limits.deadline if self._run.plan_valid else None

    def _passed(self, setting: str, limit: float) -> None:
        if not self._run.final:
            event = LimitPassed(setting="limits.deadline", count=limit)
            if setting != "limits.deadline":
                event = LimitPassed(setting="limits.cleanup_timeout", count=limit)
            self._tell(event)
