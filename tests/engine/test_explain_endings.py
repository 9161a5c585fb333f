"""What became of a failure, and of the tasks of a run that ended before their turn."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent import skill
from fsm_agent.core import events as ev
from tests.engine.explained import PLAN_ASKED, by_hand, explained, explained_by, of, the
from tests.engine.scripted import compiled
from tests.engine.support import basic, bench, plan_of, resumed_after
from tests.engine.test_scheduling_endings import CLEAN, FAILS, ended, ways

EVER: dict[str, Any] = {"id": "poll", "skill": "fail", "parameters": {"n": 99}, "max_retries": 0, "max_visits": 3}


# Failures -------------------------------------------------------------------------------------------------------------


def test_a_handled_failure_names_the_edge_and_the_handler() -> None:
    made = basic()
    plan = plan_of({**FAILS, "on_failure": "handler"}, {"id": "handler"})
    made.run(plan)
    found = explained(made, plan, "bad")
    assert found.summary == (
        "'bad' is FAILED: exception OSError: call 1 fails; it is handled: its on_failure led to 'handler' (SUCCEEDED)."
    )
    assert the(found, "failure").seq == made.of("task_evaluated")[0].seq


def test_a_failure_whose_handler_was_passed_over_is_not_handled_after_all() -> None:
    made = basic()
    plan = plan_of(
        {**FAILS, "on_failure": "handler"},
        {"id": "check", "verification": "1 > 2", "on_success": "other", "on_failure": "rest"},
        {"id": "other"},
        {"id": "rest"},
        {"id": "handler", "dependencies": ["other"]},
    )
    made.run(plan)
    assert "led to 'handler', but that is SKIPPED (not_taken): it is not handled after all" in (
        explained(made, plan, "bad").summary
    )


def test_a_failure_that_aborts_names_the_recovery_and_whose_word_it_is() -> None:
    made = basic()
    plan = plan_of({**FAILS, "max_retries": 1, "recovery": "abort"})
    made.run(plan)
    found = explained(made, plan, "bad")
    assert found.summary.endswith("its recovery is abort (the task's own): it ended the run.")
    assert of(found, "attempt") == ["attempt 1 failed (exception OSError: call 1 fails); the next one 0.25 s later"]


def test_a_failure_that_a_person_lets_be_is_told_so() -> None:
    made = basic()
    plan = plan_of({**FAILS, "recovery": "pause"})
    resumed_after(made, plan, ("bad", "fail"), by="Ada")
    assert explained(made, plan, "bad").summary.endswith("a person let it fail: it ended the run.")


def test_a_rejection_is_a_failure_with_who_and_why() -> None:
    made = basic()
    plan = plan_of({"id": "ask", "approval": "required", "on_failure": "else"}, {"id": "else"})
    resumed_after(made, plan, ("ask", "reject"), by="Ada", why="too dear")
    found = explained(made, plan, "ask")
    assert found.summary.startswith("'ask' is FAILED: rejected: rejected by Ada; it is handled")
    assert of(found, "approval")[-1].endswith("rejected by Ada: too dear")


def test_an_erred_decision_goes_to_its_recovery() -> None:
    made = basic()
    plan = plan_of({"id": "check", "verification": "context['no'] > 1", "on_failure": "else"}, {"id": "else"})
    made.run(plan)
    found = explained(made, plan, "check")
    assert "its verification `context['no'] > 1` could not be evaluated" in found.summary
    assert found.summary.endswith("its recovery is abort (the default for priority medium): it ended the run.")
    assert dict(the(found, "decision").values) == {"context.no": "(not set)"}


# Limits ---------------------------------------------------------------------------------------------------------------


def test_a_visit_that_a_limit_refused_is_a_fact_and_so_is_what_its_recovery_made_of_it() -> None:
    made = basic()
    plan = plan_of(
        {"id": "draft", "max_visits": 2, "recovery": "skip"},
        {
            "id": "check",
            "verification": "1 > 1",
            "dependencies": ["draft"],
            "on_success": "done",
            "on_failure": "again",
        },
        {"id": "again", "on_success": "draft"},
        {"id": "done"},
    )
    made.run(plan)
    found = explained(made, plan, "draft")
    assert (found.reason, of(found, "visit")[-1]) == ("optional", "visit 3 was not started: max_visits allows 2")
    assert found.summary.startswith("'draft' is SKIPPED (optional): it failed (limit: task 'draft' was due for visit 3")


def test_a_jump_that_was_not_taken_for_want_of_visits_is_told() -> None:
    made = basic()
    plan = plan_of({**EVER, "on_failure": "poll", "recovery": "skip"})
    made.run(plan)
    found = explained(made, plan, "poll")
    assert of(found, "failure")[0] == (
        "its on_failure did not jump back to 'poll', which has had 3 of 3 visits (max_visits)"
    )
    assert of(found, "loop")[-1].endswith("jumped back to it: round 3 began")


def test_a_task_run_too_many_ends_the_run_before_the_tasks_turn() -> None:
    made = basic()
    plan = plan_of({"id": "a"}, {"id": "b", "dependencies": ["a"]}, limits={"max_task_runs": 1})
    made.run(plan)
    found = explained(made, plan, "b")
    assert (found.status, of(found, "visit")) == (
        "PENDING",
        ["task run 2 was not started: limits.max_task_runs allows 1"],
    )
    assert "the run ended as failed by task 'b' (limit: " in found.summary
    assert the_first(found, "ending").seq == made.of("visit_refused")[0].seq


def the_first(found: Any, kind: str) -> Any:
    return next(fact for fact in found.facts if fact.kind == kind)


# Runs that end early --------------------------------------------------------------------------------------------------

WORK_PLAN = [{"id": "work", "skill": "nap", "parameters": {"s": 10}}]
ENDED_BY = {
    "abort": "the run ended as failed by task 'bad' (exception: OSError: call 1 fails)",
    "cancel": "the run ended as cancelled (cancelled: the run was cancelled)",
    "deadline": "the run ended as failed (limit: the run took longer than limits.deadline allows (5 s))",
}
EVENTS = {"abort": "task_evaluated", "cancel": "cancel_asked", "deadline": "limit_passed"}


def plan_that(how: str, *tasks: dict[str, Any]) -> dict[str, Any]:
    """The plan that `ended` makes."""
    plan = plan_of(*WORK_PLAN, *tasks)
    if how == "abort":
        plan["tasks"].append({**FAILS, "parameters": {"n": 9, "s": 5}})
    if how == "deadline":
        plan["limits"] = {"deadline": 5}
    return plan


@ways
def test_a_task_of_a_run_that_ended_before_its_turn_tells_how_the_run_ended(how: str) -> None:
    tasks = ({"id": "next", "dependencies": ["work"]},)
    made, _ = ended(how, *tasks)
    found = explained(made, plan_that(how, *tasks), "next")
    assert found.status == "PENDING"
    assert found.summary == (
        f"'next' is PENDING: {ENDED_BY[how]} before its turn; it is no clean-up task, and nothing else starts then."
    )
    first = the_first(found, "ending")
    assert (first.text, first.seq) == (ENDED_BY[how], made.of(EVENTS[how])[0].seq)
    assert of(found, "ending")[1] == "at that moment the task was PENDING"


@ways
def test_a_task_that_was_cancelled_with_its_run_tells_that_nothing_takes_it_up(how: str) -> None:
    tasks = ({"id": "next", "dependencies": ["work"]},)
    made, _ = ended(how, *tasks)
    found = explained(made, plan_that(how, *tasks), "work")
    assert found.summary == (
        f"'work' is FAILED: cancelled: cancelled with its run; {ENDED_BY[how]}, "
        "and how a task ends then changes nothing: no edge fires."
    )


@ways
def test_a_clean_up_task_that_ran_says_that_the_run_was_ending(how: str) -> None:
    made, _ = ended(how, CLEAN)
    found = explained(made, plan_that(how, CLEAN), "clean")
    assert found.summary.startswith("'clean' is SUCCEEDED: it was due as clean-up of a run that was ending, and it")
    assert the(found, "ending").seq == made.of(EVENTS[how])[0].seq


@pytest.mark.parametrize(
    ("words", "more", "why"),
    [
        ({"approval": "required"}, {}, "it needs approval, and nobody is asked then"),
        ({"dependencies": ["later"]}, {}, "nothing that it cleans up after was started"),
        ({"dependencies": ["work"], "id": "third"}, {"cleanup_timeout": 5}, "limits.cleanup_timeout was over before"),
    ],
    ids=["approval", "nothing started", "no time"],
)
def test_a_clean_up_task_that_did_not_run_says_why(words: dict[str, Any], more: dict[str, Any], why: str) -> None:
    nap = {**CLEAN, "id": "first", "skill": "nap", "parameters": {"s": 10}}
    clean = {**CLEAN, **words}
    plan = plan_of(
        *WORK_PLAN, {"id": "later", "soft_dependencies": ["work"]}, nap, clean, limits={"deadline": 5, **more}
    )
    made = basic()
    made.run(plan)
    found = explained(made, plan, clean["id"])
    assert found.status == "PENDING"
    assert f"it is a clean-up task, but {why}" in found.summary


def test_a_run_that_still_ends_is_told_as_ending() -> None:
    plan = plan_that("abort", {"id": "next", "dependencies": ["work"]})
    made = basic()
    made.run(plan)
    at = made.of("task_evaluated", task="bad")[0].seq
    assert explained(made, plan, "next", upto=at).summary.startswith(
        "'next' is PENDING: the run is ending by task 'bad' (exception: OSError: call 1 fails) before its turn"
    )


def test_an_approval_that_the_end_of_the_run_withdrew_is_told() -> None:
    plan = plan_that("abort", {"id": "ask", "approval": "required"})
    made = basic()
    made.run(plan)
    found = explained(made, plan, "ask")
    assert of(found, "ending")[1] == "at that moment the task was WAITING_APPROVAL"


def test_a_plan_that_a_person_rejected_leaves_its_tasks_pending() -> None:
    shape = compiled(plan_of({"id": "a"}))
    rejected = ev.ApprovalDecided(approval="p", decision="rejected", by="Ada")
    events = by_hand(shape, *PLAN_ASKED, rejected, "resume", "planning_failed")
    found = explained_by(events, shape, "a")
    assert found.status == "PENDING"
    assert "the run ended as failed (rejected: the plan was rejected by Ada)" in found.summary


def test_going_back_is_told_of_the_task_that_failed_and_of_those_that_were_undone() -> None:
    tries: list[str] = []

    @skill
    async def book() -> dict[str, Any]:
        return {}

    @skill
    async def pay() -> dict[str, Any]:
        tries.append("pay")
        if len(tries) == 1:
            raise OSError("declined")
        return {}

    @skill
    async def unbook() -> dict[str, Any]:
        return {}

    made = bench([book, pay, unbook])
    plan: dict[str, Any] = {
        "goal": "g",
        "tasks": [
            {"id": "book", "skill": "book", "compensation": "unbook"},
            {"id": "pay", "skill": "pay", "dependencies": ["book"], "recovery": "rollback"},
        ],
    }
    assert made.run(plan, run_id="r").completed
    told = {task: [fact.text for fact in explained(made, plan, task).facts] for task in ("book", "pay")}
    assert "its compensation was called, to undo visit 1" in told["book"]
    assert "the compensation of visit 1: SUCCEEDED" in told["book"]
    assert any(text.startswith("its failure sends the run back to the plan's start") for text in told["pay"])
