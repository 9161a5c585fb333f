"""While runs of a store are driven: their leases are renewed, and what others ask of them is passed on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from fsm_agent.clock import Clock
from fsm_agent.errors import LeaseLost, StoreError
from fsm_agent.journal.records import Lease, Request
from fsm_agent.journal.store import Store

T = TypeVar("T")

_log = logging.getLogger("fsm_agent.engine")

POLL: Final = 0.2
"""How often it is looked whether somebody asked for something, in seconds."""


class Attended(Protocol):
    """A run that is driven here."""

    @property
    def run_id(self) -> str:
        """The run's id."""

    @property
    def lease(self) -> Lease | None:
        """The right to write to it; None before its first commit."""

    def answer(self, request: Request) -> None:
        """Do what somebody asked for."""

    def lost(self, error: Exception) -> None:
        """The run is another process's by now."""


class Attendant:
    """One for each engine that has a store. It works only while there is a run to attend to."""

    def __init__(self, store: Store, clock: Clock, ttl: float, do: Callable[..., Any]) -> None:
        """`ttl` is how long a lease holds, in seconds; `do(function, *arguments)` awaits a call of the store."""
        self._store = store
        self._clock = clock
        self._ttl = ttl
        self._do = do
        self._runs: dict[str, Attended] = {}
        self._task: asyncio.Task[None] | None = None
        self._news: int | None = None

    def begin(self, run: Attended) -> None:
        """Attend to a run from now on."""
        self._runs[run.run_id] = run
        self._news = None
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    def end(self, run: Attended) -> None:
        """The run is over, or rests."""
        if self._runs.get(run.run_id) is run:
            del self._runs[run.run_id]
        if not self._runs and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _work(self) -> None:
        renewed = self._clock.monotonic()
        while True:
            await self._clock.sleep(POLL)
            try:
                now = self._clock.monotonic()
                if now - renewed >= self._ttl / 3:
                    await self._renew()
                    renewed = now  # else it is tried again at the next look: the leases must not run out
                await self._look()
            except StoreError as error:
                _log.debug("the store cannot be read at the moment: %s", error.message)

    async def _renew(self) -> None:
        held = {run.lease: run for run in self._runs.values() if run.lease is not None}
        for lease in await self._do(self._store.renew, list(held), self._ttl):
            held[lease].lost(LeaseLost(lease.run_id))

    async def _look(self) -> None:
        news = await self._do(self._store.news)
        if news == self._news:
            return
        requests: list[Request] = await self._do(self._store.requests, tuple(self._runs))
        self._news = news
        for request in requests:
            run = self._runs.get(request.run_id)
            if run is not None:
                _pass_on(run, request)


def _pass_on(run: Attended, request: Request) -> None:
    try:
        run.answer(request)
    except Exception as fault:  # noqa: BLE001 - it is raised where the run is awaited, and stops no other run
        run.lost(fault)
