"""Retry decisions as data: how often, how long, and what comes last.

One interpreter, `after_failure`; the engine and `safe_execute` are its two shells. Pure: the chance is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from fsm_agent.plan.catalog import SkillPolicy, SkillSpec
from fsm_agent.plan.model import Backoff, Fallback, Task

ENGINE_TIMEOUT = 60.0
"""How long one attempt may take where neither the task nor its skill says, in seconds."""

RETRIABLE_KINDS = ("timeout", "reported", "verification")
"""The kinds of failure, besides exceptions, that `retry_on` may name. No other kind is ever tried again."""

OTHER_KINDS = (
    "exception", "parameters", "condition", "not_json", "too_large", "write_conflict", "undeclared_write",
    "permission", "rejected", "expired", "interrupted", "cancelled", "circuit_open", "rate_limited", "worker_died",
    "limit",
)  # fmt: skip
"""The kinds of failure that `retry_on` cannot name."""

FALLBACK_KINDS = ("exception", *RETRIABLE_KINDS)
"""The kinds of failure that a fallback may stand in for."""

ANY_EXCEPTION = "Exception"
"""The class name that stands for every exception (but not for SystemExit and its like)."""

IDEMPOTENT_RETRY_ON = (ANY_EXCEPTION, "timeout", "reported")
"""What an idempotent skill is tried again for where nobody says otherwise."""

_ENGINE_BACKOFF = Backoff.model_construct()  # its defaults; checking them would build pydantic's validators at import
T = TypeVar("T")


class PolicyWords(Protocol):
    """What a task, or a skill's author, says about calls; None leaves it to the next one. A `Task` is one."""

    @property
    def timeout(self) -> float | None: ...
    @property
    def max_retries(self) -> int | None: ...
    @property
    def retry_on(self) -> list[str] | tuple[str, ...] | None: ...
    @property
    def backoff(self) -> Backoff | None: ...
    @property
    def fallback(self) -> Fallback | None: ...


@dataclass(frozen=True, slots=True)
class Policy:
    """The effective policy of a task: the task's word over the skill's, the skill's over the engine's."""

    timeout: float
    """How long one attempt may take, in seconds."""
    max_retries: int
    """How many attempts may follow the first one of a visit."""
    retry_on: tuple[str, ...] | None
    """What is tried again: exception class names and kinds. None: nothing."""
    retry_any: bool
    """Whether every exception is tried again, whatever its class."""
    backoff: Backoff
    fallback: Fallback | None
    idempotent: bool
    retry_within: tuple[str, ...] | None = None
    """Where a plan narrows what an author allows: the author's list. A failure must be on both lists."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt. `attempt` counts from 1 within the visit, attempts before a crash included."""

    kind: str
    type: str | None
    message: str
    attempt: int
    classes: tuple[str, ...] = ()
    """Names of the exception's class and its bases; empty where there was no exception, or they are not known."""
    retry_after: float | None = None
    """The wait that the error itself asks for, in seconds."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Call again, after `delay` seconds."""

    delay: float


@dataclass(frozen=True, slots=True)
class UseFallback:
    """No further attempt: the fallback stands in, once."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No further attempt, and no fallback: the failure stands."""


Decision = Retry | UseFallback | GiveUp


def policy_of(task: Task, spec: SkillSpec) -> Policy:
    """The policy under which `task` calls the skill `spec`."""
    return effective_policy(task, spec.policy, idempotent=spec.idempotent)


def effective_policy(task: PolicyWords, author: SkillPolicy, *, idempotent: bool) -> Policy:
    """The first word that is given: the task's, the author's, the engine's. See `policy_of`."""
    retry_on, within = _retry_lists(task.retry_on, author.retry_on, idempotent)
    return Policy(
        timeout=_first(task.timeout, author.timeout, ENGINE_TIMEOUT),
        max_retries=_first(task.max_retries, author.max_retries, 1 if idempotent else 0),
        retry_on=retry_on,
        retry_any=ANY_EXCEPTION in (retry_on or ()) and (within is None or ANY_EXCEPTION in within),
        backoff=_first(task.backoff, author.backoff, _ENGINE_BACKOFF),
        fallback=task.fallback or author.fallback,
        idempotent=idempotent,
        retry_within=within,
    )


def after_failure(policy: Policy, failure: Failure, chance: float) -> Decision:
    """What follows a failed attempt. `chance`, in [0, 1), is drawn by the caller and spreads the waits."""
    if failure.attempt <= policy.max_retries and may_retry(policy, failure):
        wait = backoff_delay(policy.backoff, failure.attempt, chance)
        return Retry(max(wait, failure.retry_after or 0.0))
    if policy.fallback is not None and may_fall_back(policy, failure):
        return UseFallback()
    return GiveUp()


def may_retry(policy: Policy, failure: Failure) -> bool:
    """Whether a failure is of a sort that is tried again, however many attempts are left."""
    if failure.kind == "timeout" and not policy.idempotent:
        return False  # it may have taken effect
    if failure.kind == "exception" and policy.retry_any and (ANY_EXCEPTION in failure.classes or not failure.classes):
        return True
    return _is_on(policy.retry_on, failure) and (policy.retry_within is None or _is_on(policy.retry_within, failure))


def may_fall_back(policy: Policy, failure: Failure) -> bool:
    """Whether a fallback may stand in for a failure, if there is one."""
    if failure.kind == "timeout":
        return policy.idempotent  # else the call may still take effect, and the fallback would come on top
    return failure.kind in FALLBACK_KINDS


def after_interruption(
    policy: Policy, attempts: int, interruptions: int
) -> Literal["again", "repeat", "fallback", "ask"]:
    """What follows when the process died during a call of a visit that has begun so many attempts, and was interrupted
    so often before.

    What is not idempotent may have taken effect: a person must look. Else the interrupted attempt counts, and the next
    one is made. If it was the last one, it is itself made once more, so that a crash does not change how a run ends;
    but a call that takes its process along again and again is not made for ever.
    """
    if not policy.idempotent:
        return "ask"
    if attempts <= policy.max_retries:
        return "again"
    if not interruptions:
        return "repeat"
    return "fallback" if policy.fallback is not None else "ask"


def backoff_delay(backoff: Backoff, attempt: int, chance: float) -> float:
    """The wait after attempt `attempt` (from 1), in seconds: random(0, min(cap, base · factor^(attempt - 1)))."""
    if backoff.base == 0:
        return 0.0
    try:
        bound = min(backoff.cap, backoff.base * backoff.factor ** (attempt - 1))
    except OverflowError:
        bound = backoff.cap
    return bound if backoff.jitter == "none" else bound * chance


def _retry_lists(
    plan: list[str] | tuple[str, ...] | None, author: tuple[str, ...] | None, idempotent: bool
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """What is tried again, and the second list that narrows it; None where there is none."""
    if idempotent:
        words = plan if plan is not None else author if author is not None else IDEMPOTENT_RETRY_ON
        return tuple(words) or None, None
    if not author:
        return None, None
    return (author, None) if plan is None else (tuple(plan) or None, author)


def _is_on(names: tuple[str, ...] | None, failure: Failure) -> bool:
    if not names:
        return False
    if failure.kind == "exception":
        return any(name in names for name in failure.classes)
    return failure.kind in RETRIABLE_KINDS and failure.kind in names


def _first(task: T | None, author: T | None, engine: T) -> T:
    if task is not None:
        return task
    return author if author is not None else engine
