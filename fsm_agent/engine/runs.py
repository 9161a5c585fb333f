"""The runs that an engine has in hand: live ones, and paused ones that someone may resume."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from fsm_agent.clock import Clock
from fsm_agent.core.events import CancelAsked, Event, TakenUpFor
from fsm_agent.core.result import RunResult, result_of
from fsm_agent.core.run import Run
from fsm_agent.engine.asking import answer
from fsm_agent.engine.driver import Driver
from fsm_agent.engine.keeping import Keeper, waiting_for
from fsm_agent.errors import (
    RunExists,
    RunNotActive,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    UnknownRun,
    UsageError,
)
from fsm_agent.journal.memory import MemoryJournal
from fsm_agent.journal.records import Lease, Request
from fsm_agent.journal.writer import StoredJournal


@dataclass(slots=True, eq=False)
class Handle:
    """One run in hand."""

    run: Run
    driver: Driver
    clock: Clock
    driven: bool = False
    elapsed: float = 0.0
    keeper: Keeper | None = None
    """The store's door, where the run has a store."""
    answered: frozenset[int] = frozenset()
    """Requests from the store that were taken up."""

    def result(self) -> RunResult:
        """The run's result, or its present state."""
        return result_of(self.run, resumable=self.driver.journal.durable, elapsed=round(self.elapsed, 6))

    async def drive(self) -> RunResult:
        """Go on to the end or to a pause. Cancelling the awaiting task cancels the run, which still cleans up."""
        began = self.begin()
        try:
            await self.driver.drive()
        except BaseException:
            await self.leave()
            raise
        finally:
            await self.end(began)
        return self.result()

    # What its store needs -------------------------------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id

    @property
    def lease(self) -> Lease | None:
        """The right to write to it; None before its first commit."""
        journal = self.driver.journal
        return journal.lease if isinstance(journal, StoredJournal) else None

    def take_up(
        self,
        owner: str,
        why: TakenUpFor,
        secrets: Mapping[str, Any],
        requests: Iterable[Request],
        wish: CancelAsked | None,
    ) -> None:
        """Go on where another process left the run. `secrets` are its secret inputs, `requests` what was asked of it,
        `wish` what is wanted of it now.
        """
        run, driver = self.run, self.driver
        run.secrets = dict(secrets)
        run.inputs.update(secrets)
        driver.secrets.keep(secrets)
        if run.plan_version:
            driver.cancel_grace = run.compiled.plan.limits.cancel_grace
        with driver.one_reaction():
            if wish is not None:
                driver.record(wish)
            driver.take_up(owner, why)
            for request in requests:
                self.answer(request, is_stale=why == "resume" and request.kind == "pause")
            if run.phase == "paused" and not (run.cancel_asked or run.limit_passed):
                driver.fire_resume()

    def answer(self, request: Request, *, is_stale: bool = False) -> None:
        """Do what somebody asked for through the store, once."""
        if request.number not in self.answered and not self.run.final:
            self.answered |= {request.number}
            answer(self.driver, request, is_stale=is_stale)

    async def at_rest(self, trouble: StoreError) -> RunResult:
        """The run as its journal has it, which cannot be written to; as it is known here, where that cannot be read.

        Raises the trouble where there is no journal.
        """
        if self.lease is None or self.keeper is None:
            raise trouble
        try:
            kept = await self.keeper.shown(self.run_id)
        except (StoreBusy, StoreUnavailable):
            kept = structs.replace(self.result(), outcome="paused")
        return waiting_for(kept, "store", trouble)

    def lost(self, error: Exception) -> None:
        """The run is another process's by now."""
        self.driver.failed(error)

    def begin(self) -> float:
        """Someone drives the run from now on; returns the moment. Raises RunNotActive if someone does already."""
        if self.driven:
            raise RunNotActive(f"run {self.run.run_id!r} is driven already", hint="use pause, cancel or decide")
        self.driven = True
        if self.keeper is not None:
            self.keeper.attendant.begin(self)
        return self.clock.monotonic()

    async def end(self, began: float) -> None:
        """Nobody drives the run any more."""
        self.driven = False
        self.elapsed += self.clock.monotonic() - began
        if self.run.final or self.keeper is not None:
            self.driver.close()
        if self.keeper is not None:
            self.keeper.attendant.end(self)
            if isinstance(self.driver.journal, StoredJournal):
                await self.keeper.do(self.driver.journal.close)

    async def leave(self) -> None:
        """Whoever drives is leaving: the run is cancelled, with its finalizers. A second time it is just dropped."""
        try:
            if not (self.run.final or self.driver.faulty):
                if not self.run.cancel_asked:
                    self.driver.record(CancelAsked(why="the task that drove the run was cancelled"))
                await self.driver.drive()
        finally:
            self.driver.close()


class Runs:
    """All runs in hand, by id."""

    def __init__(self) -> None:
        self._handles: dict[str, Handle] = {}

    def __iter__(self) -> Iterator[Handle]:
        return iter(list(self._handles.values()))

    def ids(self) -> tuple[str, ...]:
        """The ids of all runs in hand."""
        return tuple(self._handles)

    def add(self, handle: Handle) -> None:
        """Take a run in hand. Raises RunExists."""
        run_id = handle.run.run_id
        if run_id in self._handles:
            raise RunExists(f"a run {run_id!r} is in hand already", hint="leave run_id out, or choose another")
        self._handles[run_id] = handle

    def get(self, run_id: str) -> Handle:
        """The run of that id. Raises UnknownRun."""
        handle = self._handles.get(run_id)
        if handle is None:
            raise UnknownRun(f"no run {run_id!r} is in hand here", hint="it has ended, or another engine has it")
        return handle

    def let_go(self, handle: Handle) -> None:
        """Forget a run that is over; a paused one stays, unless it is in a store."""
        if handle.run.final or handle.run.phase != "paused" or handle.keeper is not None:
            self._handles.pop(handle.run.run_id, None)


@dataclass(slots=True, eq=False)
class RunStream:
    """The events of a run as it goes: `async for event in stream`. The run goes on as they are taken.

    `run_id` is known from the start, `result` once the events are at an end. Leaving the loop early and closing the
    stream (`aclose`, or `async with`) cancels the run.
    """

    handle: Handle
    runs: Runs
    result: RunResult | None = None
    _events: AsyncIterator[Event] | None = None
    _begun: bool = False

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.handle.run.run_id

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events. Raises UsageError for a second consumer."""
        if self._begun or self.result is not None:
            raise UsageError("a stream has one consumer, once", hint="add a listener, or start another run")
        if self._events is None:
            self._events = self._drive()
        return self._events

    async def __aenter__(self) -> RunStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel the run if it still goes on. While another task takes its events, that one sees the run to its end."""
        events: Any = self._events
        if events is not None and events.ag_running:
            if not self.handle.run.final:
                self.handle.driver.tell(CancelAsked(why="the stream was closed"))
        elif events is not None and self._begun:
            await events.aclose()
        elif self.result is None:  # nothing was ever taken from it
            try:
                began = self.handle.begin()
                await self.handle.leave()
                await self.handle.end(began)
            finally:
                self._end()

    async def _drive(self) -> AsyncIterator[Event]:
        self._begun = True
        handle = self.handle
        journal = handle.driver.journal
        fresh = list(journal.events) if isinstance(journal, MemoryJournal) else []
        handle.driver.listeners.add(fresh.append)
        began = handle.begin()
        try:
            more = True
            while more or fresh:
                while fresh:
                    yield fresh.pop(0)
                more = more and await handle.driver.step()
        except (StoreBusy, StoreUnavailable) as trouble:
            await handle.leave()
            self.result = await handle.at_rest(trouble)
        except BaseException:
            await handle.leave()
            raise
        finally:
            await handle.end(began)
            self._end()

    def _end(self) -> None:
        self.result = self.result or self.handle.result()
        self.runs.let_go(self.handle)
