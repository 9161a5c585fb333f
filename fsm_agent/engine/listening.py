"""Telling listeners what happened, each event in its turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from fsm_agent.core.events import Event

Listener = Callable[[Event], object]
"""Called with every event, as a frozen record."""

_log = logging.getLogger("fsm_agent.engine")


class Listeners:
    """The listeners of one run. One that raises is logged with its name, and that is all."""

    __slots__ = ("_listeners", "_telling", "_waiting", "any")

    def __init__(self, listeners: Iterable[Listener]) -> None:
        self._listeners = list(listeners)
        self.any = bool(self._listeners)
        """Whether there is anyone to tell."""
        self._waiting: list[Event] | None = None
        self._telling = False

    def add(self, listener: Listener) -> None:
        """Tell one more."""
        self._listeners.append(listener)
        self.any = True

    def tell(self, event: Event) -> None:
        """Tell all of them. What a listener itself makes happen is told after this event."""
        if self._waiting is None:
            self._waiting = []
        self._waiting.append(event)
        if self._telling:
            return
        self._telling = True
        try:
            while self._waiting:
                told = self._waiting.pop(0)
                for listener in self._listeners:
                    _tell(listener, told)
        finally:
            self._telling = False


def _tell(listener: Listener, event: Event) -> None:
    try:
        listener(event)
    except BaseException:  # noqa: BLE001 - a listener's fault is not the run's, whatever it raises
        name = getattr(listener, "__qualname__", type(listener).__qualname__)
        _log.exception("listener %s failed on event %s", name, event.type)
