"""Before anything is relied on it is durable: commits, tries again where the store is busy or in trouble, gives up.

One for each run that has a store. Nothing of the run is started, and nobody is told of an event, before the event is
in the store. While a commit is under way, or the store in trouble, the run stands still; calls that are under way may
end, and what they came to is written with the next attempt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Final, Protocol

from fsm_agent.clock import Clock, Timer
from fsm_agent.core.events import Event
from fsm_agent.errors import StoreBusy, StoreError, StoreUnavailable
from fsm_agent.journal.writer import StoredJournal

_log = logging.getLogger("fsm_agent.engine")

SHORTEST: Final = 0.002
LONGEST: Final = 0.5
"""The first and the longest wait between attempts to write, in seconds; each is twice the one before."""
LATER: Final = 0.1
"""Within so many seconds a skill's progress is in the store, though nothing else happens."""


class LedgerHost(Protocol):
    """What the ledger needs of the driver."""

    clock: Clock

    def committed(self, events: Sequence[Event]) -> None:
        """These are durable: tell of them, and do what waited for that."""

    def take_in_ended(self) -> None:
        """Record what has ended meanwhile, so that it is written with the rest."""

    @property
    def calls_under_way(self) -> bool:
        """Whether calls may still end whose outcome would be lost."""

    def wake(self) -> None:
        """Go on."""

    def failed(self, fault: BaseException) -> None:
        """The run cannot go on here."""


class Ledger:
    """The commits of one run."""

    __slots__ = ("_began", "_executor", "_host", "_journal", "_lazy", "_wait", "_waiting", "is_writing")

    def __init__(self, host: LedgerHost, journal: StoredJournal, executor: Executor | None) -> None:
        """`executor` makes the commits where a network is between; without one they are made here and now."""
        self._host = host
        self._journal = journal
        self._executor = executor
        self._began: float | None = None
        """When the store first could not be written to, if it cannot."""
        self._wait = SHORTEST
        self._waiting: Timer | None = None
        self._lazy: Timer | None = None
        self.is_writing = False
        """Whether the run stands still until a commit has succeeded."""

    def settle(self) -> bool:
        """Make all that was recorded durable. False if that takes time: the host is woken then."""
        if self.is_writing:
            return False
        if not self._journal.pending:
            return True
        if self._lazy is not None:
            self._lazy.cancel()
            self._lazy = None
        self._journal.prepare()
        self.is_writing = True
        self._write(self._written)
        return not self.is_writing

    def later(self) -> None:
        """What was recorded is to be durable soon; nothing waits for it."""
        if self._lazy is None and not self.is_writing:
            self._lazy = self._host.clock.call_later(LATER, self._now_then)

    def _now_then(self) -> None:
        self._lazy = None
        self._host.wake()

    # Writing --------------------------------------------------------------------------------------------------------

    def _write(self, then: Callable[[], None]) -> None:
        if self._executor is not None:
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._executor, self._journal.write)
            future.add_done_callback(self._answered)
            return
        try:
            self._journal.write()
        except StoreError as error:
            self._trouble(error)
        except BaseException as fault:  # noqa: BLE001 - it is raised where the run is awaited
            self._host.failed(fault)
        else:
            then()

    def _answered(self, future: asyncio.Future[None]) -> None:
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            self._written_later()
        elif isinstance(error, StoreError):
            self._trouble(error)
        else:
            self._host.failed(error)

    def _written_later(self) -> None:
        """The same, where the run has stood still meanwhile, and nobody is there to hear of an error."""
        try:
            self._written()
        except BaseException as fault:  # noqa: BLE001 - see above
            self._host.failed(fault)
        else:
            self._host.wake()

    def _written(self) -> None:
        if self._began is not None:
            _log.warning("run %s: the store takes what is written again", self._journal.run_id)
        self._began = None
        self._wait = SHORTEST
        self.is_writing = False
        events = self._journal.written()
        snapshot = self._journal.snapshot()
        if snapshot is not None and self._executor is not None:
            self._executor.submit(self._journal.keep, snapshot)
        elif snapshot is not None:
            self._journal.keep(snapshot)
        self._host.committed(events)

    # Trouble --------------------------------------------------------------------------------------------------------

    def _trouble(self, error: StoreError) -> None:
        """Wait, and try again: for as long as the store's patience lasts, or calls are under way."""
        now = self._host.clock.monotonic()
        if self._began is None:
            self._began = now
            if not isinstance(error, StoreBusy):
                _log.warning("run %s stands still: %s", self._journal.run_id, error.message)
        can_pass = isinstance(error, (StoreBusy, StoreUnavailable))
        if not can_pass or (now - self._began >= self._journal.store.patience and not self._host.calls_under_way):
            self._host.failed(error)
            return
        self._waiting = self._host.clock.call_later(self._wait, self._again)
        self._wait = min(self._wait * 2, LONGEST)

    def _again(self) -> None:
        self._waiting = None
        try:
            self._host.take_in_ended()
            self._journal.prepare()
        except BaseException as fault:  # noqa: BLE001 - a timer's errors would be lost
            self._host.failed(fault)
            return
        self._write(self._written_later)

    def close(self) -> None:
        """Nothing more is written."""
        for timer in (self._waiting, self._lazy):
            if timer is not None:
                timer.cancel()
