"""`safe_execute`: timeouts, retries and a fallback around a plain function, outside any engine."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from fsm_agent.errors import BadSkill, CallTimeout, SkillFailed
from fsm_agent.skills.outcomes import MAX_MESSAGE
from fsm_agent.skills.safe_execute import safe_execute


class Half:
    """A random source that always says one half."""

    def random(self) -> float:
        return 0.5


class Waits:
    """A sleep that takes no time and remembers how long it should have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def fails(times: int, error: BaseException | None = None) -> Callable[..., Any]:
    """A function that fails its first calls, then returns how often it was called."""
    calls: list[int] = []

    def count() -> int:
        calls.append(1)
        if len(calls) <= times:
            raise error or ValueError(f"call {len(calls)}")
        return len(calls)

    count.calls = calls
    return count


def wrap(function: Callable[..., Any], flavour: str, **words: Any) -> Callable[..., Any]:
    """The function under safe_execute, called as a sync one in both flavours."""
    words.setdefault("sleep", Waits())
    if flavour == "sync":
        return safe_execute(**words)(function)

    async def same(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0)
        return function(*args, **kwargs)

    decorated = safe_execute(**words)(same)
    return lambda *args, **kwargs: asyncio.run(decorated(*args, **kwargs))


both = pytest.mark.parametrize("flavour", ["sync", "async"])


def test_bare_it_leaves_a_good_function_as_it_is() -> None:
    @safe_execute
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    assert add(1) == 3
    assert add(1, b=5) == 6
    assert (add.__name__, add.__doc__) == ("add", "Add.")


def test_it_can_be_applied_in_one_call() -> None:
    assert safe_execute(fails(2), max_retries=2, backoff=0)() == 3


def test_a_sync_function_stays_sync_and_an_async_one_async() -> None:
    @safe_execute(max_retries=1)
    def one() -> int:
        return 1

    @safe_execute
    async def two() -> int:
        return 2

    assert not inspect.iscoroutinefunction(one)
    assert inspect.iscoroutinefunction(two)

    async def main() -> tuple[int, int]:
        return one(), await two()  # a sync one is sync also inside a running event loop

    assert asyncio.run(main()) == (1, 2)


@both
@pytest.mark.parametrize("max_retries", [0, 1, 3])
@pytest.mark.parametrize("failures", range(5))
def test_f10_n_retries_are_at_most_n_plus_1_attempts(flavour: str, max_retries: int, failures: int) -> None:
    function = fails(failures)
    safe = wrap(function, flavour, max_retries=max_retries)
    if failures <= max_retries:
        assert safe() == failures + 1
    else:
        with pytest.raises(SkillFailed) as caught:
            safe()
        assert caught.value.attempts == max_retries + 1
    assert len(function.calls) == min(failures, max_retries) + 1


@both
def test_at_the_end_the_last_error_is_the_cause(flavour: str) -> None:
    with pytest.raises(SkillFailed, match=r"failed \(exception\) after 3 attempts: call 3") as caught:
        wrap(fails(9), flavour, max_retries=2)()
    assert (caught.value.kind, caught.value.attempts) == ("exception", 3)
    assert isinstance(caught.value.__cause__, ValueError)
    assert str(caught.value.__cause__) == "call 3"


@both
def test_waits_grow_between_the_attempts(flavour: str) -> None:
    waits = Waits()
    with pytest.raises(SkillFailed):
        wrap(fails(9), flavour, max_retries=3, backoff={"base": 1, "cap": 3}, sleep=waits, random=Half())()
    assert waits.seconds == [0.5, 1.0, 1.5]


@both
def test_a_longer_wait_that_the_error_asks_for_is_respected(flavour: str) -> None:
    waits = Waits()
    error = ValueError("busy")
    error.retry_after = 20
    assert wrap(fails(1, error), flavour, max_retries=1, sleep=waits)() == 2
    assert waits.seconds == [20.0]


def test_an_async_sleep_is_awaited() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    assert wrap(fails(1), "async", max_retries=1, backoff=4, sleep=sleep, random=Half())() == 2
    assert waited == [2.0]


@both
@pytest.mark.parametrize(
    ("retry_on", "error", "attempts"),
    [
        (None, KeyError("x"), 4),
        (KeyError, KeyError("x"), 4),
        ((LookupError, OSError), KeyError("x"), 4),
        ("LookupError", KeyError("x"), 4),
        (("OSError", "reported"), KeyError("x"), 1),
        ((), KeyError("x"), 1),
    ],
)
def test_only_what_retry_on_names_is_tried_again(flavour: str, retry_on: Any, error: Exception, attempts: int) -> None:
    function = fails(9, error)
    with pytest.raises(SkillFailed) as caught:
        wrap(function, flavour, max_retries=3, retry_on=retry_on)()
    assert caught.value.attempts == attempts


@both
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_what_is_no_exception_passes_through_at_once(flavour: str, error: BaseException) -> None:
    function = fails(9, error)
    with pytest.raises(type(error)):
        wrap(function, flavour, max_retries=3, fallback=1, idempotent=True)()
    assert len(function.calls) == 1


def test_cancellation_is_never_swallowed() -> None:
    calls: list[int] = []

    @safe_execute(max_retries=5, timeout=30, fallback="never", idempotent=True)
    async def forever() -> None:
        calls.append(1)
        await asyncio.sleep(30)

    async def main() -> None:
        task = asyncio.create_task(forever())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert calls == [1]


@both
def test_success_false_is_a_failure(flavour: str) -> None:
    answers = iter([{"success": False, "error": "no seats"}, {"success": True, "data": 7}])
    assert wrap(lambda: next(answers), flavour, max_retries=1, retry_on="reported")() == {"success": True, "data": 7}


@both
def test_a_reported_failure_is_tried_again_only_where_it_is_named_or_does_no_harm(flavour: str) -> None:
    answer = {"success": False, "message": "no seats"}
    with pytest.raises(SkillFailed, match="no seats") as caught:
        wrap(lambda: answer, flavour, max_retries=2)()
    assert (caught.value.kind, caught.value.attempts, caught.value.__cause__) == ("reported", 1, None)
    with pytest.raises(SkillFailed) as caught:
        wrap(lambda: answer, flavour, max_retries=2, idempotent=True)()
    assert caught.value.attempts == 3


@both
@pytest.mark.parametrize(
    ("fallback", "expected"),
    [
        ("n/a", "n/a"),
        ({"temperature": 20}, {"temperature": 20}),
        ({"value": None}, None),
        (lambda city: f"no weather for {city}", "no weather for Bern"),
        (lambda: "no weather", "no weather"),
    ],
)
def test_a_fallback_stands_in_after_the_last_attempt(flavour: str, fallback: Any, expected: Any) -> None:
    calls: list[str] = []

    def weather(city: str) -> str:
        calls.append(city)
        raise OSError("down")

    assert wrap(weather, flavour, max_retries=2, fallback=fallback)("Bern") == expected
    assert calls == ["Bern"] * 3


def test_the_fallback_of_an_async_function_may_be_async() -> None:
    async def other() -> str:
        return "other"

    assert wrap(fails(9), "async", fallback=other)() == "other"


@both
def test_when_the_fallback_fails_too_the_first_error_stays(flavour: str) -> None:
    with pytest.raises(SkillFailed, match="call 1; and its fallback failed: the other one") as caught:
        wrap(fails(9), flavour, fallback=fails(9, OSError("the other one")))()
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_timed_out_function_is_not_called_again_for_it_may_have_had_its_effect() -> None:
    calls: list[int] = []

    @safe_execute(timeout=0.05, max_retries=3, fallback="n/a")
    def pay() -> None:
        calls.append(1)
        time.sleep(0.5)

    with pytest.raises(SkillFailed) as caught:
        pay()
    assert (caught.value.kind, caught.value.attempts, calls) == ("timeout", 1, [1])
    assert isinstance(caught.value.__cause__, CallTimeout)
    assert "idempotent=True" in caught.value.hint


def test_an_idempotent_function_is_called_again_after_a_timeout_and_may_fall_back() -> None:
    calls: list[int] = []

    @safe_execute(timeout=0.05, max_retries=2, idempotent=True, fallback="n/a", sleep=Waits())
    def look() -> None:
        calls.append(1)
        time.sleep(0.5)

    assert look() == "n/a"
    assert calls == [1, 1, 1]


def test_a_timeout_of_an_async_function_cancels_it() -> None:
    ended: list[str] = []

    @safe_execute(timeout=0.05)
    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("cancelled")

    with pytest.raises(SkillFailed):
        asyncio.run(slow())
    assert ended == ["cancelled"]


def test_a_sync_function_leaves_its_thread_only_under_a_timeout() -> None:
    assert safe_execute(threading.get_ident)() == threading.get_ident()
    assert safe_execute(timeout=5)(threading.get_ident)() != threading.get_ident()


def test_a_hung_call_does_not_hold_up_the_next_one() -> None:
    safe = safe_execute(timeout=0.05)(time.sleep)
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(SkillFailed):
            safe(5)
    assert time.monotonic() - began < 4


def test_what_a_failed_call_tells_is_cut() -> None:
    def bad() -> None:
        raise ValueError("x" * 10_000)

    with pytest.raises(SkillFailed) as caught:
        safe_execute(fallback=bad)(bad)()
    assert 2 * MAX_MESSAGE < len(str(caught.value)) < 2 * MAX_MESSAGE + 200


def test_methods_can_be_safe_executed() -> None:
    class Counter:
        def __init__(self) -> None:
            self.calls = 0

        @safe_execute(max_retries=2, backoff=0)
        def count(self, most: int) -> int:
            self.calls += 1
            if self.calls < most:
                raise ValueError
            return self.calls

    assert Counter().count(3) == 3


def test_twice_is_refused_because_the_retries_would_multiply() -> None:
    with pytest.raises(BadSkill, match="twice"):
        safe_execute(max_retries=1)(safe_execute(max_retries=1)(fails(0)))


@pytest.mark.parametrize(
    "words",
    [
        {"max_retries": -1},
        {"max_retries": 1.5},
        {"max_retries": True},
        {"timeout": 0},
        {"timeout": float("inf")},
        {"timeout": "1"},
        {"retry_on": KeyboardInterrupt},
        {"retry_on": "parameters"},
        {"retry_on": "json.JSONDecodeError"},
        {"retry_on": 3},
        {"backoff": {"base": -1}},
        {"backoff": {"bse": 1}},
        {"backoff": "fast"},
        {"fallback": {"skill": "other"}},
    ],
)
def test_words_that_make_no_sense_are_refused(words: dict[str, Any]) -> None:
    with pytest.raises(BadSkill):
        safe_execute(**words)(lambda: 1)


def test_what_cannot_be_called_once_and_by_name_is_refused() -> None:
    def generate() -> Any:
        yield 1

    async def fall_back() -> None: ...

    for bad in (generate, 3, int):
        with pytest.raises(BadSkill):
            safe_execute(max_retries=1)(bad)
    with pytest.raises(BadSkill, match="sync"):
        safe_execute(fallback=fall_back)(lambda: 1)
