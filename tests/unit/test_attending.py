"""Leases that are renewed, and requests that are passed on, with a store and a clock that do what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from fsm_agent.engine.attending import POLL, Attendant
from fsm_agent.errors import LeaseLost, StoreUnavailable
from fsm_agent.journal.records import Lease, Request

TTL = 6.0


class TickClock:
    """A clock whose sleepers wake when the test lets time pass."""

    def __init__(self) -> None:
        self.time = 0.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, delay: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.time + delay, woken))
        await woken

    async def pass_by(self, seconds: float) -> None:
        """Let so much time pass, look by look."""
        await _turns()
        until = self.time + seconds
        while self._sleepers and min(self._sleepers)[0] <= until + 1e-9:
            first = min(self._sleepers, key=lambda sleeper: sleeper[0])
            self._sleepers.remove(first)
            self.time = first[0]
            if not first[1].done():
                first[1].set_result(None)
            await _turns()
        self.time = until

    @property
    def waits(self) -> bool:
        """Whether anybody is to be woken."""
        return any(not woken.done() for _, woken in self._sleepers)


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@dataclass(eq=False)
class Shelf:
    """A store: who wants what, and which leases are lost."""

    wants: list[Request] = field(default_factory=list)
    number: int = 0
    lost: list[str] = field(default_factory=list)
    renewed: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)
    looked: list[tuple[str, ...]] = field(default_factory=list)
    broken: bool = False
    clock: TickClock = field(default_factory=TickClock)

    def want(self, run_id: str, kind: str = "pause") -> Request:
        self.number += 1
        self.wants.append(Request(self.number, run_id, 0.0, kind))
        return self.wants[-1]

    def news(self) -> int:
        if self.broken:
            raise StoreUnavailable("there is trouble")
        return self.number

    def requests(self, run_ids: Sequence[str]) -> list[Request]:
        self.looked.append(tuple(run_ids))
        return [want for want in self.wants if want.run_id in run_ids]

    def renew(self, leases: Sequence[Lease], ttl: float) -> list[Lease]:
        assert ttl == TTL
        if self.broken:
            raise StoreUnavailable("there is trouble")
        self.renewed.append((round(self.clock.time, 3), tuple(lease.run_id for lease in leases)))
        return [lease for lease in leases if lease.run_id in self.lost]


@dataclass(eq=False)
class Driven:
    """A run that notes what it is told."""

    run_id: str
    has_lease: bool = True
    answers: list[Request] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    bug: Exception | None = None

    @property
    def lease(self) -> Lease | None:
        return Lease(self.run_id, 1, 1) if self.has_lease else None

    def answer(self, request: Request) -> None:
        if self.bug is not None:
            raise self.bug
        self.answers.append(request)

    def lost(self, error: Exception) -> None:
        self.faults.append(error)


def attending(*runs: Driven, then: Callable[[Attendant, Shelf], Coroutine[Any, Any, None]]) -> Shelf:
    """Attend to these runs, and do what the test does then."""
    shelf = Shelf()

    async def do(function: Callable[..., Any], *arguments: Any) -> Any:
        await asyncio.sleep(0)
        return function(*arguments)

    async def main() -> None:
        store: Any = shelf
        clock: Any = shelf.clock
        attendant = Attendant(store, clock, TTL, do)
        for run in runs:
            attendant.begin(run)
        async with asyncio.timeout(5):
            await then(attendant, shelf)
        for run in runs:
            attendant.end(run)
        await _turns()

    asyncio.run(main())
    return shelf


def test_leases_are_renewed_three_times_in_their_life() -> None:
    async def then(_: Attendant, shelf: Shelf) -> None:
        await shelf.clock.pass_by(2 * TTL + 1)

    shelf = attending(Driven("a"), Driven("b"), Driven("young", has_lease=False), then=then)
    moments = [at for at, _ in shelf.renewed]
    assert len(moments) >= 5
    assert all(
        TTL / 3 <= later - at + 1e-6 <= TTL / 3 + 2 * POLL for at, later in zip([0.0, *moments], moments, strict=False)
    )
    assert {runs for _, runs in shelf.renewed} == {("a", "b")}, "a run that was never committed has nothing to renew"


def test_a_run_whose_lease_is_lost_is_told_and_the_others_go_on() -> None:
    kept, robbed = Driven("kept"), Driven("robbed")

    async def then(_: Attendant, shelf: Shelf) -> None:
        shelf.lost = ["robbed"]
        await shelf.clock.pass_by(TTL / 2)

    attending(kept, robbed, then=then)
    assert [type(fault) for fault in robbed.faults] == [LeaseLost]
    assert kept.faults == []


def test_a_request_is_passed_on_to_its_run_at_the_next_look() -> None:
    a, b = Driven("a"), Driven("b")

    async def then(_: Attendant, shelf: Shelf) -> None:
        await shelf.clock.pass_by(POLL)
        wanted = shelf.want("b")
        shelf.want("somebody else's")
        await shelf.clock.pass_by(POLL)
        assert (a.answers, b.answers) == ([], [wanted])

    attending(a, b, then=then)


def test_while_there_is_no_news_nobody_asks_for_requests() -> None:
    async def then(_: Attendant, shelf: Shelf) -> None:
        await shelf.clock.pass_by(10 * POLL)
        assert shelf.looked == [("a",)]
        shelf.want("a")
        await shelf.clock.pass_by(10 * POLL)
        assert shelf.looked == [("a",), ("a",)]

    attending(Driven("a"), then=then)


def test_a_run_that_comes_later_is_looked_after_although_there_is_no_news() -> None:
    late = Driven("late")

    async def then(attendant: Attendant, shelf: Shelf) -> None:
        wanted = shelf.want("late")
        await shelf.clock.pass_by(3 * POLL)
        attendant.begin(late)
        await shelf.clock.pass_by(POLL)
        assert late.answers == [wanted]
        attendant.end(late)

    attending(Driven("a"), then=then)


def test_a_store_that_cannot_be_read_for_a_while_is_asked_again() -> None:
    run = Driven("a")

    async def then(_: Attendant, shelf: Shelf) -> None:
        shelf.broken = True
        wanted = shelf.want("a")
        await shelf.clock.pass_by(5 * POLL)
        assert run.answers == []
        shelf.broken = False
        await shelf.clock.pass_by(POLL)
        assert run.answers == [wanted]

    attending(run, then=then)
    assert run.faults == []


def test_a_lease_that_could_not_be_renewed_is_renewed_as_soon_as_it_can_be() -> None:
    async def then(_: Attendant, shelf: Shelf) -> None:
        shelf.broken = True
        await shelf.clock.pass_by(TTL - 2 * POLL)
        assert shelf.renewed == []
        shelf.broken = False
        await shelf.clock.pass_by(POLL)
        assert len(shelf.renewed) == 1, "before it has run out"

    attending(Driven("a"), then=then)


def test_a_run_that_cannot_take_a_request_fails_and_stops_no_other() -> None:
    bug = ZeroDivisionError("a bug")
    bad, good = Driven("bad", bug=bug), Driven("good")

    async def then(_: Attendant, shelf: Shelf) -> None:
        shelf.want("bad")
        wanted = shelf.want("good")
        await shelf.clock.pass_by(POLL)
        assert (bad.faults, good.answers) == ([bug], [wanted])

    attending(bad, good, then=then)


def test_when_the_last_run_has_ended_nothing_looks_any_more() -> None:
    first, second = Driven("first"), Driven("second")

    async def then(attendant: Attendant, shelf: Shelf) -> None:
        attendant.end(first)
        await shelf.clock.pass_by(POLL)
        assert shelf.clock.waits
        attendant.end(second)
        await _turns()
        assert not shelf.clock.waits
        attendant.begin(first)
        await _turns()
        assert shelf.clock.waits, "and it begins anew with the next one"

    attending(first, second, then=then)


@pytest.mark.parametrize("again", [True, False])
def test_the_end_of_an_earlier_driving_of_a_run_does_not_end_the_present_one(again: bool) -> None:
    earlier, present = Driven("a"), Driven("a")

    async def then(attendant: Attendant, shelf: Shelf) -> None:
        attendant.begin(present)
        attendant.end(earlier)
        if again:
            attendant.end(earlier)
        wanted = shelf.want("a")
        await shelf.clock.pass_by(POLL)
        assert (earlier.answers, present.answers) == ([], [wanted])
        attendant.end(present)

    attending(earlier, then=then)
