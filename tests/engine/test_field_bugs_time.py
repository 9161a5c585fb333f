"""Field bugs F01, F02 and F10: timeouts that hold, retries that pay once, and how often "retries: 3" is."""

from __future__ import annotations

import functools
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import SkillContext, safe_execute, skill
from fsm_agent.clock import SystemClock
from tests.engine.support import basic, bench, plan_of, statuses

LEDGER_PLAN = {"id": "pay", "skill": "pay", "parameters": {"amount": 10}, "max_retries": 3, "timeout": 5}


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    """What a hung thread waits for, so that it ends with its test."""
    release = threading.Event()
    yield release
    release.set()


# F01 A timeout that is accepted and never enforced ----------------------------------------------------------------


def test_f01a_a_hung_sync_skill_times_out_and_holds_up_nobody(hang: threading.Event) -> None:
    def sleep_sync(s: float) -> None:
        hang.wait(s)

    async def other() -> str:
        return "done"

    made = bench([sleep_sync, other], clock=SystemClock())
    began = time.monotonic()
    result = made.run(
        plan_of(
            {"id": "hung", "skill": "sleep_sync", "parameters": {"s": 30}, "timeout": 0.5, "recovery": "skip"},
            {"id": "other", "skill": "other"},
        )
    )
    assert 0.5 <= time.monotonic() - began < 2.5
    assert result.tasks["hung"].error == {
        "kind": "timeout", "type": None, "attempt": 1,
        "message": "no result within 0.5 s; it still runs, and what it comes to is dropped",
    }  # fmt: skip
    assert result.trace == [("other", "ok"), ("hung", "fail")]
    assert [(event.task, event.why) for event in made.of("call_abandoned")] == [("hung", "timeout")]


def test_f01b_a_hung_async_skill_is_cancelled_at_its_timeout() -> None:
    made = basic()
    result = made.run(
        plan_of(
            {"id": "hung", "skill": "nap", "parameters": {"s": 30}, "timeout": 0.5, "recovery": "skip"},
            {"id": "other", "skill": "nap", "parameters": {"s": 0.1}},
        )
    )
    assert made.clock.monotonic() == 0.5
    assert (result.tasks["hung"].error or {})["kind"] == "timeout"
    assert result.trace == [("other", "ok"), ("hung", "fail")]


def test_f01c_an_async_skill_that_blocks_the_thread_never_succeeds_and_the_journal_names_it() -> None:
    async def block(s: float) -> str:
        time.sleep(s)
        return "late"

    async def other() -> str:
        return "done"

    made = bench([block, other], clock=SystemClock())
    result = made.run(
        plan_of(
            {"id": "blocks", "skill": "block", "parameters": {"s": 0.9}, "timeout": 0.3, "recovery": "skip"},
            {"id": "other", "skill": "other"},
        )
    )
    assert (result.tasks["blocks"].error or {})["kind"] == "timeout"
    assert result.tasks["other"].status == "SUCCEEDED"
    (told,) = made.of("loop_blocked")
    assert told.task == "blocks"
    assert 0.5 < told.seconds < 3


@pytest.mark.parametrize("form", ["sync", "stubborn"])
def test_f01_the_process_exits_at_once_though_a_skill_still_hangs(form: str) -> None:
    program = """
        import asyncio, sys, time
        from fsm_agent import PlannerEngine

        def sync():
            time.sleep(30)

        async def stubborn():
            end = time.monotonic() + 30
            while time.monotonic() < end:
                try:
                    await asyncio.sleep(30)
                except asyncio.CancelledError:
                    pass

        task = {"id": "hung", "skill": sys.argv[1], "timeout": 0.2}
        result = PlannerEngine([sync, stubborn]).run_sync({"tasks": [task]})
        print(result.phase, result.reason["kind"])
    """
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), form],
        capture_output=True, text=True, timeout=20, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "failed timeout\n", "")
    assert time.monotonic() - began < 10


# F02 A retry that pays twice --------------------------------------------------------------------------------------


class Ledger:
    """A file with a line a payment, and the keys under which the payments were made."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ledger"
        self.keys: list[str] = []

    def pay(self, amount: float, context: SkillContext) -> None:
        self.keys.append(context.idempotency_key)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{amount}\n")

    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").split()


@pytest.mark.parametrize("then", ["raise", "time out"])
def test_f02_a_payment_that_fails_after_its_effect_is_made_once(then: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)

    @skill(risk="high")
    async def pay(amount: float, context: SkillContext) -> None:
        ledger.pay(amount, context)
        if then == "raise":
            raise OSError("the line went dead")
        await made.clock.sleep(60)

    made = basic({"pay": pay}, approver=lambda request: True)
    result = made.run(plan_of(LEDGER_PLAN))
    assert ledger.lines() == ["10.0"]
    assert result.phase == "failed"
    assert (result.reason or {})["kind"] == ("exception" if then == "raise" else "timeout")
    assert (result.tasks["pay"].visits, result.tasks["pay"].attempts) == (1, 1)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"on_failure": "handler"}, {"pay": "FAILED", "handler": "SUCCEEDED"}),
        ({"recovery": "skip"}, {"pay": "optional", "handler": "SUCCEEDED"}),
    ],
)
def test_f02_after_the_timeout_of_a_payment_its_handler_or_its_recovery_goes_on(
    words: dict[str, Any], expected: dict[str, str], tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path)

    @skill(risk="high")
    async def pay(amount: float, context: SkillContext) -> None:
        ledger.pay(amount, context)
        await made.clock.sleep(60)

    made = basic({"pay": pay}, approver=lambda request: True)
    result = made.run(plan_of({**LEDGER_PLAN, **words}, {"id": "handler"}))
    assert (result.phase, result.outcome) == ("completed", "handled_failures")
    assert statuses(result) == expected
    assert ledger.lines() == ["10.0"]


def test_f02_a_fallback_does_not_pay_again_after_the_timeout_of_a_payment(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)

    @skill(fallback="pay_elsewhere")
    async def pay(amount: float, context: SkillContext) -> None:
        ledger.pay(amount, context)
        await made.clock.sleep(60)

    async def pay_elsewhere(amount: float, context: SkillContext) -> None:
        ledger.pay(amount, context)

    made = basic({"pay": pay, "pay_elsewhere": pay_elsewhere})
    assert made.run(plan_of(LEDGER_PLAN)).phase == "failed"
    assert ledger.lines() == ["10.0"]


def test_f02_what_its_author_calls_safe_to_retry_is_tried_again_under_the_same_key(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)

    @skill(retry_on=OSError)
    async def pay(amount: float, context: SkillContext) -> None:
        ledger.pay(amount, context)
        raise ConnectionError("refused")

    made = basic({"pay": pay})
    result = made.run(plan_of(LEDGER_PLAN))
    assert result.tasks["pay"].attempts == len(ledger.keys) == 4
    assert len(set(ledger.keys)) == 1


def test_f02_a_plan_cannot_widen_what_its_author_calls_safe_to_retry(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)

    @skill(retry_on=TimeoutError)
    async def pay(amount: float, context: SkillContext) -> None:
        ledger.pay(amount, context)
        raise ValueError("no such account")

    made = basic({"pay": pay})
    result = made.run(plan_of({**LEDGER_PLAN, "retry_on": ["ValueError", "timeout"]}))
    assert result.tasks["pay"].attempts == len(ledger.lines()) == 1


def test_f02_a_safe_executed_skill_has_no_second_retry_loop_below_the_engine() -> None:
    made = basic()

    @safe_execute(max_retries=5, retry_on=OSError)
    async def pay(context: SkillContext) -> None:
        made.calls.note(context)
        raise OSError("down")

    made.engine.skills.add(pay)
    result = made.run(
        plan_of({"id": "own", "skill": "pay"}, {"id": "less", "skill": "pay", "max_retries": 1}, recovery="skip")
    )
    assert dict(made.calls.of) == {"own": 6, "less": 2}
    assert (result.tasks["own"].attempts, result.tasks["less"].attempts) == (6, 2)


# F10 How often is "retries: 3"? -----------------------------------------------------------------------------------


@pytest.mark.parametrize("failures", range(5))
@pytest.mark.parametrize("retries", [0, 1, 3])
@pytest.mark.parametrize("with_fallback", [False, True])
def test_f10_a_visit_has_at_most_one_attempt_more_than_its_retries(
    retries: int, failures: int, with_fallback: bool
) -> None:
    made = basic()
    task = {"id": "a", "skill": "fail", "parameters": {"n": failures}, "max_retries": retries}
    if with_fallback:
        task["fallback"] = {"value": "instead"}
    result = made.run(plan_of(task))
    done = result.tasks["a"]
    enough = failures <= retries
    assert made.calls.of["a"] == done.attempts == min(failures, retries) + 1
    assert done.status == ("SUCCEEDED" if enough or with_fallback else "FAILED")
    assert done.fallback_used is (with_fallback and not enough)
    assert done.data == ({"calls": failures + 1} if enough else "instead" if with_fallback else None)
    assert (done.error is None) is enough
    if not enough:
        assert done.error == {
            "kind": "exception", "type": "OSError", "message": f"call {retries + 1} fails", "attempt": retries + 1
        }  # fmt: skip


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_f10_a_fallback_skill_is_called_once_and_after_the_last_attempt(retries: int) -> None:
    made = basic()
    task = {"id": "a", "skill": "fail", "parameters": {"n": 99}, "max_retries": retries}
    made.run(plan_of({**task, "fallback": {"skill": "ok", "parameters": {}}}))
    assert made.calls.order == ["a"] * (retries + 2)
    failed = [(event.attempt, event.then) for event in made.of("attempt_failed")]
    assert failed == [(number, "retry") for number in range(1, retries + 1)] + [(retries + 1, "fallback")]


def test_f10_each_visit_in_a_loop_has_its_own_attempts() -> None:
    made = basic()
    task = {"id": "a", "skill": "fail", "parameters": {"n": 5}, "max_retries": 1, "on_failure": "a", "max_visits": 4}
    result = made.run(plan_of(task))
    assert (result.tasks["a"].visits, result.tasks["a"].attempts) == (3, 6)
    assert [event.attempts for event in made.of("task_evaluated")] == [2, 2, 2]
    assert [event.attempt for event in made.of("attempt_failed")] == [1, 1, 1]
    assert result.tasks["a"].status == "SUCCEEDED"


def test_f10_the_default_is_one_retry_for_an_idempotent_skill_and_none_for_another() -> None:
    made = basic()

    async def plain(context: SkillContext) -> None:
        made.calls.note(context)
        raise OSError("down")

    made.engine.skills.add(plain)
    made.engine.skills.add(skill(idempotent=True)(functools.partial(plain)), "again")
    made.run(plan_of({"id": "plain", "skill": "plain", "recovery": "skip"}, {"id": "again", "skill": "again"}))
    assert dict(made.calls.of) == {"plain": 1, "again": 2}
