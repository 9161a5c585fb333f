"""The clocks of one run: its deadline, which stands still in *paused*, and the time for cleaning up."""

from __future__ import annotations

from collections.abc import Callable

from fsm_agent.clock import Clock, Timer
from fsm_agent.core.events import LimitPassed
from fsm_agent.core.run import Run

Tell = Callable[[LimitPassed], None]


class Timekeeper:
    """Tells when a bound in time was passed."""

    __slots__ = ("_armed_at", "_cleanup", "_clock", "_deadline", "_left", "_run")

    def __init__(self, run: Run, clock: Clock) -> None:
        self._run = run
        self._clock = clock
        self._deadline: Timer | None = None
        self._cleanup: Timer | None = None
        self._left: float | None = None
        self._armed_at = 0.0

    def arm(self, tell: Tell) -> None:
        """The run goes on: its deadline comes nearer."""
        limit = self._limit()
        if limit is None or self._deadline is not None:
            return
        if self._left is None:
            self._left = limit - self._run.active_for  # what other processes have used up
        self._armed_at = self._clock.monotonic()
        self._deadline = self._clock.call_later(max(0.0, self._left), lambda: self._passed(limit, tell))

    def disarm(self) -> None:
        """The run is paused, or over."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self._left = (self._left or 0.0) - (self._clock.monotonic() - self._armed_at)

    def begin_cleanup(self, tell: Tell) -> None:
        """The first finalizer starts."""
        if self._cleanup is None:
            limit = self._run.compiled.plan.limits.cleanup_timeout
            event = LimitPassed(setting="limits.cleanup_timeout", count=limit)
            self._cleanup = self._clock.call_later(limit, lambda: None if self._run.final else tell(event))

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

    def _passed(self, limit: float, tell: Tell) -> None:
        if not self._run.final:
            tell(LimitPassed(setting="limits.deadline", count=limit))
