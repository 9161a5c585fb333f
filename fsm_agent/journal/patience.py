"""Waiting for others who write. It is real time that passes, whatever the clock says: they are other processes."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

from fsm_agent.errors import StoreBusy

_FIRST, _LONGEST = 0.001, 0.02
"""Pauses between two tries, in seconds."""

T = TypeVar("T")


def patiently(call: Callable[[], T], patience: float) -> T:
    """The call, again and again for up to `patience` seconds while it raises StoreBusy."""
    deadline, pause = monotonic() + patience, _FIRST
    while True:
        try:
            return call()
        except StoreBusy:
            if monotonic() + pause > deadline:
                raise
        sleep(pause)
        pause = min(2 * pause, _LONGEST)
