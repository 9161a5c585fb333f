"""A journal that lives as long as the process: for runs without a store."""

from __future__ import annotations

from collections.abc import Sequence

from fsm_agent.core.events import Event


class MemoryJournal:
    """The events of one run, in their order."""

    durable = False

    def __init__(self) -> None:
        self._events: list[Event] = []
        self.append = self._events.append

    @property
    def events(self) -> Sequence[Event]:
        """All events so far."""
        return self._events
