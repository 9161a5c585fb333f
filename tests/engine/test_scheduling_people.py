"""Section 6 of the plan's meaning, and the recovery `pause`: what waits for a person, and what people decide."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from fsm_agent import Answer, ApprovalRequest, RunResult, skill
from fsm_agent.clock import SystemClock
from fsm_agent.errors import DecisionRefused
from tests.engine.support import basic, bench, drive, others_end, plan_of, resumed_after, statuses, until

ASK: dict[str, Any] = {"id": "ask", "skill": "nap", "parameters": {"s": 1}, "approval": "required"}
HANDLED = plan_of({**ASK, "on_failure": "handler"}, {"id": "handler"})


# Approvers ----------------------------------------------------------------------------------------------------------


async def async_yes(request: ApprovalRequest) -> bool:
    await asyncio.sleep(0)
    return True


class Clerk:
    """A callable object as an approver."""

    async def __call__(self, request: ApprovalRequest) -> Answer:
        return Answer(False, by="clerk", why="too dear")


@pytest.mark.parametrize(
    ("approver", "decision", "by", "why"),
    [
        (lambda request: True, "approved", "approver", None),
        (lambda request: False, "rejected", "approver", None),
        (async_yes, "approved", "approver", None),
        (lambda request: Answer(True, by="Ada", why="fine"), "approved", "Ada", "fine"),
        (Clerk(), "rejected", "clerk", "too dear"),
    ],
    ids=["sync yes", "sync no", "async yes", "answer", "object"],
)
def test_an_approver_decides(approver: Any, decision: str, by: str, why: str | None) -> None:
    made = basic(approver=approver)
    result = made.run(HANDLED, run_id="r")
    approved = decision == "approved"
    assert statuses(result) == {
        "ask": "SUCCEEDED" if approved else "FAILED",
        "handler": "not_taken" if approved else "SUCCEEDED",
    }
    (decided,) = result.approvals
    assert [decided[key] for key in ("task", "visit", "decision", "by", "why")] == ["ask", 1, decision, by, why]
    assert isinstance(decided["at"], float)
    assert made.calls.of["ask"] == (1 if approved else 0)
    if not approved:
        assert (result.tasks["ask"].error or {})["kind"] == "rejected"
        assert (result.tasks["ask"].visits, result.tasks["ask"].attempts) == (1, 0)


def test_an_approver_is_asked_with_all_that_it_must_know() -> None:
    asked: list[ApprovalRequest] = []

    @skill(risk="high")
    async def pay(amount: float) -> None: ...

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    made = basic({"pay": pay}, approver=approve)
    task = {"id": "a", "name": "Pay", "description": "the rent", "skill": "pay", "parameters": {"amount": "${3 * 100}"}}
    made.run(plan_of(task), run_id="r")
    (request,) = asked
    assert (request.run_id, request.kind, request.task, request.visit, request.skill) == ("r", "task", "a", 1, "pay")
    assert (request.name, request.description, request.risk) == ("Pay", "the rent", "high")
    assert request.parameters == {"amount": 300}
    assert request.approval == made.of("approval_asked")[0].approval


def broken(request: ApprovalRequest) -> bool:
    raise OSError("no terminal")


@pytest.mark.parametrize(
    ("approver", "words"),
    [
        (lambda request: None, ""),
        (broken, "the approver failed: no terminal"),
        (lambda request: "yes", "the approver returned str, not True, False, None or an Answer"),
    ],
    ids=["None", "raises", "nonsense"],
)
def test_an_approver_that_gives_no_answer_leaves_it_to_a_person(approver: Any, words: str) -> None:
    made = basic(approver=approver)
    paused, result = resumed_after(made, HANDLED, ("ask", "approve"))
    assert (paused.phase, [each["task"] for each in paused.waiting]) == ("paused", ["ask"])
    assert [event.message for event in made.of("approval_handed_on")] == [words]
    assert statuses(result)["ask"] == "SUCCEEDED"


def test_an_approver_may_be_a_plain_function_that_returns_an_awaitable() -> None:
    async def ask(request: ApprovalRequest) -> bool:
        return True

    def approve(request: ApprovalRequest) -> Any:
        return ask(request)

    made = basic(approver=approve)
    assert made.run(plan_of({"id": "ask", "approval": "required"})).completed


def test_several_are_asked_at_once_and_answered_in_any_order() -> None:
    answers: dict[str, asyncio.Event] = {}
    asked: list[str] = []

    async def approve(request: ApprovalRequest) -> bool:
        asked.append(request.task or "")
        await answers.setdefault(request.task or "", asyncio.Event()).wait()
        return request.task != "b"

    made = basic(approver=approve)

    async def main() -> RunResult:
        tasks = ({**ASK, "id": name, "recovery": "skip"} for name in "abc")
        run = asyncio.create_task(made.engine.run(plan_of(*tasks)))
        await until(lambda: len(answers) == 3)
        for name in "cba":
            answers[name].set()
            await until(lambda name=name: made.of("approval_decided", task=name))  # type: ignore[misc] # bound now
        return await run

    result = drive(main())
    assert asked == ["a", "b", "c"]
    assert statuses(result) == {"a": "SUCCEEDED", "b": "optional", "c": "SUCCEEDED"}
    assert "paused" not in {event.dest for event in made.of("phase_changed")}


def test_an_approval_that_waits_holds_no_slot_and_no_lock() -> None:
    made = basic()
    nap = {"skill": "nap", "parameters": {"s": 1}, "locks": ["db"]}
    plan = plan_of({**ASK, "locks": ["db"]}, *({"id": f"t{n}", **nap} for n in range(3)), limits={"max_parallel": 1})
    paused, result = resumed_after(made, plan, ("ask", "approve"))
    assert [paused.tasks[f"t{n}"].status for n in range(3)] == ["SUCCEEDED"] * 3
    assert paused.tasks["ask"].status == "WAITING_APPROVAL"
    assert result.outcome == "clean"


def test_a_sync_approver_that_waits_holds_up_nobody() -> None:
    release = threading.Event()

    def approve(request: ApprovalRequest) -> bool:
        return release.wait(10)

    def go() -> None:
        release.set()

    made = basic({"go": go}, approver=approve)
    assert made.run(plan_of(ASK, {"id": "b", "skill": "go"})).completed


def test_a_run_that_is_cancelled_waits_for_no_approver() -> None:
    stopped: list[str] = []

    async def never(request: ApprovalRequest) -> bool:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("asking")
        return True

    made = basic(approver=never)

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan_of(ASK), run_id="r"))
        await until(lambda: made.of("approval_asked"))
        await asyncio.sleep(0)
        await made.engine.cancel("r")
        result = await run
        assert await others_end() == set()
        return result

    result = drive(main())
    assert (result.phase, statuses(result), result.waiting) == ("cancelled", {"ask": "PENDING"}, [])
    assert stopped == ["asking"]


def test_a_deadline_waits_for_no_approver() -> None:
    async def never(request: ApprovalRequest) -> bool:
        await asyncio.Event().wait()
        return True

    made = basic(approver=never)
    result = made.run(plan_of(ASK), deadline=20)
    assert (result.phase, (result.reason or {})["kind"], made.clock.monotonic()) == ("failed", "limit", 20)
    assert (statuses(result), result.waiting) == ({"ask": "PENDING"}, [])


# Without an approver ------------------------------------------------------------------------------------------------


def test_without_an_approver_the_run_pauses_and_says_for_what_it_waits() -> None:
    made = basic()
    plan = plan_of({**ASK, "risk_level": "high"}, {"id": "b"})
    result = made.run(plan)
    assert (result.phase, result.outcome, result.resumable) == ("paused", "paused", False)
    (waits,) = result.waiting
    assert {key: waits[key] for key in waits if key != "approval"} == {
        "kind": "task", "task": "ask", "visit": 1, "item": None, "risk": "high", "parameters": {"s": 1},
        "expires_at": None,
    }  # fmt: skip
    assert statuses(result) == {"ask": "WAITING_APPROVAL", "b": "SUCCEEDED"}
    assert made.calls.order == ["b"]


@pytest.mark.parametrize(
    ("decision", "status", "handler"),
    [("approve", "SUCCEEDED", "not_taken"), ("reject", "FAILED", "SUCCEEDED"), ("skip", "person", "not_taken")],
)
def test_after_a_decision_a_resumed_run_does_as_decided(decision: str, status: str, handler: str) -> None:
    made = basic()
    _, result = resumed_after(made, HANDLED, ("ask", decision), by="Ada", why="so")
    assert (result.phase, statuses(result)) == ("completed", {"ask": status, "handler": handler})
    assert [(each["by"], each["why"]) for each in result.approvals] == [("Ada", "so")]
    if decision == "reject":
        assert result.tasks["ask"].error == {
            "kind": "rejected",
            "type": None,
            "message": "rejected by Ada",
            "attempt": None,
        }


def test_a_rejection_without_a_handler_goes_to_the_recovery() -> None:
    _, result = resumed_after(basic(), plan_of(ASK), ("ask", "reject"))
    assert (result.phase, (result.reason or {})["kind"], (result.reason or {})["task"]) == ("failed", "rejected", "ask")


def test_a_second_decision_is_refused_and_told_who_decided_what() -> None:
    made = basic()

    async def main() -> None:
        paused = await made.engine.run(HANDLED, run_id="r")
        await made.engine.decide("r", "ask", "approve", by="Ada")
        for which in ("ask", paused.waiting[0]["approval"], None):
            with pytest.raises(DecisionRefused) as refused:
                await made.engine.decide("r", which, "reject", by="Bob")
            if which is not None:
                assert "approved by Ada" in refused.value.message
        assert statuses(await made.engine.resume("r"))["ask"] == "SUCCEEDED"

    drive(main())


def test_a_second_decision_is_told_when_the_first_was_made() -> None:
    made = basic()

    async def main() -> str:
        await made.engine.run(plan_of({"id": "ask", "approval": "required"}), run_id="r")
        await made.engine.decide("r", "ask", "approve", by="Ada")
        with pytest.raises(DecisionRefused) as refused:
            await made.engine.decide("r", "ask", "reject", by="Bob")
        return refused.value.message + refused.value.hint

    told = drive(main())
    assert "2023-11-14" in told, told  # the first day of the simulated clock


def test_an_approved_task_is_called_with_what_was_approved_though_the_context_has_changed() -> None:
    made = basic()
    plan = plan_of(
        {
            "id": "ask",
            "skill": "write",
            "parameters": {"key": "got", "value": "${n}"},
            "approval": "required",
            "condition": "n == 1",
        },
        {"id": "b", "skill": "write", "parameters": {"key": "n", "value": 2}},
        context={"n": 1},
    )
    paused, result = resumed_after(made, plan, ("ask", "approve"))
    assert paused.context == {"n": 2}
    assert result.context == {"n": 2, "got": 1}


def test_every_visit_is_approved_by_itself() -> None:
    asked: list[tuple[int, str]] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append((request.visit, request.approval))
        return True

    made = basic(approver=approve)
    made.run(plan_of({**ASK, "skill": "fail", "parameters": {"n": 2}, "max_retries": 0, "on_failure": "ask"}))
    assert [visit for visit, _ in asked] == [1, 2, 3]
    assert len({name for _, name in asked}) == 3


@pytest.mark.parametrize(("words", "asks"), [({}, True), ({"approval": "none"}, False), ({"risk_level": "low"}, True)])
def test_a_skill_of_high_risk_is_asked_about_unless_a_persons_plan_says_otherwise(
    words: dict[str, Any], asks: bool
) -> None:
    @skill(risk="high")
    async def pay() -> None: ...

    result = basic({"pay": pay}).run(plan_of({"id": "a", "skill": "pay", **words}))
    assert (result.phase == "paused") is asks


def test_a_models_plan_cannot_switch_an_approval_off() -> None:
    @skill(risk="high")
    async def pay() -> None: ...

    result = basic({"pay": pay}).run(plan_of({"id": "a", "skill": "pay", "approval": "none"}, origin="model"))
    assert result.phase == "paused"


# Expiry -----------------------------------------------------------------------------------------------------------


def test_an_approval_that_expires_counts_as_a_rejection_of_its_own_kind() -> None:
    made = basic()
    nap = {"id": "b", "skill": "nap", "parameters": {"s": 50}}
    result = made.run(plan_of({**ASK, "approval_timeout": 20, "on_failure": "handler"}, {"id": "handler"}, nap))
    assert result.completed
    assert result.tasks["ask"].error == {
        "kind": "expired",
        "type": None,
        "message": "nobody decided in time",
        "attempt": None,
    }
    (decided,) = made.of("approval_decided")
    assert decided.at - made.of("approval_asked")[0].at == 20
    assert made.calls.order == ["b", "handler"]
    assert result.tasks["ask"].visits == 1


def test_a_run_with_nothing_else_to_do_pauses_and_an_approval_can_expire_there() -> None:
    made = basic()

    async def main() -> RunResult:
        paused = await made.engine.run(plan_of({**ASK, "approval_timeout": 20, "recovery": "skip"}), run_id="r")
        assert paused.phase == "paused"
        assert paused.waiting[0]["expires_at"] == made.clock.now() + 20
        await made.clock.sleep(30)
        with pytest.raises(DecisionRefused):
            await made.engine.decide("r", "ask", "approve")
        return await made.engine.resume("r")

    result = drive(main())
    assert (result.phase, (result.tasks["ask"].error or {})["kind"]) == ("completed", "expired")
    assert made.calls.order == []


def test_a_decision_in_time_keeps_an_approval_from_expiring_and_the_tasks_own_timeout_does_not_count() -> None:
    made = basic()

    async def main() -> RunResult:
        await made.engine.run(plan_of({**ASK, "approval_timeout": 20, "timeout": 5}), run_id="r")
        await made.clock.sleep(19)
        await made.engine.decide("r", "ask", "approve")
        await made.clock.sleep(19)
        return await made.engine.resume("r")

    assert drive(main()).outcome == "clean"
    assert [event.decision for event in made.of("approval_decided")] == ["approved"]


def test_an_approval_that_expired_while_nobody_drove_its_run_is_expired_when_it_is_resumed() -> None:
    async def work() -> None: ...

    made = bench([work], clock=SystemClock())
    ask = {"id": "ask", "skill": "work", "approval": "required", "approval_timeout": 0.05, "recovery": "skip"}
    assert made.run({"tasks": [ask]}, run_id="r").phase == "paused"
    time.sleep(0.1)
    result = asyncio.run(made.engine.resume("r"))
    assert (result.tasks["ask"].error or {}).get("kind") == "expired"
