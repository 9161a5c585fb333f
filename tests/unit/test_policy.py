"""Retry decisions: how often, how long, and what comes last."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.plan.catalog import SkillPolicy, SkillSpec
from fsm_agent.plan.model import Backoff, Fallback, Task
from fsm_agent.plan.policy import (
    ENGINE_TIMEOUT,
    OTHER_KINDS,
    Failure,
    GiveUp,
    Policy,
    Retry,
    UseFallback,
    after_failure,
    backoff_delay,
    policy_of,
)

NO_WAIT = Backoff(base=0)
VALUE = Fallback(value=1)
OS_ERROR = ("ConnectionRefusedError", "ConnectionError", "OSError", "Exception")


def policy(*, idempotent: bool = False, task: dict[str, Any] | None = None, **author: Any) -> Policy:
    spec = SkillSpec("s", idempotent=idempotent, policy=SkillPolicy(**author))
    return policy_of(Task.model_validate({"id": "t", **(task or {})}), spec)


def failure(
    kind: str = "exception", classes: tuple[str, ...] = ("ValueError", "Exception"), attempt: int = 1
) -> Failure:
    return Failure(
        kind, classes[0] if kind == "exception" else None, "…", attempt, classes if kind == "exception" else ()
    )


def is_retried(of: Policy, what: Failure) -> bool:
    return isinstance(after_failure(of, what, 0.5), Retry)


def test_the_engine_gives_what_neither_task_nor_author_says() -> None:
    made = policy()
    assert (made.timeout, made.max_retries, made.retry_on, made.fallback) == (ENGINE_TIMEOUT, 0, None, None)
    assert made.backoff == Backoff(base=0.5, factor=2, cap=30, jitter="full")


def test_an_idempotent_skill_is_tried_again_once_by_default() -> None:
    assert policy(idempotent=True).max_retries == 1


def test_a_task_wins_over_its_skill() -> None:
    made = policy(
        task={"timeout": 1.0, "max_retries": 0, "backoff": {"base": 0.0}, "fallback": {"value": 2}},
        timeout=9.0, max_retries=5, backoff=Backoff(base=3), fallback=VALUE,
    )  # fmt: skip
    assert (made.timeout, made.max_retries, made.backoff.base) == (1.0, 0, 0.0)
    assert made.fallback == Fallback(value=2)


def test_an_author_wins_over_the_engine() -> None:
    made = policy(timeout=9.0, max_retries=5, backoff=NO_WAIT, fallback=VALUE)
    assert (made.timeout, made.max_retries, made.backoff, made.fallback) == (9.0, 5, NO_WAIT, VALUE)


@pytest.mark.parametrize(
    ("idempotent", "author", "plan", "what", "expected"),
    [
        # an idempotent skill: any exception, timeout and reported; a plan may say otherwise
        (True, None, None, failure(), True),
        (True, None, None, failure("timeout"), True),
        (True, None, None, failure("reported"), True),
        (True, None, None, failure("verification"), False),
        (True, None, ["verification"], failure("verification"), True),
        (True, None, ["verification"], failure(), False),
        (True, ("OSError",), None, failure(), False),
        (True, ("OSError",), ["ValueError"], failure(), True),
        (True, None, [], failure(), False),
        # one that is not idempotent: only what its author names, and a plan can only narrow that
        (False, None, None, failure(), False),
        (False, None, ["Exception", "reported"], failure(), False),
        (False, None, ["Exception", "reported"], failure("reported"), False),
        (False, ("OSError",), None, failure(classes=OS_ERROR), True),
        (False, ("OSError",), None, failure(), False),
        (False, ("OSError",), ["Exception"], failure(classes=OS_ERROR), True),
        (False, ("OSError",), ["Exception"], failure(), False),
        (False, ("OSError",), ["ConnectionError"], failure(classes=OS_ERROR), True),
        (False, ("OSError",), ["ConnectionError"], failure(classes=("OSError", "Exception")), False),
        (False, ("OSError",), [], failure(classes=OS_ERROR), False),
        (False, ("Exception",), None, failure(), True),
        (False, ("reported", "verification"), None, failure("reported"), True),
        (False, ("reported", "verification"), ["verification"], failure("reported"), False),
        (False, ("reported", "verification"), ["verification"], failure("verification"), True),
        # never after a timeout: it may have taken effect
        (False, ("timeout", "Exception"), None, failure("timeout"), False),
        (False, ("timeout", "Exception"), ["timeout"], failure("timeout"), False),
        # SystemExit and its like are no Exception
        (True, None, None, failure(classes=("SystemExit",)), False),
    ],
)  # fmt: skip
def test_what_is_tried_again(
    idempotent: bool, author: tuple[str, ...] | None, plan: list[str] | None, what: Failure, expected: bool
) -> None:
    task: dict[str, Any] = {"max_retries": 3} if plan is None else {"max_retries": 3, "retry_on": plan}
    assert is_retried(policy(idempotent=idempotent, task=task, retry_on=author), what) is expected


@pytest.mark.parametrize("kind", sorted(set(OTHER_KINDS) - {"exception"}))
def test_no_other_kind_is_ever_tried_again_nor_given_a_fallback(kind: str) -> None:
    task = {"max_retries": 3, "retry_on": ["Exception", kind]}
    assert after_failure(policy(idempotent=True, task=task, fallback=VALUE), failure(kind), 0.5) == GiveUp()


@pytest.mark.parametrize("max_retries", [0, 1, 3])
def test_f10_n_retries_are_at_most_n_plus_1_attempts(max_retries: int) -> None:
    made = policy(idempotent=True, task={"max_retries": max_retries})
    retried = [is_retried(made, failure(attempt=attempt)) for attempt in range(1, max_retries + 3)]
    assert retried == [True] * max_retries + [False, False]


@pytest.mark.parametrize(
    ("idempotent", "kind", "expected"),
    [
        (False, "exception", UseFallback()),
        (False, "reported", UseFallback()),
        (False, "verification", UseFallback()),
        (False, "timeout", GiveUp()),
        (True, "timeout", UseFallback()),
        (True, "interrupted", GiveUp()),
        (False, "interrupted", GiveUp()),
        (True, "parameters", GiveUp()),
        (True, "not_json", GiveUp()),
    ],
)
def test_for_which_failures_a_fallback_stands_in(idempotent: bool, kind: str, expected: object) -> None:
    made = policy(idempotent=idempotent, task={"max_retries": 0}, fallback=VALUE)
    assert after_failure(made, failure(kind), 0.5) == expected


def test_a_fallback_comes_after_the_last_attempt() -> None:
    made = policy(idempotent=True, task={"max_retries": 2, "backoff": {"base": 0.0}}, fallback=VALUE)
    decisions = [after_failure(made, failure(attempt=attempt), 0.5) for attempt in (1, 2, 3)]
    assert decisions == [Retry(0.0), Retry(0.0), UseFallback()]


@pytest.mark.parametrize(
    ("attempt", "chance", "expected"),
    [(1, 0.0, 0.0), (1, 0.5, 0.25), (2, 0.5, 0.5), (3, 0.5, 1.0), (7, 0.5, 15.0), (8, 0.5, 15.0), (10**6, 0.5, 15.0)],
)
def test_waits_grow_up_to_the_cap_and_are_spread_by_chance(attempt: int, chance: float, expected: float) -> None:
    assert backoff_delay(Backoff(), attempt, chance) == expected


def test_without_jitter_the_wait_is_the_bound() -> None:
    waits = [backoff_delay(Backoff(base=1, factor=3, cap=10, jitter="none"), attempt, 0.1) for attempt in (1, 2, 3, 4)]
    assert waits == [1, 3, 9, 10]


@pytest.mark.parametrize("attempt", [1_000, 10**9, 10**400])
@pytest.mark.parametrize("backoff", [Backoff(base=1e9, factor=1000, cap=1e9), Backoff(base=0), Backoff(factor=1)])
def test_no_number_of_attempts_overflows(attempt: int, backoff: Backoff) -> None:
    assert 0 <= backoff_delay(backoff, attempt, 0.999) <= backoff.cap


@pytest.mark.parametrize(("wish", "expected"), [(None, 0.25), (0.1, 0.25), (7.0, 7.0)])
def test_a_longer_wait_that_the_error_asks_for_is_respected(wish: float | None, expected: float) -> None:
    what = Failure("exception", "E", "…", 1, ("E", "Exception"), wish)
    assert after_failure(policy(idempotent=True), what, 0.5) == Retry(expected)


def test_an_exception_whose_classes_are_not_known_counts_as_any_exception() -> None:
    assert is_retried(policy(idempotent=True), Failure("exception", "E", "…", 1))
