"""One call of a skill, under its time limit, such that neither a hung nor a stubborn skill holds up anyone else.

An async skill runs in an asyncio task of its own: at its timeout it is cancelled, and abandoned if it swallows that.
A sync skill runs on a daemon thread, which cannot be killed: at its timeout it is abandoned at once.
`start` is the call itself, with a callback at its end; `call` and `call_blocking` wait for it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from fsm_agent.clock import Clock, Timer
from fsm_agent.errors import CallTimeout
from fsm_agent.skills.threads import THREADS, Threads

Function = Callable[..., Any]
OnEnd = Callable[[Any, BaseException | None], object]
"""Told (value, None) or (None, error), once. It may run inside the call's own task: it must be quick and not raise."""


class Flight(ABC):
    """A call that was started. All of it happens in one event loop."""

    __slots__ = ("_clock", "_timeout", "_timer", "abandoned", "on_end")

    def __init__(self, on_end: OnEnd, timeout: float | None, clock: Clock) -> None:
        self.on_end: OnEnd | None = on_end
        self.abandoned = False
        """Whether it was left behind while it still ran."""
        self._clock = clock
        self._timeout = timeout
        self._timer: Timer | None = None

    @property
    def ended(self) -> bool:
        """Whether its outcome was told."""
        return self.on_end is None

    @abstractmethod
    def cancel(self) -> None:
        """Stop it as far as that is possible; it then ends with CancelledError, whatever it returns."""

    @abstractmethod
    def abandon(self) -> None:
        """End it now, whether or not it still runs."""

    def _end(self, value: Any, error: BaseException | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None  # the two hold each other: nothing is left for the garbage collector
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end(value, error)


def start(  # noqa: PLR0913 - the last two are for tests and for the engine
    function: Function,
    kwargs: Mapping[str, Any],
    on_end: OnEnd,
    *,
    is_async: bool,
    timeout: float | None,
    clock: Clock,
    grace: float,
    threads: Threads = THREADS,
    context: Context | None = None,
) -> Flight:
    """Begin a call in the running event loop; `on_end` is told its outcome, once. `timeout`, `grace` are in seconds.

    The error is CallTimeout when it took too long (also when it returned late), CancelledError after `cancel`, else
    what the function raised, SystemExit included. Once it has ended, nothing of it is heard any more.
    """
    variables = copy_context() if context is None else context.copy()
    if is_async:
        return _AsyncFlight(function, kwargs, on_end, timeout, clock, grace, variables)
    return _ThreadFlight(function, kwargs, on_end, timeout, clock, threads, variables)


async def call(
    function: Function,
    kwargs: Mapping[str, Any],
    *,
    is_async: bool,
    timeout: float | None,  # noqa: ASYNC109 - by the injected clock, which asyncio.timeout does not know
    clock: Clock,
    grace: float,
) -> Any:
    """Call and wait: the function's value, or what it raised, or CallTimeout.

    When the awaiting task is cancelled, the call is cancelled too (an async skill has `grace` seconds to end).
    """
    landed: _Landed = asyncio.get_running_loop().create_future()
    on_end = partial(_resolve, landed)
    flight = start(function, kwargs, on_end, is_async=is_async, timeout=timeout, clock=clock, grace=grace)
    try:
        value, error = await landed
    except asyncio.CancelledError:
        await _bring_down(flight)
        raise
    if error is None:
        return value
    try:
        raise error
    finally:
        del error, landed, on_end  # the error's traceback holds this frame, which must not hold the error


def call_blocking(function: Function, *, timeout: float, clock: Clock, threads: Threads = THREADS) -> Any:
    """Call a sync function on a daemon thread and block this one until it ends, or until `timeout` seconds are over.

    Returns or raises what the function does, or raises CallTimeout.
    """
    answers: SimpleQueue[tuple[Any, BaseException | None, float]] = SimpleQueue()
    run = copy_context().run
    began = clock.monotonic()
    threads.submit(lambda: answers.put((*_outcome(run, function), clock.monotonic())))
    try:
        value, error, finished = answers.get(timeout=timeout)
    except Empty:
        raise CallTimeout(timeout, timeout, abandoned=True) from None
    if finished - began >= timeout:
        raise CallTimeout(timeout, finished - began)
    if error is None:
        return value
    try:
        raise error
    finally:
        del error


class _AsyncFlight(Flight):
    """An async skill in a task of its own. Its clock starts with its first step, not while it waits for its turn."""

    __slots__ = ("_began", "_cancelled", "_grace", "_stopping", "_task")

    def __init__(
        self,
        function: Function,
        kwargs: Mapping[str, Any],
        on_end: OnEnd,
        timeout: float | None,
        clock: Clock,
        grace: float,
        variables: Context,
    ) -> None:
        super().__init__(on_end, timeout, clock)
        self._grace = grace
        self._began: float | None = None
        self._stopping = False
        self._cancelled = False
        self._task = asyncio.get_running_loop().create_task(self._run(function, kwargs), context=variables)

    async def _run(self, function: Function, kwargs: Mapping[str, Any]) -> None:
        self._began = self._clock.monotonic()
        if self._timeout is not None:
            self._timer = self._clock.call_later(self._timeout, self._stop)
        own = _current_task()
        try:
            value = await function(**kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit would end the event loop, and with it every run
            if _current_task() is own:  # else its coroutine is closed, when its loop is gone: nobody listens any more
                self._landed(None, error)
        else:
            self._landed(value, None)

    def _landed(self, value: Any, error: BaseException | None) -> None:
        if self.ended:
            return  # it was abandoned: too late
        late = self._timeout is not None and self._elapsed() >= self._timeout
        if self._stopping or late:
            self._end(None, self._verdict())
        else:
            self._end(value, error)

    def cancel(self) -> None:
        if self.ended or self._stopping:
            return
        self._cancelled = True
        if self._began is None:
            self._task.cancel()  # it will never begin, so nothing else will tell its end
            self._end(None, self._verdict())
        else:
            self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._stopping = True
        self._task.cancel()
        self._timer = self._clock.call_later(self._grace, self.abandon)

    def abandon(self) -> None:
        if self.ended:
            return
        self._stopping = self.abandoned = True
        _leave_behind(self._task)
        self._end(None, self._verdict())

    def _verdict(self) -> BaseException:
        """Why it ends without its outcome."""
        if self._cancelled or self._timeout is None:
            return asyncio.CancelledError()
        elapsed = self._elapsed()
        # Its timer was due, and did not get its turn before the skill came back: the skill did not let go of the loop.
        blocked = 0.0 if self._stopping else elapsed - self._timeout
        return CallTimeout(self._timeout, elapsed, abandoned=self.abandoned, blocked=blocked)

    def _elapsed(self) -> float:
        return 0.0 if self._began is None else self._clock.monotonic() - self._began


class _ThreadFlight(Flight):
    """A sync skill on a daemon thread. When it is stopped it goes on, unheard."""

    __slots__ = ("_began", "_loop")

    def __init__(
        self,
        function: Function,
        kwargs: Mapping[str, Any],
        on_end: OnEnd,
        timeout: float | None,
        clock: Clock,
        threads: Threads,
        variables: Context,
    ) -> None:
        super().__init__(on_end, timeout, clock)
        self._loop = asyncio.get_running_loop()
        self._began = clock.monotonic()
        try:
            threads.submit(partial(variables.run, self._work, function, kwargs))
        except RuntimeError as error:  # the system gives no more threads: this call fails, and nothing else
            self._loop.call_soon(self._landed, None, error, self._began)
        if timeout is not None:
            self._timer = clock.call_later(timeout, self._time_is_up)

    def _work(self, function: Function, kwargs: Mapping[str, Any]) -> None:
        """On the thread."""
        value, error = _outcome(function, **kwargs)
        finished = self._clock.monotonic()
        with suppress(RuntimeError):  # the loop is closed, nobody listens any more
            if not self.ended:
                self._loop.call_soon_threadsafe(self._landed, value, error, finished)

    def _landed(self, value: Any, error: BaseException | None, finished: float) -> None:
        elapsed = finished - self._began
        if self._timeout is not None and elapsed >= self._timeout:
            self._end(None, CallTimeout(self._timeout, elapsed))
        else:
            self._end(value, error)

    def _time_is_up(self) -> None:
        timeout = self._timeout or 0.0
        self.abandoned = True
        self._end(None, CallTimeout(timeout, self._clock.monotonic() - self._began, abandoned=True))

    def cancel(self) -> None:
        self.abandon()

    def abandon(self) -> None:
        if not self.ended:
            self.abandoned = True
            self._end(None, asyncio.CancelledError())


_Landed = asyncio.Future[tuple[Any, BaseException | None]]


def _resolve(landed: _Landed, value: Any, error: BaseException | None) -> None:
    if not landed.done():
        landed.set_result((value, error))


async def _bring_down(flight: Flight) -> None:
    """Cancel a call and wait until it is gone; a second cancellation of the caller ends the patience."""
    if flight.ended:
        return
    gone: _Landed = asyncio.get_running_loop().create_future()
    flight.on_end = partial(_resolve, gone)
    flight.cancel()
    try:
        await gone
    except asyncio.CancelledError:
        flight.abandon()


def _outcome(function: Function, *args: Any, **kwargs: Any) -> tuple[Any, BaseException | None]:
    try:
        return function(*args, **kwargs), None
    except BaseException as error:  # noqa: BLE001 - it is carried to another thread, and raised there
        return None, error


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


def _leave_behind(task: asyncio.Task[None]) -> None:
    """Take a task that does not end off asyncio's list, or `asyncio.run` would wait for it when the program ends."""
    asyncio._unregister_task(task)
    # That it is pending when the loop is closed is known already: no message about it.
    task._log_destroy_pending = False  # type: ignore[attr-defined] # not in the stubs; asyncio.gather sets it as well
