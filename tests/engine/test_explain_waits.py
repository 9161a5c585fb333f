"""What a task of a real run waits for: others, a loop, its turn, a person, the end of its call."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from fsm_agent.core import events as ev
from fsm_agent.redaction import Redactor
from fsm_agent.views.explain import Explanation, explanation_text
from fsm_agent.views.explaining.case import Case
from fsm_agent.views.explaining.happenings import tell
from fsm_agent.views.explaining.history import History
from tests.engine.explained import PLAN_ASKED, Folder, by_hand, explained, explained_by, of, the
from tests.engine.scripted import compiled
from tests.engine.support import Basic, basic, drive, plan_of, resumed_after, until

NAP: dict[str, Any] = {"skill": "nap", "parameters": {"s": 10}}
ASK: dict[str, Any] = {"id": "ask", "approval": "required", **NAP}
FAILS: dict[str, Any] = {"id": "bad", "skill": "fail", "parameters": {"n": 9}, "max_retries": 0}


def while_running(plan: dict[str, Any], task: str, *, of_task: str, **options: Any) -> tuple[Basic, Explanation]:
    """How a task stood right after the last task to begin of those named had begun."""
    made = basic()
    made.run(plan, run_id="r", **options)
    began = made.of("task_started", task=of_task)[-1].seq
    return made, explained(made, plan, task, upto=began)


# Others ---------------------------------------------------------------------------------------------------------------


def test_a_pending_task_names_the_dependencies_that_are_not_settled_and_the_soft_ones() -> None:
    plan = plan_of(
        {"id": "done"}, {"id": "a", **NAP}, {"id": "b", "dependencies": ["a"]}, {"id": "s", **NAP},
        {"id": "c", "dependencies": ["done", "a", "b"], "soft_dependencies": ["s"]},
    )  # fmt: skip
    _, found = while_running(plan, "c", of_task="s")
    assert found.summary == (
        "'c' is PENDING: it waits: for dependencies 'done' (RUNNING), 'a' (RUNNING), 'b' (PENDING); "
        "for soft dependency 's' (RUNNING)."
    )
    assert of(found, "join") == ["3 of 3 dependencies not settled, join all"]
    assert of(found, "wait")[:3] == [f"it waits for dependency {each}" for each in ("'done': RUNNING", "'a': RUNNING", "'b': PENDING")]  # fmt: skip # noqa: E501


def test_what_is_waited_for_is_followed_up_to_what_does_not_merely_wait() -> None:
    made = basic()
    plan = plan_of(ASK, {"id": "b", "dependencies": ["ask"]}, {"id": "c", "dependencies": ["b"]})
    made.run(plan, run_id="r")
    assert of(explained(made, plan, "c"), "wait")[-1] == "at the root of it, 'ask' is WAITING_APPROVAL"


def test_a_target_that_is_not_active_names_the_branches_that_could_still_lead_to_it() -> None:
    plan = plan_of(
        {**NAP, "id": "a", "on_failure": "t"},
        {"id": "b", "on_failure": "t"},
        {"id": "t"},
        {"id": "last", **NAP, "dependencies": ["b"]},
    )
    made, found = while_running(plan, "t", of_task="last")
    assert found.summary == "'t' is PENDING: it waits: no branch has led to it yet (on_failure of 'a' still could)."
    assert of(found, "wait") == [
        "on_failure of 'a' could still lead here: 'a' is RUNNING",
        "on_failure of 'b' does not lead here any more: 'b' is SUCCEEDED",
    ]
    assert found.facts[1].seq == made.of("task_evaluated", task="b")[0].seq


LOOP = plan_of(
    {"id": "draft"},
    {"id": "judge", "skill": "fail", "parameters": {"n": 1, "s": 5}, "max_retries": 0, "dependencies": ["draft"],
     "on_failure": "draft"},
    {"id": "after", "dependencies": ["draft"]},
)  # fmt: skip


def test_what_comes_after_a_loop_names_the_task_that_may_still_jump() -> None:
    _, found = while_running(LOOP, "after", of_task="judge")
    assert found.summary == (
        "'after' is PENDING: it waits: a loop before it may still jump back, by 'judge' (RUNNING)."
    )
    assert of(found, "loop") == ["a loop before it may still jump back, by 'judge' (RUNNING)"]


OVERTAKEN = plan_of(
    {"id": "draft"},
    {"id": "quick", "dependencies": ["draft"]},
    {"id": "slow", "dependencies": ["draft"], **NAP},
    {"id": "judge", "skill": "fail", "parameters": {"n": 1}, "max_retries": 0, "join": "any",
     "dependencies": ["quick", "slow"], "on_failure": "draft"},
)  # fmt: skip


def test_a_jump_that_waits_for_what_ran_names_it_and_so_does_the_task_that_ran() -> None:
    made = basic()
    made.run(OVERTAKEN, run_id="r")
    jumped = made.of("task_evaluated", task="judge")[0].seq
    found = explained(made, OVERTAKEN, "draft", upto=jumped)
    assert (
        found.summary == "'draft' is PENDING: it waits: a jump waits for the end of what ran when it happened: 'slow'."
    )
    assert of(found, "loop")[0] == "'judge' FAILED and its on_failure jumped back to it: round 2 began"
    slow = explained(made, OVERTAKEN, "slow", upto=jumped)
    assert "a call of its visit 1 still runs, though a jump has reset the task" in slow.summary


def test_a_discarded_visit_is_a_fact() -> None:
    made = basic()
    made.run(OVERTAKEN, run_id="r")
    (discarded,) = made.of("visit_discarded")
    fact = next(fact for fact in explained(made, OVERTAKEN, "slow").facts if fact.seq == discarded.seq)
    assert fact.text == "visit 1 ended SUCCEEDED and counts for nothing: the task had been reset meanwhile"


def test_ten_thousand_dependencies_give_a_bounded_text() -> None:
    names = [f"t{n}" for n in range(10_000)]
    plan = plan_of(*({"id": name} for name in names), {"id": "last", "dependencies": names})
    made = basic()
    started = [ev.RunStarted(), ev.PlanAdopted(version=1, digest="d")]
    made.events += [msgspec.structs.replace(event, seq=place + 1) for place, event in enumerate(started)]
    found = explained(made, plan, "last")
    assert "'t9' (READY) … and 9,990 more" in found.summary
    assert "… and 9,990 more: 9,990 READY" in of(found, "omitted")
    assert len(explanation_text(found)) < 3_000
    ready = explained(made, plan, "t9999")
    assert "… and 9,989 more" in of(ready, "wait")[-1] or "not taken up" in ready.summary


# Its turn -------------------------------------------------------------------------------------------------------------


def test_a_ready_task_names_who_has_the_slots() -> None:
    plan = plan_of({"id": "a", **NAP}, {"id": "b", **NAP}, {"id": "c"}, limits={"max_parallel": 2})
    _, found = while_running(plan, "c", of_task="b")
    assert (found.status, found.summary) == (
        "READY", "'c' is READY: it is ready, and waits: 2 of 2 slots taken, by 'a', 'b'.",
    )  # fmt: skip


def test_a_ready_task_names_its_lock_and_who_holds_it() -> None:
    plan = plan_of({"id": "a", **NAP, "locks": ["db"]}, {"id": "b", "locks": ["x", "db"]}, {"id": "c", **NAP})
    _, found = while_running(plan, "b", of_task="c")
    assert of(found, "wait") == ["lock 'db' is held by 'a'"]


def test_a_ready_task_names_those_before_it_or_is_the_next() -> None:
    plan = plan_of({"id": "a", **NAP}, {"id": "low", "priority": "low"}, {"id": "b"}, {"id": "c"})
    made, found = while_running(plan, "low", of_task="a")
    assert of(found, "wait") == ["before it, by priority and place in the plan, are 'b', 'c'"]
    assert of(explained(made, plan, "b", upto=made.of("task_started")[0].seq), "wait") == ["its turn is next"]


def test_a_ready_task_of_a_paused_run_says_who_paused_it() -> None:
    made = basic()
    plan = plan_of({"id": "a", **NAP}, {"id": "b"}, limits={"max_parallel": 1})

    async def main() -> None:
        run = asyncio.create_task(made.engine.run(plan, run_id="r"))
        await until(lambda: made.of("task_started"))
        await made.engine.pause("r", by="Ada", why="lunch")
        await run

    drive(main())
    found = explained(made, plan, "b")
    assert found.summary == "'b' is READY: it is ready, and waits: the run is paused by Ada: lunch."
    assert the(found, "wait").seq == made.of("pause_asked")[0].seq


def test_a_plan_that_is_not_approved_yet_is_what_all_its_tasks_wait_for() -> None:
    shape = compiled(plan_of({"id": "a"}, {"id": "b", "dependencies": ["a"]}))
    for task in ("a", "b"):
        summary = explained_by(by_hand(shape, *PLAN_ASKED), shape, task).summary
        assert "waits: a person must agree to the plan first (approval p)" in summary


# Its call -------------------------------------------------------------------------------------------------------------


def test_a_running_task_tells_its_visit_its_attempt_since_when_and_its_parameters() -> None:
    made = basic()
    plan = plan_of({"id": "a", "skill": "fail", "parameters": {"n": 1, "s": "${k}"}}, context={"k": 5})
    made.run(plan, run_id="r")
    began = made.of("task_started")[0]
    found = explained(made, plan, "a", upto=began.seq)
    assert found.summary == "'a' is RUNNING: it has been running since 2023-11-14T22:13:20+00:00: visit 1, attempt 1."
    assert dict(the(found, "visit").values) == {"parameters.n": 1, "parameters.s": 5}
    again = explained(made, plan, "a", upto=made.of("attempt_failed")[0].seq)
    assert again.summary.endswith("visit 1, attempt 2, due at 2023-11-14T22:13:25+00:00.")
    assert of(again, "attempt") == ["attempt 1 failed (exception OSError: call 1 fails); the next one 0.25 s later"]


def test_retries_their_waits_and_the_fallback_are_facts() -> None:
    made = basic()
    plan = plan_of({**FAILS, "max_retries": 1, "fallback": {"value": 1}})
    made.run(plan, run_id="r")
    found = explained(made, plan, "bad")
    assert of(found, "attempt") == [
        "attempt 1 failed (exception OSError: call 1 fails); the next one 0.25 s later",
        "attempt 2 failed (exception OSError: call 2 fails); its fallback had its turn",
    ]
    assert found.summary.endswith("it succeeded (by its fallback, 2 attempts).")
    fell_back = made.of("attempt_failed")[-1].seq
    assert explained(made, plan, "bad", upto=fell_back).summary.endswith("visit 1, its fallback.")


def test_very_many_retries_are_told_from_both_ends() -> None:
    made = basic()
    plan = plan_of({**FAILS, "max_retries": 500, "recovery": "skip", "parameters": {"n": 900}})
    made.run(plan, run_id="r")
    found = explained(made, plan, "bad")
    assert of(found, "omitted") == ["… and 472 more"]
    assert found.reason == "optional"


# A person -------------------------------------------------------------------------------------------------------------


def test_what_waits_for_a_person_tells_what_since_when_until_when_and_how_it_may_be_decided() -> None:
    made = basic()
    plan = plan_of({**ASK, "approval_timeout": 60, "risk_level": "high"}, {"id": "b", **NAP})
    made.run(plan, run_id="r")
    (asked,) = made.of("approval_asked")
    found = explained(made, plan, "ask", upto=asked.seq)
    assert found.summary == (
        "'ask' is WAITING_APPROVAL: it waits for a person since 2023-11-14T22:13:20+00:00, until "
        f"2023-11-14T22:14:20+00:00: approve | reject | skip (task, {asked.approval})."
    )
    fact = the(found, "wait")
    assert (fact.seq, dict(fact.values)) == (asked.seq, {"parameters.s": 10})
    assert of(found, "approval") == [
        f"a person must agree to this visit (visit 1) · approval {asked.approval} · risk high · digest {asked.digest}"
        " · expires 2023-11-14T22:14:20+00:00"
    ]


def test_an_approver_is_said_to_be_asked_until_it_hands_on() -> None:
    made = basic(approver=lambda request: None)
    plan = plan_of(ASK)
    made.run(plan, run_id="r")
    asked = made.of("approval_asked")[0]
    assert "it waits for the approver of the process" in explained(made, plan, "ask", upto=asked.seq).summary
    found = explained(made, plan, "ask")
    assert "it waits for a person since" in found.summary
    assert of(found, "approval")[-1] == f"the approver left approval {asked.approval} to a person"


def test_an_approved_task_is_told_with_who_approved_and_the_condition_of_before() -> None:
    made = basic()
    write = {"id": "b", "skill": "write", "parameters": {"key": "n", "value": 2}}
    plan = plan_of({**ASK, "condition": "n == 1"}, write, context={"n": 1})
    resumed_after(made, plan, ("ask", "approve"), by="Ada", why="fine")
    found = explained(made, plan, "ask")
    assert dict(the(found, "condition").values) == {"n": 1}
    assert of(found, "approval")[-1].endswith("approved by Ada: fine")
    began = next(fact for fact in found.facts if fact.text == "visit 1 began")
    assert dict(began.values) == {"parameters.s": 10}
    decided = made.of("approval_decided")[0].seq
    assert of(explained(made, plan, "ask", upto=decided), "approval")[-1].startswith("a person has agreed")


def test_a_failure_that_a_person_must_look_at_tells_the_error_and_a_second_turn_tells_who_wanted_it() -> None:
    made = basic()
    plan = plan_of({**FAILS, "parameters": {"n": 1}, "recovery": "pause"})
    resumed_after(made, plan, ("bad", "rerun"), by="Ada", why="the net is back")
    asked = made.of("approval_asked")[0].seq
    found = explained(made, plan, "bad", upto=asked)
    assert of(found, "failure") == ["exception OSError: call 1 fails"]
    assert "rerun | done | skip | fail (failed, " in found.summary
    before = explained(made, plan, "bad", upto=made.of("task_evaluated")[0].seq)
    assert before.summary == "'bad' is WAITING_APPROVAL: it failed, and a person is about to be asked."
    again = explained(made, plan, "bad")
    assert again.summary == (
        "'bad' is SUCCEEDED: it was to be run again by Ada: the net is back, and it succeeded (visit 2, 1 attempt)."
    )


def test_what_a_person_declares_done_is_told_so() -> None:
    made = basic()
    plan = plan_of({**FAILS, "recovery": "pause"})
    resumed_after(made, plan, ("bad", "done"), by="Ada", why="by hand")
    assert explained(made, plan, "bad").summary == "'bad' is SUCCEEDED: it was declared done by Ada: by hand."


def test_an_approval_that_a_jump_withdrew_is_another_turn_than_the_one_after_it() -> None:
    made = basic()
    judge = {"id": "judge", "skill": "fail", "parameters": {"n": 1, "s": 5}, "max_retries": 0, "join": "any",
             "dependencies": ["quick", "ask"], "on_failure": "draft"}  # fmt: skip
    plan = plan_of(
        {"id": "draft"}, {"id": "quick", "dependencies": ["draft"]}, {**ASK, "dependencies": ["draft"]}, judge
    )
    result = made.run(plan, run_id="r")
    assert result.phase == "paused"
    first, second = made.of("approval_asked")
    found = explained(made, plan, "ask")
    assert [fact.seq for fact in found.facts if fact.kind == "approval"] == [first.seq, second.seq]
    assert [fact.seq for fact in found.facts if fact.kind == "loop"] == [made.of("task_evaluated", task="judge")[0].seq]
    history = History(made.events, Folder(made.events, compiled(plan))(len(made.events)), "ask")
    assert len(history.turns) == 2


# Crashes and take-overs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("happens", "kind", "text"),
    [
        (
            ev.TaskInterrupted(task="a", visit=1, attempt=1, then="again"),
            "attempt",
            "attempt 1 of visit 1 was interrupted: its process died or lost the run; the skill is idempotent, so that "
            "it is called again",
        ),
        (
            ev.RunTakenUp(driver="ada@host:12", why="recover"),
            "driver",
            "the run was taken up by ada@host:12 (recover)",
        ),
        (
            ev.DecisionIgnored(approval="x1", decision="approved", task="a", by="Bob", message="it had expired"),
            "approval",
            "a decision on approval x1 came too late: approved by Bob (it had expired)",
        ),
        (
            ev.CallAbandoned(task="a", visit=1, attempt=1, why="timeout"),
            "attempt",
            "the call of attempt 1 took too long and went on; what it came to is dropped",
        ),
        (ev.LoopBlocked(task="a", visit=1, seconds=2.5), "attempt", "its call held up everything else for 2.5 s"),
    ],
    ids=lambda value: value.type if isinstance(value, ev.Event) else "",
)
def test_what_happened_around_a_call_is_a_fact(happens: ev.Event, kind: str, text: str) -> None:
    made = basic()
    plan = plan_of({"id": "a"})
    made.run(plan, run_id="r")
    upto = made.of("task_started")[0].seq
    events = [*made.events[:upto], msgspec.structs.replace(happens, seq=upto + 1, run_id="r")]
    made.events[:] = events
    found = explained(made, plan, "a")
    fact = next(fact for fact in found.facts if fact.seq == upto + 1)
    assert (fact.kind, fact.text) == (kind, text)


def test_a_copied_run_says_which_run_it_is_a_copy_of() -> None:
    made = basic()
    plan = plan_of({"id": "a"}, {"id": "b", "dependencies": ["a"]})
    made.run(plan, run_id="r")
    upto = made.of("task_evaluated", task="a")[0].seq
    copied = [*made.events[:upto], ev.RunForked(source="old", upto=upto, seq=upto + 1, run_id="r")]
    shape = compiled(plan)
    text = f"up to event {upto} the run is a copy of run 'old', where that much happened"
    assert of(explained_by(copied, shape, "a"), "origin") == [text]
    assert of(explained_by(copied, shape, "b"), "origin") == []


class _Compensated(ev.Event, frozen=True, gc=False, tag="compensation_failed"):
    task: str = "a"


def test_an_event_of_a_kind_that_is_not_known_here_is_told_by_its_name() -> None:
    made = basic()
    plan = plan_of({"id": "a"})
    made.run(plan)
    case = Case(made.events, Folder(made.events, compiled(plan)), "a", Redactor())
    fact = tell(case, _Compensated(seq=7))
    assert fact is not None
    assert (fact.kind, fact.text, fact.seq) == ("event", "compensation failed", 7)
