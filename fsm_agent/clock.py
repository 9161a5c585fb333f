"""Time and chance as arguments: what the engine asks instead of the system.

Nothing in the package reads the system's clock, sleeps or draws a random number except through these two.
"""

from __future__ import annotations

import asyncio
import random
import time
import weakref
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


GRAIN = 0.05
"""Long timers are late by up to this, in seconds."""

LONG = 1.0
"""From here on a timer is a long one, in seconds."""


class _SharedTimer:
    """One call among those that share a moment."""

    __slots__ = ("_callback", "_moment")

    def __init__(self, moment: set[_SharedTimer], callback: Callable[[], object]) -> None:
        self._moment = moment
        self._callback = callback

    def cancel(self) -> None:
        """Forget the call."""
        self._moment.discard(self)

    def ring(self) -> None:
        """The moment has come."""
        if self in self._moment:
            self._moment.discard(self)
            self._callback()


class SystemClock:
    """The real clock, on the running asyncio loop.

    Nearly all timers are long and are cancelled: each call of a skill has one. Those of a second and more share moments
    of 1/20 s, so that one costs an entry in a set, and not a place in the loop's heap until its time has come.
    """

    def __init__(self) -> None:
        # The loop of the last call, with its moments; in one piece, for another thread may use another loop.
        self._last: tuple[Callable[[], object], dict[int, set[_SharedTimer]]] = (_nothing, {})

    # The system's own functions, bare: they are called several times a task.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        """`loop.call_later` of the running loop; a long one is up to 1/20 s late."""
        loop = asyncio.get_running_loop()
        if delay < LONG:
            return loop.call_later(delay, callback)
        number = int((loop.time() + delay) / GRAIN) + 1
        last_loop, moments = self._last
        if last_loop() is not loop:
            moments = {}
            self._last = (weakref.ref(loop), moments)
        moment = moments.get(number)
        if moment is None:
            moment = moments[number] = set()
            loop.call_at(number * GRAIN, _ring, moments, number)
        timer = _SharedTimer(moment, callback)
        moment.add(timer)
        return timer

    async def sleep(self, delay: float) -> None:
        """`asyncio.sleep`."""
        await asyncio.sleep(delay)


def _nothing() -> None:
    """No loop yet."""


def _ring(moments: dict[int, set[_SharedTimer]], number: int) -> None:
    loop = asyncio.get_running_loop()
    for timer in list(moments.pop(number)):
        loop.call_soon(timer.ring)  # each on its own: one that raises takes no other along


class RandomSource(Protocol):
    """Where chance comes from; `random.Random` is one."""

    def random(self) -> float:
        """A number in [0, 1)."""


def system_random() -> RandomSource:
    """A random source seeded by the system."""
    return random.Random()  # noqa: S311 - it spreads waits, it keeps no secret
