"""One call under its time limit: nobody is held up by a hung or a stubborn skill."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fsm_agent.clock import SystemClock
from fsm_agent.errors import CallTimeout
from fsm_agent.skills.isolation import call, call_blocking, start
from fsm_agent.skills.threads import Threads

CLOCK = SystemClock()
GRACE = 0.05


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(main())


async def call_async(
    function: Callable[..., Any], timeout: float | None = 5.0, *, grace: float = GRACE, **kwargs: Any
) -> Any:
    return await call(function, kwargs, is_async=True, timeout=timeout, clock=CLOCK, grace=grace)


async def call_sync(function: Callable[..., Any], timeout: float | None = 5.0, **kwargs: Any) -> Any:
    return await call(function, kwargs, is_async=False, timeout=timeout, clock=CLOCK, grace=GRACE)


async def sleep_async(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"


def sleep_sync(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


async def stubborn(seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            await asyncio.sleep(end - time.monotonic())
        except asyncio.CancelledError:
            continue
    return "late"


def test_an_async_function_returns_its_value() -> None:
    assert run(lambda: call_async(sleep_async, seconds=0)) == "slept"


def test_a_sync_function_returns_its_value_from_another_thread() -> None:
    assert run(lambda: call_sync(threading.get_ident)) != threading.get_ident()


@pytest.mark.parametrize("timeout", [None, 5.0])
def test_what_the_function_raises_is_raised(timeout: float | None) -> None:
    def bad() -> None:
        raise KeyError("x")

    async def bad_async() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run(lambda: call_sync(bad, timeout))
    with pytest.raises(KeyError):
        run(lambda: call_async(bad_async, timeout))


def test_a_system_exit_reaches_the_caller_and_does_not_end_the_loop() -> None:
    async def leave() -> None:
        sys.exit(3)

    async def main() -> str:
        with pytest.raises(SystemExit):
            await call_async(leave)
        with pytest.raises(SystemExit):
            await call_sync(sys.exit)
        return "the loop goes on"

    assert run(main) == "the loop goes on"


@pytest.mark.parametrize("is_async", [False, True])
def test_a_generator_exit_of_the_functions_own_is_an_error_like_any_other(is_async: bool) -> None:
    def bad() -> None:
        raise GeneratorExit

    async def bad_async() -> None:
        raise GeneratorExit

    async def main() -> None:
        began = time.monotonic()
        with pytest.raises(GeneratorExit):
            await (call_async(bad_async, 30) if is_async else call_sync(bad, 30))
        assert time.monotonic() - began < 5

    run(main)


@pytest.mark.parametrize("answer", [None, ValueError("no"), SystemExit(1)])
def test_a_function_that_is_closed_with_its_loop_tells_nobody(answer: BaseException | None) -> None:
    told: list[Any] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except GeneratorExit:
            if answer is not None:
                raise answer from None
            raise

    loop = asyncio.new_event_loop()

    async def begin() -> asyncio.Task[Any]:
        before = asyncio.all_tasks()
        start(hang, {}, lambda *_: told.append(_), is_async=True, timeout=None, clock=CLOCK, grace=GRACE)
        (task,) = asyncio.all_tasks() - before
        await asyncio.sleep(0)
        return task

    task = loop.run_until_complete(begin())
    loop.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coroutine = task.get_coro()
    assert coroutine is not None
    coroutine.close()
    assert told == []


def test_f01_a_sync_function_is_timed_out_and_abandoned_in_time() -> None:
    async def main() -> None:
        other = asyncio.create_task(sleep_async(0.05))
        began = time.monotonic()
        with pytest.raises(CallTimeout) as caught:
            await call_sync(sleep_sync, 0.2, seconds=5)
        assert 0.15 < time.monotonic() - began < 3
        assert caught.value.abandoned
        assert other.done()

    run(main)


def test_f01_b_an_async_function_is_timed_out_and_cancelled_in_time() -> None:
    ended: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("tidied up")

    async def main() -> None:
        began = time.monotonic()
        with pytest.raises(CallTimeout) as caught:
            await call_async(tidy, 0.2, grace=5)
        assert 0.15 < time.monotonic() - began < 5
        assert not caught.value.abandoned
        assert ended == ["tidied up"]

    run(main)


def test_f01_c_an_async_function_that_blocks_the_loop_is_a_timeout_whatever_it_returns() -> None:
    async def blocking() -> str:
        time.sleep(0.3)
        return "a late success"

    async def main() -> None:
        with pytest.raises(CallTimeout) as caught:
            await call_async(blocking, 0.1)
        assert caught.value.elapsed >= 0.3
        assert caught.value.blocked == pytest.approx(caught.value.elapsed - 0.1)

    run(main)


def test_a_late_error_is_a_timeout_too() -> None:
    async def blocking() -> None:
        time.sleep(0.05)
        raise ValueError

    with pytest.raises(CallTimeout):
        run(lambda: call_async(blocking, 0.01))


def test_time_spent_waiting_behind_a_blocker_is_not_counted() -> None:
    async def blocking() -> None:
        time.sleep(0.6)

    async def main() -> str:
        blocker = asyncio.create_task(call_async(blocking, 5.0))
        victim = asyncio.create_task(call_async(sleep_async, 0.5, seconds=0.01))
        await blocker
        return await victim

    assert run(main) == "slept"


def test_a_function_that_swallows_its_cancellation_is_abandoned_after_the_grace() -> None:
    async def main() -> None:
        began = time.monotonic()
        with pytest.raises(CallTimeout) as caught:
            await call_async(stubborn, 0.05, seconds=30)
        assert time.monotonic() - began < 5
        assert caught.value.abandoned

    run(main)


def test_the_late_error_of_an_abandoned_function_is_never_heard_of(caplog: pytest.LogCaptureFixture) -> None:
    async def bad() -> None:
        await stubborn(0.2)
        raise ValueError("late")

    async def main() -> None:
        with pytest.raises(CallTimeout):
            await call_async(bad, 0.02)
        await asyncio.sleep(0.25)
        gc.collect()

    run(main)
    assert not caplog.records


def test_a_function_that_returns_during_the_grace_is_a_timeout_and_not_abandoned() -> None:
    async def slow_to_go() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
        return "late"

    async def main() -> None:
        with pytest.raises(CallTimeout) as caught:
            await call_async(slow_to_go, 0.05, grace=5)
        assert not caught.value.abandoned

    run(main)


def test_cancelling_the_caller_cancels_an_async_function_and_waits_for_its_end() -> None:
    ended: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            ended.append("tidied up")

    async def main() -> None:
        task = asyncio.create_task(call_async(tidy, None, grace=5))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["tidied up"]

    run(main)


@pytest.mark.parametrize("cancels", [1, 2])
def test_cancelling_the_caller_abandons_a_stubborn_function(cancels: int) -> None:
    async def main() -> None:
        task = asyncio.create_task(call_async(stubborn, None, seconds=30))
        await asyncio.sleep(0.01)
        began = time.monotonic()
        for _ in range(cancels):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 5

    run(main)


def test_cancelling_the_caller_abandons_a_thread_at_once() -> None:
    async def main() -> None:
        task = asyncio.create_task(call_sync(sleep_sync, None, seconds=5))
        await asyncio.sleep(0.05)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 3

    run(main)


def test_a_call_that_is_cancelled_before_its_first_step_is_never_made() -> None:
    made: list[int] = []

    async def make() -> None:
        made.append(1)

    async def main() -> None:
        ends: list[BaseException | None] = []
        flight = start(
            make, {}, lambda _, error: ends.append(error), is_async=True, timeout=1.0, clock=CLOCK, grace=GRACE
        )
        flight.cancel()
        await asyncio.sleep(0.01)
        assert isinstance(ends[0], asyncio.CancelledError)
        assert not made
        assert len(ends) == 1

    run(main)


def test_a_function_that_cancels_itself_raises_that_in_the_caller() -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await call_async(give_up)

    run(main)


@pytest.mark.parametrize(("function", "is_async"), [(sleep_async, True), (sleep_sync, False)])
def test_the_end_is_told_once_and_nothing_can_be_stopped_after_it(function: Any, is_async: bool) -> None:
    async def main() -> None:
        ends: list[Any] = []
        told = asyncio.Event()

        def end(*outcome: Any) -> None:
            ends.append(outcome)
            told.set()

        flight = start(function, {"seconds": 0}, end, is_async=is_async, timeout=5.0, clock=CLOCK, grace=GRACE)
        await told.wait()
        flight.cancel()
        flight.abandon()
        assert ends == [("slept", None)]
        assert (flight.ended, flight.abandoned) == (True, False)

    run(main)


def test_context_variables_are_copied_into_the_call() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    async def ask() -> str:
        return who.get()

    async def main() -> tuple[str, str]:
        who.set("me")
        return await call_async(ask), await call_sync(who.get)

    assert run(main) == ("me", "me")


def test_threads_are_daemons_and_reused_when_idle() -> None:
    threads = Threads()
    seen: list[threading.Thread] = []
    for _ in range(3):
        done = threading.Event()
        threads.submit(lambda done=done: (seen.append(threading.current_thread()), done.set()))
        done.wait(5)
        while not threads.idle:
            time.sleep(0.001)
    assert len(set(seen)) == 1
    assert seen[0].daemon


def test_where_no_thread_can_be_started_the_call_fails_and_nothing_else() -> None:
    class NoThreads(Threads):
        def submit(self, work: object) -> None:
            raise RuntimeError("can't start new thread")

    async def main() -> None:
        told: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        start(
            time.monotonic, {}, lambda _, error: told.set_result(error),
            is_async=False, timeout=5.0, clock=CLOCK, grace=GRACE, threads=NoThreads(),
        )  # fmt: skip
        assert isinstance(await told, RuntimeError)

    run(main)


def test_an_idle_thread_ends_after_a_while() -> None:
    threads = Threads(idle_seconds=0.01)
    seen: list[threading.Thread] = []
    threads.submit(lambda: seen.append(threading.current_thread()))
    deadline = time.monotonic() + 5
    while (not seen or seen[0].is_alive()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not seen[0].is_alive()
    assert not threads.idle


def test_work_that_comes_as_threads_end_is_always_done() -> None:
    threads = Threads(idle_seconds=0.0005)
    done = threading.Semaphore(0)
    for _ in range(300):
        threads.submit(done.release)
        time.sleep(0.0005)
    for _ in range(300):
        assert done.acquire(timeout=5)


def test_hung_threads_hold_up_nobody() -> None:
    async def main() -> None:
        hung = [asyncio.create_task(call_sync(sleep_sync, 0.05, seconds=5)) for _ in range(40)]
        began = time.monotonic()
        assert await call_sync(sleep_sync, 5.0, seconds=0) == "slept"
        assert time.monotonic() - began < 3
        results = await asyncio.gather(*hung, return_exceptions=True)
        assert all(isinstance(result, CallTimeout) for result in results)

    run(main)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_after_a_fork_new_threads_are_started() -> None:
    code = """
        import os, threading
        from fsm_agent.skills.threads import Threads
        threads = Threads()
        def do():
            done = threading.Event()
            threads.submit(done.set)
            return done.wait(5)
        assert do()
        child = os.fork()
        if child == 0:
            os._exit(0 if do() else 1)
        assert os.waitpid(child, 0)[1] == 0
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=30)


@pytest.mark.parametrize("is_async", [False, True])
def test_the_program_can_end_while_a_call_hangs(is_async: bool) -> None:
    code = f"""
        import asyncio, time
        from fsm_agent.clock import SystemClock
        from fsm_agent.errors import CallTimeout
        from fsm_agent.skills.isolation import call
        async def stubborn():
            while True:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    pass
        def hung():
            time.sleep(60)
        async def main():
            function = stubborn if {is_async} else hung
            try:
                await call(function, {{}}, is_async={is_async}, timeout=0.05, clock=SystemClock(), grace=0.05)
            except CallTimeout as error:
                print(error.abandoned)
        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=30, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_blocking_call_returns_and_raises_what_the_function_does() -> None:
    assert call_blocking(lambda: 3, timeout=5, clock=CLOCK) == 3
    with pytest.raises(ZeroDivisionError):
        call_blocking(lambda: 1 / 0, timeout=5, clock=CLOCK)


def test_a_blocking_call_is_timed_out_in_time() -> None:
    began = time.monotonic()
    with pytest.raises(CallTimeout) as caught:
        call_blocking(lambda: time.sleep(5), timeout=0.05, clock=CLOCK)
    assert caught.value.abandoned
    assert time.monotonic() - began < 3


def test_a_call_that_has_ended_leaves_nothing_to_the_collector_of_garbage() -> None:
    async def main() -> None:
        landed = asyncio.get_running_loop().create_future()
        flight = start(
            sleep_async,
            {"seconds": 0.0},
            lambda value, _: landed.set_result(value),
            is_async=True,
            timeout=60.0,
            clock=CLOCK,
            grace=GRACE,
        )
        assert await landed == "slept"
        await asyncio.sleep(0)
        gone = weakref.ref(flight._task)  # type: ignore[attr-defined] # the flight itself takes no weak reference
        del flight
        assert gone() is None

    gc.disable()
    try:
        run(main)
    finally:
        gc.enable()
