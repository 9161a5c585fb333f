"""`safe_execute`: timeouts, retries and a fallback around a plain function, with or without an engine.

One attempt loop without any I/O, `attempts`, over the same policy as the engine's; two thin shells make the calls and
the waits, one for sync functions and one for async. A registry takes the function out of its shell and the policy
with it, so that there is never a second loop below the engine's.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any, TypeVar, overload

from fsm_agent.clock import Clock, RandomSource, SystemClock, system_random
from fsm_agent.errors import BadSkill, SkillFailed
from fsm_agent.plan.catalog import SkillPolicy
from fsm_agent.plan.model import Fallback
from fsm_agent.plan.policy import ANY_EXCEPTION, Failure, Policy, Retry, UseFallback, after_failure, effective_policy
from fsm_agent.skills.isolation import call, call_blocking
from fsm_agent.skills.outcomes import cut, failure_of, reported, reported_failure
from fsm_agent.skills.policy_words import BackoffWords, RetryOn, policy_words
from fsm_agent.skills.signature import Function, check_function, is_async, name_of, takes_nothing

F = TypeVar("F", bound=Callable[..., Any])

ATTRIBUTE = "__fsm_safe__"
"""Where a safe-executed function carries its policy and the bare function."""

CANCEL_GRACE = 0.1
"""How long a timed-out async function may take to end before it is abandoned, in seconds."""


@dataclass(frozen=True, slots=True)
class Safe:
    """What `safe_execute` was told about a function."""

    function: Function
    words: SkillPolicy
    idempotent: bool
    stand_in: Function | None = None
    """The fallback, where it is a function."""
    value: Fallback | None = None
    """The fallback, where it is a value."""

    def policy(self, *, idempotent: bool) -> SkillPolicy:
        """The author's policy: any exception is tried again unless something else was said."""
        retry_on = self.words.retry_on
        if retry_on is None and not idempotent:
            retry_on = (ANY_EXCEPTION,)
        return replace(self.words, retry_on=retry_on, fallback=self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A step of the attempt loop: call this function. The answer is (value, None) or (None, error)."""

    function: Function
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """A step of the attempt loop: wait so many seconds."""

    seconds: float


Step = Call | Wait
Answer = tuple[Any, Exception | None]
NO_ANSWER: Answer = (None, None)


@overload
def safe_execute(function: F, /) -> F: ...
@overload
def safe_execute(
    *,
    max_retries: int | None = None,
    timeout: float | None = None,
    retry_on: RetryOn | None = None,
    backoff: BackoffWords | None = None,
    fallback: Any = None,
    idempotent: bool = False,
    clock: Clock | None = None,
    sleep: Callable[[float], Any] | None = None,
    random: RandomSource | None = None,
) -> Callable[[F], F]: ...
def safe_execute(  # noqa: PLR0913 - the keywords are what an author can say, one each
    function: Any = None,
    /,
    *,
    max_retries: int | None = None,
    timeout: float | None = None,
    retry_on: RetryOn | None = None,
    backoff: BackoffWords | None = None,
    fallback: Any = None,
    idempotent: bool = False,
    clock: Clock | None = None,
    sleep: Callable[[float], Any] | None = None,
    random: RandomSource | None = None,
) -> Any:
    """Call a function under a time limit, again after errors, and with a fallback: `@safe_execute(max_retries=3)`.

    The decorated function returns its own value, or the fallback's; when all has failed it raises SkillFailed, whose
    cause is the last error. A sync function stays sync, an async one async. KeyboardInterrupt, SystemExit and
    cancellation pass through at once.

    `max_retries`: how many attempts may follow the first; by default 1 if idempotent, else 0. `timeout` (seconds) is
    for one attempt; a sync function then runs on a daemon thread, and is left behind when its time is over. `retry_on`
    is any exception by default; after a timeout only an `idempotent` function is called again, or its fallback used,
    because the first call may have had its effect. A returned dict with `success: false` is a failure of kind
    `reported`. `fallback` is a value, or a function that takes the same arguments (or none);
    `{"value": None}` is the value None. `clock`, `sleep` and `random` are for tests.
    """
    words = policy_words("safe_execute", timeout=timeout, max_retries=max_retries, retry_on=retry_on, backoff=backoff)
    tools = _Tools(clock or SystemClock(), random or system_random(), sleep)

    def decorate(bare: Function) -> Function:
        _check(bare)
        stand_in, value = _fallback(bare, fallback)
        return _wrapped(Safe(bare, words, bool(idempotent), stand_in, value), tools)

    return decorate if function is None else decorate(function)


def attempts(name: str, safe: Safe, policy: Policy, clock: Clock, random: RandomSource) -> Generator[Step, Answer, Any]:
    """The attempts of one call, as steps for whoever drives it. Returns the value, or raises SkillFailed."""
    made = 0
    while True:
        made += 1
        value, error = yield Call(safe.function, safe.words.timeout)
        failure = _failure(value, error, made, clock)
        if failure is None:
            return value
        decision = after_failure(policy, failure, random.random())
        if isinstance(decision, Retry):
            yield Wait(decision.delay)
            continue
        detail = cut(failure.message)
        if isinstance(decision, UseFallback):
            value, second = yield Call(_stand_in(safe))
            failed_too = _failure(value, second, 1, clock)
            if failed_too is None:
                return value
            detail += f"; and its fallback failed: {cut(failed_too.message)}"
        raise SkillFailed(name, failure.kind, made, detail, hint=_hint(policy, failure)) from error


def unwrap(function: Function) -> tuple[Function, Safe | None]:
    """The bare function, and what `safe_execute` was told about it, if it was.

    Raises BadSkill where another decorator lies above: taking safe_execute out would take that one out too.
    """
    safe = getattr(function, ATTRIBUTE, None)
    if not isinstance(safe, Safe):
        return function, None
    if getattr(function, "__wrapped__", None) is not safe.function:
        raise BadSkill(
            f"{name_of(function)!r} has a decorator above safe_execute",
            hint="put safe_execute above the others, with only @skill above it",
        )
    if inspect.ismethod(function):
        return MethodType(safe.function, function.__self__), safe
    return safe.function, safe


@dataclass(frozen=True, slots=True)
class _Tools:
    clock: Clock
    random: RandomSource
    sleep: Callable[[float], Any] | None


def _wrapped(safe: Safe, tools: _Tools) -> Function:
    name = name_of(safe.function)
    author = safe.policy(idempotent=safe.idempotent)
    if safe.stand_in is not None:  # the loop has only to know that there is one
        author = replace(author, fallback=Fallback(skill=name))
    policy = effective_policy(SkillPolicy(), author, idempotent=safe.idempotent)
    begin = functools.partial(attempts, name, safe, policy, tools.clock, tools.random)

    @functools.wraps(safe.function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return _drive(begin(), args, kwargs, tools)

    @functools.wraps(safe.function)
    async def run_async(*args: Any, **kwargs: Any) -> Any:
        return await _drive_async(begin(), args, kwargs, tools)

    wrapper = run_async if is_async(safe.function) else run
    setattr(wrapper, ATTRIBUTE, safe)
    return wrapper


def _drive(steps: Generator[Step, Answer, Any], args: Any, kwargs: Mapping[str, Any], tools: _Tools) -> Any:
    sleep = tools.sleep or time.sleep
    answer: Answer | None = None
    while True:
        try:
            step = next(steps) if answer is None else steps.send(answer)
        except StopIteration as end:
            return end.value
        answer = NO_ANSWER
        if isinstance(step, Wait):
            sleep(step.seconds)
            continue
        try:
            if step.timeout is None:
                answer = step.function(*args, **kwargs), None
            else:
                work = functools.partial(step.function, *args, **kwargs)
                answer = call_blocking(work, timeout=step.timeout, clock=tools.clock), None
        except Exception as error:  # noqa: BLE001 - the attempt loop decides about it
            answer = None, error


async def _drive_async(steps: Generator[Step, Answer, Any], args: Any, kwargs: Mapping[str, Any], tools: _Tools) -> Any:
    sleep = tools.sleep or tools.clock.sleep
    answer: Answer | None = None
    while True:
        try:
            step = next(steps) if answer is None else steps.send(answer)
        except StopIteration as end:
            return end.value
        answer = NO_ANSWER
        if isinstance(step, Wait):
            await _awaited(sleep(step.seconds))
            continue
        work = functools.partial(step.function, *args, **kwargs)
        try:
            if step.timeout is None:
                answer = await _awaited(work()), None
            else:
                value = await call(work, {}, is_async=True, timeout=step.timeout, clock=tools.clock, grace=CANCEL_GRACE)
                answer = value, None
        except Exception as error:  # noqa: BLE001 - the attempt loop decides about it
            answer = None, error


async def _awaited(value: Any | Awaitable[Any]) -> Any:
    return await value if inspect.isawaitable(value) else value


def _failure(value: Any, error: Exception | None, attempt: int, clock: Clock) -> Failure | None:
    if error is not None:
        return failure_of(error, attempt, clock.now())
    report = reported(value)
    return None if report is None else reported_failure(report, attempt)


def _check(function: Function) -> None:
    name = name_of(function)
    check_function(function, name)
    if isinstance(getattr(function, ATTRIBUTE, None), Safe):
        raise BadSkill(f"{name!r} has safe_execute twice", hint="its retries would multiply: keep one of the two")


def _fallback(function: Function, fallback: Any) -> tuple[Function | None, Fallback | None]:
    """The fallback as a function or as a value; at most one of the two is there."""
    if fallback is None:
        return None, None
    if isinstance(fallback, Fallback):
        fallback = fallback.model_dump(exclude_unset=True)
    if callable(fallback):
        if is_async(fallback) and not is_async(function):
            raise BadSkill(f"{name_of(function)!r} is sync, so its fallback cannot be async")
        return fallback, None
    if isinstance(fallback, Mapping) and fallback.keys() == {"value"}:
        return None, Fallback(value=fallback["value"])
    if isinstance(fallback, Mapping) and "skill" in fallback and fallback.keys() <= {"skill", "parameters"}:
        raise BadSkill(
            "the fallback of safe_execute is a value or a function: without an engine there are no skills by name",
            hint="name a skill in @skill(fallback=…), or in the plan",
        )
    return None, Fallback(value=fallback)


def _stand_in(safe: Safe) -> Function:
    """What is called, with the function's own arguments, when the fallback has its turn."""
    stand_in, value = safe.stand_in, safe.value
    if stand_in is None:
        return lambda *_args, **_kwargs: None if value is None else value.value
    if takes_nothing(stand_in):
        return lambda *_args, **_kwargs: stand_in()
    return stand_in


def _hint(policy: Policy, failure: Failure) -> str:
    if failure.kind == "timeout" and not policy.idempotent:
        return "it may have had its effect, so it is not called again; if that does no harm, say idempotent=True"
    return ""
