"""Time and chance as arguments: what the engine asks instead of the system.

Nothing in the package reads the system's clock, sleeps or draws a random number except through these two.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that is to come, as `asyncio.TimerHandle`."""

    def cancel(self) -> None:
        """Forget the call. Does nothing when it has been made."""


class Clock(Protocol):
    """Where time comes from. All figures are seconds."""

    def now(self) -> float:
        """The time of day, in seconds since 1970 (UTC), for records."""

    def monotonic(self) -> float:
        """A time that never goes back, for durations and deadlines."""

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` in the running event loop after `delay` seconds."""

    async def sleep(self, delay: float) -> None:
        """Wait `delay` seconds."""


class SystemClock:
    """The real clock, on the running asyncio loop."""

    def now(self) -> float:
        """The time of day, in seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds on the system's monotonic clock."""
        return time.monotonic()

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        """`loop.call_later` of the running loop."""
        return asyncio.get_running_loop().call_later(delay, callback)

    async def sleep(self, delay: float) -> None:
        """`asyncio.sleep`."""
        await asyncio.sleep(delay)


class RandomSource(Protocol):
    """Where chance comes from; `random.Random` is one."""

    def random(self) -> float:
        """A number in [0, 1)."""


def system_random() -> RandomSource:
    """A random source seeded by the system."""
    return random.Random()  # noqa: S311 - it spreads waits, it keeps no secret
