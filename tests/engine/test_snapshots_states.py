"""Snapshots of runs in every odd state: each can be taken up again, and goes on as if nothing had been."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fsm_agent import RunResult, StaticPlanner
from fsm_agent.core import events as ev
from fsm_agent.core.run import Run
from fsm_agent.core.snapshots import can_dump
from fsm_agent.plan.compiled import CompiledPlan
from tests.engine.support import Basic, basic, drive, plan_of, resumed_after, until
from tests.engine.test_scheduling_jumps import loop_with
from tests.likeness import differences
from tests.taking_up import assert_taken_up_anywhere, folded, fresh, taken_up

NAP: dict[str, Any] = {"skill": "nap", "parameters": {"s": 5}}
FAILS: dict[str, Any] = {"skill": "fail", "parameters": {"n": 9}, "max_retries": 0}
ASK: dict[str, Any] = {"id": "ask", "approval": "required"}


def assert_sound(made: Basic, plan: dict[str, Any], odd: Callable[[Run], object], **words: Any) -> None:
    """The run that was made can be taken up anywhere; `odd` holds at some moments of it once there is a plan."""
    shape = made.engine.check(plan).compiled
    assert_taken_up_anywhere(shape, made.events, lambda run: run.plan_version and odd(run), **words)


def write(name: str, key: str, value: Any, s: float, **words: Any) -> dict[str, Any]:
    return {"id": name, "skill": "write", "parameters": {"key": key, "value": value, "s": s}, **words}


# The plan -----------------------------------------------------------------------------------------------------------


def test_a_jump_that_waits_for_a_running_task() -> None:
    made, plan = basic(), loop_with({"id": "slow", **NAP}, {"id": "slower", "skill": "nap", "parameters": {"s": 9}})
    made.run(plan)
    assert_sound(made, plan, lambda run: run.schedule._holds and run.schedule._holds[0].waiting)


def test_two_jumps_that_wait_for_the_same_task() -> None:
    once = {"skill": "fail", "parameters": {"n": 1, "s": 1}, "max_retries": 0}
    plan = plan_of(
        {"id": "draft"},
        {"id": "quick", "dependencies": ["draft"]},
        {"id": "slow", "skill": "nap", "parameters": {"s": 9}, "dependencies": ["quick"]},
        {"id": "inner", **once, "dependencies": ["quick"], "on_failure": "quick"},
        {"id": "wait", "skill": "nap", "parameters": {"s": 3}, "dependencies": ["draft"]},
        {"id": "outer", **once, "dependencies": ["wait"], "on_failure": "draft"},
        {"id": "tail", "dependencies": ["inner", "slow"], "on_failure": "draft"},
    )
    made = basic()
    made.run(plan)
    assert_sound(made, plan, lambda run: len(run.schedule._holds) == 2)


def test_what_comes_after_a_loop_that_may_still_jump() -> None:
    plan = plan_of(
        {"id": "draft"},
        {**FAILS, "id": "judge", "parameters": {"n": 2}, "on_failure": "draft", "dependencies": ["draft"]},
        {"id": "once", "dependencies": ["draft"]},
        {"id": "later", "dependencies": ["once"]},
    )
    made = basic()
    made.run(plan)
    assert_sound(made, plan, lambda run: run.schedule._gates and run.schedule._gates._waiting)


def test_tasks_that_wait_for_a_lock() -> None:
    plan = plan_of(
        *({"id": f"t{n}", **NAP, "locks": [["x", "y"], ["x"], ["y"], ["y", "x"]][n % 4]} for n in range(8)),
        {"id": "free", **NAP, "priority": "low"},
    )
    made = basic()
    made.run(plan)
    assert_sound(made, plan, lambda run: len(run.schedule.turns._parked) == 2)


def test_dead_branches_joins_and_soft_dependencies_half_way() -> None:
    plan = plan_of(
        {"id": "if", "verification": "False", "on_success": "yes", "on_failure": "no"},
        {"id": "yes"},
        {"id": "no"},
        {"id": "any", "join": "any", "dependencies": ["yes", "no"]},
        {**FAILS, "id": "bad", "recovery": "skip"},
        {"id": "all", "join": "all_done", "dependencies": ["yes", "bad"], "soft_dependencies": ["no", "if"]},
        {"id": "none", "dependencies": ["yes"]},
        {"id": "never", "condition": "False", "dependencies": ["any"]},
    )
    made = basic()
    made.run(plan)
    assert_sound(made, plan, lambda run: any(node.reason == "not_taken" for node in run.schedule.nodes))


@pytest.mark.parametrize("recovery", ["skip", "pause", "abort"])
def test_a_task_whose_visits_are_used_up(recovery: str) -> None:
    plan = plan_of(
        {"id": "draft", "max_visits": 2, "recovery": recovery},
        {"id": "judge", "dependencies": ["draft"], "verification": "False", "on_failure": "again"},
        {"id": "again", "on_success": "draft", "condition": "True"},
        {"id": "last", "dependencies": ["draft"]},
    )
    made = basic()
    made.run(plan, run_id="r")
    limited = {"skip": "SKIPPED", "pause": "WAITING_APPROVAL", "abort": "PENDING"}[recovery]
    assert_sound(made, plan, lambda run: run.node("draft").status == limited and run.node("draft").visits == 2)


def test_a_run_that_has_had_its_number_of_task_runs() -> None:
    plan = plan_of({"id": "a"}, {"id": "b"}, {"id": "c"}, limits={"max_task_runs": 2})
    made = basic()
    made.run(plan)
    assert_sound(made, plan, lambda run: run.ending is not None and type(run.ending.count) is int)


# The context --------------------------------------------------------------------------------------------------------


def test_a_visit_that_was_overtaken_by_writes() -> None:
    plan = plan_of(
        write("slow", "k", 1, 9, recovery="skip"),
        write("quick", "k", 2, 1),
        write("next", "k", [3], 1, dependencies=["quick"]),
        write("other", "new", {"a": 1}, 1),
        context={"k": 0},
    )
    made = basic()
    assert made.run(plan).outcome == "handled_failures"
    assert_sound(
        made, plan, lambda run: any(len(view.others.get("k", ())) == 2 for view in run.context._views.values())
    )


@pytest.mark.parametrize("rule", ["sum", "append", "union", "last"])
def test_writes_under_a_merge_rule_whose_order_is_not_final(rule: str) -> None:
    values = [[0.1], [0.2], [0.3], [1e16], [0.1, 0.7]] if rule == "union" else [0.1, 0.2, 1e16, -1e16, 0.7]
    tasks = [write(f"t{n}", "k", value, 6 - n) for n, value in enumerate(values)]
    last = write("last", "k", values[1], 2, dependencies=["t3"])
    plan = plan_of(*tasks, last, merge={"k": rule})
    made = basic()
    made.run(plan)
    assert_sound(
        made, plan, lambda run: rule == "last" or any(len(k.segments) > 2 for k in run.context._merging.values())
    )


def test_calls_that_were_tried_again() -> None:
    plan = plan_of(
        {"id": "a", "skill": "fail", "parameters": {"n": 2}, "max_retries": 2},
        {**FAILS, "id": "b", "max_retries": 1, "recovery": "skip"},
    )
    made = basic()
    made.run(plan)
    assert_sound(made, plan, lambda run: (run.node("a").retried, run.node("b").retried) == (2, 1))


def test_a_fallback_and_a_result_that_is_not_verified() -> None:
    plan = plan_of(
        {**FAILS, "id": "a", "fallback": {"value": {"v": 2}}},
        {"id": "b", "skill": "ok", "verification": "False", "on_unverified": "warn", "dependencies": ["a"]},
    )
    made = basic()
    made.run(plan)
    assert_sound(made, plan, lambda run: run.node("b").verified is False and run.node("a").fallback_used)


def test_secret_inputs_come_from_whoever_takes_the_run_up() -> None:
    inputs = {"token": {"secret": True}, "city": {"default": "Kiel"}}
    plan = plan_of({"id": "a", "condition": "token == 'hush'"}, inputs=inputs, context={"k": 1})
    made = basic()
    made.run(plan, inputs={"token": "hush"})
    assert_sound(made, plan, lambda run: run.inputs["token"] == "hush", secrets={"token": "hush"})


# People -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", ["approve", "reject", "skip"])
def test_an_approval_that_waits_and_one_that_was_given(decision: str) -> None:
    plan = plan_of({**ASK, "recovery": "skip", "skill": "nap", "parameters": {"s": 1}}, {"id": "b"})
    made = basic()
    resumed_after(made, plan, ("ask", decision), by="Ada", why="so")
    assert_sound(made, plan, lambda run: run.approvals.open)
    assert_sound(made, plan, lambda run: run._approved or (run.approvals.decided and decision != "approve"))


def test_an_approval_that_has_expired() -> None:
    plan = plan_of({**ASK, "approval_timeout": 3, "recovery": "skip"}, {"id": "b", **NAP})
    made = basic()
    made.run(plan)
    assert_sound(made, plan, lambda run: (run.node("ask").error or ev.TaskError("", "")).kind == "expired")


def test_an_approval_that_the_approver_left_to_a_person() -> None:
    plan = plan_of(ASK, {**ASK, "id": "also"}, {"id": "b", **NAP})
    made = basic(approver=lambda request: None)
    resumed_after(made, plan, ("ask", "approve"), ("also", "approve"))
    assert_sound(made, plan, lambda run: len(run.approvals.handed_on) == 2)


@pytest.mark.parametrize("decision", ["rerun", "done", "skip", "fail"])
def test_a_failure_that_a_person_is_to_be_asked_about(decision: str) -> None:
    plan = plan_of({**FAILS, "id": "bad", "recovery": "pause"}, {"id": "b", "dependencies": ["bad"]})
    made = basic()
    resumed_after(made, plan, ("bad", decision), result={"by": "hand"} if decision == "done" else None)
    assert_sound(made, plan, lambda run: run.to_ask)
    assert_sound(made, plan, lambda run: run.approvals.decided)


def test_a_question_that_is_put_again_under_the_same_id() -> None:
    draft, quick = {"id": "draft"}, {"id": "quick", "dependencies": ["draft"]}
    judge = {**FAILS, "id": "judge", "parameters": {"n": 1, "s": 5}, "join": "any", "on_failure": "draft"}
    ask = {**ASK, "dependencies": ["draft"]}
    plan = plan_of(draft, quick, ask, {**judge, "dependencies": ["quick", "ask"]})
    made = basic()
    resumed_after(made, plan, ("ask", "approve"))
    asked = made.of("approval_asked")
    assert (len(asked), asked[0].approval) == (2, asked[1].approval)
    assert_sound(made, plan, lambda run: [each.seq for each in run.approvals.open.values()] == [asked[1].seq])


def told(shape: CompiledPlan, *facts: ev.Event | ev.Trigger) -> tuple[list[ev.Event], Run]:
    """A journal of these events and triggers, and the run at its end."""
    run, events = fresh(shape), []
    for seq, fact in enumerate(facts, 1):
        if isinstance(fact, str):
            events.append(run.fire(fact, seq, float(seq)))
        else:
            events.append(msgspec.structs.replace(fact, seq=seq, at=float(seq), run_id="r"))
            run.evolve(events[-1])
    return events, run


def plan_approval(decision: ev.Verdict) -> tuple[list[ev.Event], Run]:
    """A run whose plan a person decides about."""
    return told(
        basic().engine.check(plan_of({"id": "a"})).compiled,
        ev.RunStarted(plan_approval=True), "start", ev.PlanAdopted(version=1, digest="d"),
        ev.ApprovalAsked(approval="p", kind="plan"), "planned",
        ev.ApprovalDecided(approval="p", decision=decision, by="Ada"), "resume",
        "planned" if decision == "approved" else "planning_failed",
    )  # fmt: skip


@pytest.mark.parametrize("decision", ["approved", "rejected"])
def test_a_plan_that_a_person_decides_about(decision: ev.Verdict) -> None:
    events, run = plan_approval(decision)
    assert run.phase == ("executing" if decision == "approved" else "failed")
    assert_taken_up_anywhere(run.compiled, events, lambda run: run.phase == "paused" and run.approvals.open)
    assert_taken_up_anywhere(run.compiled, events, lambda run: run._plan_approved or run.rejection)


# Crashes ------------------------------------------------------------------------------------------------------------

BEGUN: tuple[ev.Event | ev.Trigger, ...] = (
    ev.RunStarted(), "start", ev.PlanAdopted(version=1, digest="d"), "planned",
    ev.TaskStarted(task="a", visit=1, parameters={"p": 1}, seal="sa"), ev.TaskStarted(task="b", visit=1, seal="sb"),
)  # fmt: skip
FAILED = ev.TaskError("exception", "no luck", "OSError", 1)
AFTER: dict[ev.Verdict, list[ev.Event | ev.Trigger]] = {
    "rerun": [
        ev.AttemptStarted(task="b", visit=1, attempt=2),
        ev.ContextChanged(task="b", visit=1, changes={"k": 2}),
        ev.TaskEvaluated(task="b", visit=1, status="SUCCEEDED", attempts=2),
    ],
    "done": [],
    "skip": [],
    "fail": [],
}


@pytest.mark.parametrize("decision", AFTER)
def test_calls_that_a_crash_has_interrupted(decision: ev.Verdict) -> None:
    asked = ev.ApprovalAsked(approval="q", kind="interrupted", task="b", visit=1)
    result = {"by": "hand"} if decision == "done" else None
    decided = ev.ApprovalDecided(approval="q", decision=decision, task="b", visit=1, result=result)
    shape = basic().engine.check(plan_of({"id": "a"}, {"id": "b", "recovery": "skip"}, {"id": "c"})).compiled
    events, run = told(
        shape, *BEGUN,
        ev.AttemptFailed(task="a", visit=1, attempt=1, error=FAILED, delay=5.0),
        ev.AttemptStarted(task="a", visit=1, attempt=2),
        ev.RunTakenUp(driver="d", why="recover"),
        ev.TaskInterrupted(task="a", visit=1, attempt=2, then="again"),
        ev.TaskInterrupted(task="b", visit=1, attempt=1, then="ask"),
        asked,
        ev.AttemptStarted(task="a", visit=1, attempt=3),
        ev.ContextChanged(task="a", visit=1, changes={"k": 1}),
        ev.TaskEvaluated(task="a", visit=1, status="SUCCEEDED", attempts=3, retried=2),
        "settled", "evaluated", decided, *AFTER[decision], "settled",
    )  # fmt: skip
    assert_taken_up_anywhere(shape, events, lambda run: len(run.interrupted) == 2)
    assert_taken_up_anywhere(shape, events, lambda run: run.seq and run.calls and not run.running)
    assert (run.node("b").data, run.node("b").status) == (
        result,
        "SUCCEEDED" if decision in ("rerun", "done") else "SKIPPED",
    )


def test_a_fallback_whose_turn_it_was_and_an_approved_call_under_way() -> None:
    asked = ev.ApprovalAsked(approval="q", kind="task", task="b", visit=1, parameters={"p": "agreed"}, digest="sb")
    shape = basic().engine.check(plan_of({"id": "a"}, {"id": "b"})).compiled
    events, run = told(
        shape, *BEGUN[:-1], asked, ev.ApprovalDecided(approval="q", decision="approved", task="b", visit=1),
        ev.TaskStarted(task="b", visit=1),
        ev.AttemptFailed(task="a", visit=1, attempt=1, error=FAILED, then="fallback"),
        ev.TaskInterrupted(task="a", visit=1, attempt=1, then="fallback"),
    )  # fmt: skip
    assert_taken_up_anywhere(shape, events, lambda run: run.seq > 4 and len(run.calls) == 2)
    assert (run.calls[1].parameters, run.calls[0].fallback) == ({"p": "agreed"}, True)


def test_a_visit_that_was_interrupted_and_that_a_jump_has_ended() -> None:
    shape = (
        basic()
        .engine.check(
            plan_of(
                {"id": "a"},
                {"id": "b", "dependencies": ["a"]},
                {"id": "judge", "join": "any", "dependencies": ["a", "b"], "on_failure": "a"},
                merge={"log": "append"},
            )
        )
        .compiled
    )
    events, run = told(
        shape, *BEGUN[:-1], ev.TaskEvaluated(task="a", visit=1, status="SUCCEEDED", attempts=1), "settled", "evaluated",
        ev.TaskStarted(task="b", visit=1), ev.TaskStarted(task="judge", visit=1),
        ev.RunTakenUp(driver="d", why="recover"), ev.TaskInterrupted(task="b", visit=1, attempt=1, then="ask"),
        ev.ApprovalAsked(approval="q", kind="interrupted", task="b", visit=1),
        ev.TaskInterrupted(task="judge", visit=1, attempt=1, then="again"),
        ev.AttemptStarted(task="judge", visit=1, attempt=2),
        ev.TaskEvaluated(task="judge", visit=1, status="FAILED", attempts=2, retried=1, error=FAILED),
        "settled", "evaluated", ev.TaskStarted(task="a", visit=2),
        ev.ContextChanged(task="a", visit=2, changes={"log": "a"}),
        ev.TaskEvaluated(task="a", visit=2, status="SUCCEEDED", attempts=1), "settled", "evaluated",
        ev.TaskStarted(task="b", visit=2), ev.ContextChanged(task="b", visit=2, changes={"log": "b"}),
    )  # fmt: skip
    assert_taken_up_anywhere(shape, events, lambda run: run.seq > 16 and run.context.owners() == [])
    assert run.context.values["log"] == ["a", "b"]


# Beginnings and ends ------------------------------------------------------------------------------------------------


def test_a_run_without_a_plan() -> None:
    made = basic(planner=StaticPlanner({"tasks": []}))
    made.run(goal="g", labels={"k": "v"}, grants=["mail"], run_id="r")
    shape = made.engine.check(plan_of({"id": "a"})).compiled
    assert_taken_up_anywhere(shape, made.events, lambda run: run.rejection is not None)
    assert_taken_up_anywhere(shape, made.events, lambda run: run.seq == 0)


def test_a_second_plan_begins_afresh() -> None:
    plan = plan_of(write("a", "k", 1, 0), {**FAILS, "id": "bad", "recovery": "skip"}, merge={"k": "sum"})
    made = basic()
    made.run(plan)
    shape = made.engine.check(plan).compiled
    executed = next(event.seq for event in made.events if event.type == "phase_changed" and event.dest == "completed")
    adopted = made.of("plan_adopted")[0]
    journal = [*made.events[: executed - 1], msgspec.structs.replace(adopted, seq=executed)]
    assert_taken_up_anywhere(shape, journal, lambda run: run.trace and run.schedule.unsettled == 2)


def test_clean_up_that_is_under_way() -> None:
    after = {"dependencies": ["work"], "join": "all_done"}
    plan = plan_of(
        {"id": "work", **NAP},
        {"id": "other", **NAP},
        write("first", "k", 1, 2, **after),
        {"id": "second", **NAP, "dependencies": ["first"], "join": "all_done"},
        {**ASK, **after},
        {"id": "third", "condition": "False", **after},
    )
    made = basic()

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan, run_id="r"))
        await until(lambda: made.of("task_started", task="work"))
        await made.engine.cancel("r", by="Ada", why="enough")
        return await run

    drive(main())
    assert_sound(made, plan, lambda run: run._cleanup and run.cleaning is not None and run.unrun_finalizers == ["ask"])


def test_clean_up_whose_time_is_over() -> None:
    plan = plan_of(
        {"id": "work", **NAP},
        {"id": "clean", **NAP, "dependencies": ["work"], "join": "all_done"},
        {"id": "also", "dependencies": ["work"], "join": "all_done"},
        limits={"deadline": 3, "cleanup_timeout": 2},
    )
    made = basic()
    made.run(plan)
    assert_sound(made, plan, lambda run: run.cleanup_over and run.running)


def test_a_replan_that_is_due() -> None:
    made, plan = basic(), plan_of({"id": "a"})
    made.run(plan)
    shape = made.engine.check(plan).compiled
    run = folded(shape, made.events)
    run.replan_due = True
    assert differences(run, taken_up(shape, run, made.events)) == []


def test_a_deadline_that_has_passed_while_people_are_asked_and_a_task_is_ready() -> None:
    plan = plan_of({**ASK}, *({"id": f"t{n}", **NAP} for n in range(3)), limits={"deadline": 3, "max_parallel": 1})
    made = basic()
    made.run(plan)
    assert_sound(made, plan, lambda run: run.ending is not None and run.schedule._stopped)


def test_criteria_that_were_judged() -> None:
    plan = plan_of({"id": "a"}, completion_criteria=["good", {"check": "context.get('k') == 1"}], output="1 + 1")
    made = basic()
    made.run(plan)
    assert_sound(made, plan, lambda run: run.judged is not None)


def test_a_pause_that_was_asked_for() -> None:
    plan = plan_of({"id": "a", **NAP}, {"id": "b", "dependencies": ["a"]})
    made = basic()

    async def main() -> None:
        run = asyncio.create_task(made.engine.run(plan, run_id="r"))
        await until(lambda: made.of("task_started"))
        await made.engine.pause("r")
        await run
        await made.engine.resume("r")

    drive(main())
    assert_sound(made, plan, lambda run: run.pause_asked and run.running)


def test_of_a_run_whose_plan_has_a_rollback_there_is_no_snapshot() -> None:
    plan = plan_of({"id": "a"}, {"id": "b", "recovery": "rollback", "dependencies": ["a"]})
    made = basic()
    made.run(plan)
    assert not can_dump(folded(made.engine.check(plan).compiled, made.events))


def test_a_snapshot_of_a_run_that_was_taken_up_from_one_is_the_same_snapshot() -> None:
    made, plan = basic(), loop_with({"id": "slow", **NAP})
    made.run(plan, run_id="r")
    shape = made.engine.check(plan).compiled
    run = fresh(shape)
    for at, event in enumerate(made.events, 1):
        run.evolve(event)
        again = taken_up(shape, run, made.events[:at])
        assert again.dump() == run.dump()
