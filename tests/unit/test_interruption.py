"""What is known of a call that was interrupted, and what follows; and the key of digests over secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsm_agent.core import events as ev
from fsm_agent.core.approvals import digest_of
from fsm_agent.core.calls import Call, call_of
from fsm_agent.engine.keys import DigestKey
from fsm_agent.engine.secrets import Secrets
from fsm_agent.plan.catalog import SkillPolicy
from fsm_agent.plan.model import Fallback
from fsm_agent.plan.policy import after_interruption, effective_policy

VALUE = Fallback(value=1)


@pytest.mark.parametrize(
    ("idempotent", "retries", "fallback", "attempts", "before", "then"),
    [
        (False, 5, None, 1, 0, "ask"),
        (False, 5, VALUE, 1, 0, "ask"),
        (True, 1, None, 1, 0, "again"),
        (True, 3, None, 3, 2, "again"),
        (True, 1, None, 2, 0, "repeat"),
        (True, 0, None, 1, 0, "repeat"),
        (True, 0, VALUE, 1, 0, "repeat"),
        (True, 0, None, 1, 1, "ask"),
        (True, 1, VALUE, 2, 1, "fallback"),
    ],
)
def test_what_follows_an_interruption(
    idempotent: bool, retries: int, fallback: Fallback | None, attempts: int, before: int, then: str
) -> None:
    policy = effective_policy(
        SkillPolicy(max_retries=retries, fallback=fallback, retry_on=("OSError",)), SkillPolicy(), idempotent=idempotent
    )
    assert after_interruption(policy, attempts, before) == then


def test_a_call_knows_how_it_stands() -> None:
    call = call_of(ev.TaskStarted(task="t", visit=2, parameters={"a": 1}), None)
    assert (call.visit, call.parameters, call.attempts, call.calling) == (2, {"a": 1}, 1, True)
    error = ev.TaskError("exception", "down", "OSError", 1)
    call.attempt_failed(ev.AttemptFailed(task="t", visit=2, attempt=1, error=error, delay=5.0, at=10.0))
    assert (call.calling, call.due, call.retried, call.fallback) == (False, 15.0, 1, False)
    call.attempt_started(ev.AttemptStarted(task="t", visit=2, attempt=2))
    call.interrupted(ev.TaskInterrupted(task="t", visit=2, attempt=2, then="fallback", at=20.0))
    assert (call.calling, call.attempts, call.interruptions, call.fallback) == (False, 2, 1, True)
    assert call.error is not None
    assert call.error.kind == "interrupted"


@pytest.mark.parametrize(
    ("attempts", "retried"),
    [([2], 1), ([1], 0), ([1, 1, 1], 0), ([2, 2], 1), ([2, 3], 2)],
)
def test_only_a_further_attempt_says_that_one_was_tried_again(attempts: list[int], retried: int) -> None:
    """The same attempt made once more after a crash is still one: the share of calls for nothing stays below one."""
    call = call_of(ev.TaskStarted(task="t", visit=1), None)
    for attempt in attempts:
        call.interrupted(ev.TaskInterrupted(task="t", visit=1, attempt=call.attempts, then="again"))
        call.attempt_started(ev.AttemptStarted(task="t", visit=1, attempt=attempt))
    assert (call.attempts, call.retried, call.interruptions) == (attempts[-1], retried, len(attempts))


def test_an_attempt_that_failed_and_is_followed_by_another_is_tried_again_once() -> None:
    call = call_of(ev.TaskStarted(task="t", visit=1), None)
    error = ev.TaskError("exception", "down", "OSError", 1)
    call.attempt_failed(ev.AttemptFailed(task="t", visit=1, attempt=1, error=error))
    call.attempt_started(ev.AttemptStarted(task="t", visit=1, attempt=2))
    call.attempt_failed(ev.AttemptFailed(task="t", visit=1, attempt=2, error=error, then="fallback"))
    call.attempt_started(ev.AttemptStarted(task="t", visit=1, attempt=2, fallback=True))
    assert (call.attempts, call.retried, call.fallback, call.calling) == (2, 1, True, True)


def test_an_interrupted_fallback_keeps_the_error_that_gave_it_its_turn() -> None:
    call = call_of(ev.TaskStarted(task="t", visit=1), None)
    error = ev.TaskError("exception", "down", "OSError", 1)
    call.attempt_failed(ev.AttemptFailed(task="t", visit=1, attempt=1, error=error, then="fallback"))
    call.attempt_started(ev.AttemptStarted(task="t", visit=1, attempt=1, fallback=True))
    call.interrupted(ev.TaskInterrupted(task="t", visit=1, attempt=1, then="again"))
    assert (call.error, call.fallback) == (error, True)


def test_a_call_that_was_approved_has_the_parameters_of_the_approval() -> None:
    asked = ev.ApprovalAsked(approval="a", kind="task", task="t", visit=1, parameters={"a": "***"}, digest="d")
    assert call_of(ev.TaskStarted(task="t", visit=1), asked) == Call(1, {"a": "***"}, "d")


def test_digests_are_keyed_only_where_there_is_a_secret() -> None:
    mine, other = Secrets(lambda: b"one"), Secrets(lambda: b"two")
    for secrets in (mine, other):
        secrets.keep({"pin": "hunter-22"})
    assert mine.digest({"a": 1}) == other.digest({"a": 1}) == digest_of({"a": 1})
    assert mine.digest({"a": "hunter-22"}) == mine.digest({"a": "hunter-22"})
    assert mine.digest({"a": "hunter-22"}) not in (other.digest({"a": "hunter-22"}), digest_of({"a": "hunter-22"}))


def test_the_key_is_made_once_and_found_again(tmp_path: Path) -> None:
    file = tmp_path / "runs.db.key"
    first = DigestKey(file=file)()
    assert DigestKey(file=file)() == first
    assert (len(first), file.stat().st_mode & 0o777) == (32, 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["runs.db.key"]
    assert DigestKey(b"given", file)() == b"given"
    assert DigestKey()() != DigestKey()()


def test_a_key_that_cannot_be_kept_is_the_processes_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = DigestKey(file=tmp_path / "nowhere" / "key")
    assert key() == key()
    assert "will be asked anew" in caplog.text
