"""The commits of one run, with a journal and a clock that do what the test says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from fsm_agent.engine.ledger import LATER, LONGEST, SHORTEST, Ledger
from fsm_agent.errors import LeaseLost, NotAStore, StoreBusy, StoreUnavailable

PATIENCE = 1.0


@dataclass(eq=False)
class Timer:
    """A call that the test makes."""

    delay: float
    callback: Callable[[], object]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class HandClock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.time = 0.0
        self.timers: list[Timer] = []

    def monotonic(self) -> float:
        return self.time

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        self.timers.append(Timer(delay, callback))
        return self.timers[-1]

    def ring(self) -> float:
        """Let the time come of the one timer that is set. Returns for how long it was set."""
        [timer] = [timer for timer in self.timers if not timer.cancelled]
        self.timers.clear()
        self.time += timer.delay
        timer.callback()
        return timer.delay


@dataclass(eq=False)
class Book:
    """A journal whose writes come to what the test says; then they succeed."""

    trouble: list[BaseException] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    batch: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    taken: str | None = None
    threads: set[int] = field(default_factory=set)
    run_id = "r"

    @property
    def store(self) -> Any:
        return self

    patience = PATIENCE

    @property
    def pending(self) -> bool:
        return bool(self.fresh or self.batch)

    def prepare(self) -> None:
        self.batch += self.fresh
        self.fresh.clear()

    def write(self) -> None:
        self.threads.add(threading.get_ident())
        if self.trouble:
            raise self.trouble.pop(0)
        self.kept += self.batch

    def written(self) -> Sequence[Any]:
        events, self.batch = self.batch, []
        return events

    def snapshot(self) -> str | None:
        return self.taken

    def keep(self, snapshot: str) -> None:
        self.pictures.append(snapshot)


@dataclass(eq=False)
class Host:
    """A driver that notes what it is told."""

    book: Book
    clock: Any = field(default_factory=HandClock)
    told: list[str] = field(default_factory=list)
    faults: list[BaseException] = field(default_factory=list)
    wakes: int = 0
    calls_under_way: bool = False
    ended: list[str] = field(default_factory=list)
    listens: Callable[[], None] = lambda: None
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def committed(self, events: Sequence[Any]) -> None:
        self.listens()
        self.told += events

    def take_in_ended(self) -> None:
        self.book.fresh += self.ended
        self.ended.clear()

    def wake(self) -> None:
        self.wakes += 1
        self.woken.set()

    def failed(self, fault: BaseException) -> None:
        self.faults.append(fault)
        self.woken.set()


def made(*trouble: BaseException, executor: Executor | None = None, **more: Any) -> tuple[Ledger, Host, Book]:
    """A ledger of a journal with one event, whose first writes come to this."""
    book = Book(list(trouble), fresh=["a"])
    host = Host(book, **more)
    journal: Any = book
    return Ledger(host, journal, executor), host, book


def test_what_was_recorded_is_in_the_store_before_anybody_is_told() -> None:
    ledger, host, book = made()
    host.listens = lambda: book.kept.append("told")
    assert ledger.settle()
    assert (book.kept, host.told, host.wakes) == (["a", "told"], ["a"], 0)


def test_where_nothing_was_recorded_nothing_is_written() -> None:
    ledger, host, book = made()
    book.fresh.clear()
    assert ledger.settle()
    assert (book.threads, host.told) == (set(), [])


@pytest.mark.parametrize("error", [StoreBusy("b"), StoreUnavailable("u")])
def test_while_the_store_cannot_be_written_to_the_run_stands_still_and_is_woken_afterwards(error: Exception) -> None:
    ledger, host, book = made(error)
    assert not ledger.settle()
    assert ledger.is_writing
    assert not ledger.settle(), "it is not written a second time meanwhile"
    assert (host.told, host.wakes, host.faults) == ([], 0, [])
    host.clock.ring()
    assert (book.kept, host.told, host.wakes, ledger.is_writing) == (["a"], ["a"], 1, False)


def test_what_calls_came_to_meanwhile_is_written_with_the_next_attempt() -> None:
    ledger, host, book = made(StoreBusy("b"))
    ledger.settle()
    host.ended = ["b"]
    host.clock.ring()
    assert book.kept == host.told == ["a", "b"]


def test_it_waits_longer_each_time_up_to_a_bound_and_gives_up_when_the_patience_of_the_store_is_over() -> None:
    error = StoreBusy("b")
    ledger, host, _ = made(*[error] * 100)
    ledger.settle()
    waits = []
    while not host.faults:
        waits.append(host.clock.ring())
    assert waits[:4] == [SHORTEST, 2 * SHORTEST, 4 * SHORTEST, 8 * SHORTEST]
    assert max(waits) <= LONGEST
    assert PATIENCE <= host.clock.time < PATIENCE + LONGEST
    assert (host.faults, host.told) == ([error], [])


def test_after_trouble_that_passed_the_next_one_is_waited_for_as_long_as_the_first() -> None:
    ledger, host, book = made(*[StoreBusy("b")] * 4)
    ledger.settle()
    waits = [host.clock.ring() for _ in range(4)]
    assert waits[-1] == 8 * SHORTEST
    host.clock.time += 10 * PATIENCE
    book.trouble, book.fresh = [StoreBusy("b")], ["b"]
    assert not ledger.settle()
    assert host.clock.ring() == SHORTEST
    assert (host.told, host.faults) == (["a", "b"], [])


def test_while_calls_are_under_way_it_does_not_give_up() -> None:
    ledger, host, _ = made(*[StoreUnavailable("u")] * 100, calls_under_way=True)
    ledger.settle()
    while host.clock.time < 10 * PATIENCE:
        host.clock.ring()
    assert host.faults == []
    host.calls_under_way = False
    host.clock.ring()
    assert len(host.faults) == 1


@pytest.mark.parametrize("error", [LeaseLost("r"), NotAStore("no"), ZeroDivisionError("a bug"), KeyboardInterrupt()])
def test_what_does_not_pass_ends_the_run_at_once(error: BaseException) -> None:
    ledger, host, _ = made(error)
    assert not ledger.settle()
    assert (host.faults, host.clock.timers, host.told) == ([error], [], [])


def test_an_error_in_what_is_told_after_a_wait_ends_the_run_and_is_not_lost() -> None:
    ledger, host, _ = made(StoreBusy("b"))
    ledger.settle()
    bug = ZeroDivisionError("a bug")

    def listen() -> None:
        raise bug

    host.listens = listen
    host.clock.ring()
    assert (host.faults, host.wakes) == ([bug], 0)


def test_progress_is_written_a_little_later_unless_something_else_is_written_before() -> None:
    ledger, host, _ = made()
    ledger.later()
    ledger.later()
    assert (host.clock.ring(), host.wakes) == (LATER, 1)
    ledger.later()
    assert ledger.settle()
    assert all(timer.cancelled for timer in host.clock.timers)


def test_a_snapshot_is_kept_after_the_events_that_it_is_of() -> None:
    ledger, host, book = made()
    book.taken = "picture"
    ledger.settle()
    assert (book.kept, book.pictures, host.told) == (["a"], ["picture"], ["a"])


@pytest.mark.parametrize("begin", [Ledger.settle, Ledger.later])
def test_of_a_ledger_that_was_closed_nothing_more_comes(begin: Callable[[Ledger], object]) -> None:
    ledger, host, _ = made(StoreBusy("b"))
    begin(ledger)
    ledger.close()
    assert [timer.cancelled for timer in host.clock.timers] == [True]


# On a thread, where a network is between ----------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", [[], [StoreUnavailable("u")]])
def test_a_slow_store_is_written_to_on_its_thread_and_the_run_is_woken(trouble: list[Exception]) -> None:
    async def main() -> tuple[Host, Book]:
        with ThreadPoolExecutor(1) as executor:
            ledger, host, book = made(*trouble, executor=executor)
            assert not ledger.settle()
            for _ in trouble:
                while not host.clock.timers:
                    await asyncio.sleep(0.001)
                host.clock.ring()
            async with asyncio.timeout(5):
                await host.woken.wait()
            assert not ledger.is_writing
            return host, book

    host, book = asyncio.run(main())
    assert (book.kept, host.told, host.wakes) == (["a"], ["a"], 1)
    assert threading.get_ident() not in book.threads


def test_on_a_thread_too_what_does_not_pass_ends_the_run() -> None:
    async def main() -> Host:
        with ThreadPoolExecutor(1) as executor:
            ledger, host, _ = made(LeaseLost("r"), executor=executor)
            ledger.settle()
            async with asyncio.timeout(5):
                await host.woken.wait()
            return host

    host = asyncio.run(main())
    assert [type(fault) for fault in host.faults] == [LeaseLost]
    assert host.told == []
