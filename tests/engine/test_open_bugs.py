"""What the engine does not do yet as the pages say: each test here fails until its cause is mended."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import pytest

from fsm_agent import ApprovalRequest, InvalidPlan, PlanRequest, Proposal, RefusedByFilter, RunResult, SkillContext, skill
from fsm_agent.engine.simulation import simulate
from fsm_agent.errors import DecisionRefused, IllegalTransition
from fsm_agent.testing import ScriptedSkill
from tests.engine.scripted import compiled, replayed
from tests.engine.support import basic, bench, drive, others_end, plan_of, statuses, until
from fsm_agent import PlannerEngine

NAP: dict[str, Any] = {"skill": "nap", "parameters": {"s": 10}}
FAILS: dict[str, Any] = {"id": "a", "skill": "fail", "parameters": {"n": 99}}


# Attempts ---------------------------------------------------------------------------------------------------------


def test_each_attempt_gets_its_own_copy_of_parameters_without_a_type() -> None:
    """`Visit.start` validates `self.parameters` anew, and pydantic hands on what is `Any` as it is."""
    seen: list[Any] = []

    @skill(idempotent=True)
    async def spoil(items, deep: dict[str, Any]) -> None:  # type: ignore[no-untyped-def] # untyped is the point
        seen.append([[*items], {"list": [*deep["list"]]}])
        items.append("spoiled")
        deep["list"].append("spoiled")
        raise OSError("down")

    task = {"id": "a", "skill": "spoil", "parameters": {"items": ["x"], "deep": {"list": [1]}}, "max_retries": 1}
    basic({"spoil": spoil}).run(plan_of(task))
    assert seen == [[["x"], {"list": [1]}]] * 2


def test_a_skill_cannot_change_the_record_of_its_own_start() -> None:
    """The event holds the very objects that the skill is called with."""

    async def spoil(items: Any) -> None:
        items.append("spoiled")

    made = basic({"spoil": spoil})
    made.run(plan_of({"id": "a", "skill": "spoil", "parameters": {"items": "${[n]}"}}, context={"n": 1}))
    assert made.of("task_started")[0].parameters == {"items": [1]}


def test_a_skill_that_raises_a_bare_base_exception_fails_its_task() -> None:
    """`failure_of`: `classes` is empty there, and `classes[0]` an IndexError."""

    async def odd() -> None:
        raise BaseException("odd")

    made = basic({"odd": odd})
    result = bounded(made, plan_of({"id": "a", "skill": "odd", "recovery": "skip"}))
    assert statuses(result) == {"a": "optional"}


def test_a_fault_of_the_engine_itself_is_raised_where_the_run_is_awaited_and_hangs_nothing() -> None:
    """After the fault `Handle._cancel` drives on, and waits for ever for the visit that will never end."""

    class Broken:
        def random(self) -> float:
            raise ArithmeticError("no chance")

    with pytest.raises(ArithmeticError):
        bounded(basic(random=Broken()), plan_of(FAILS))


def bounded(made: Any, plan: Any, **options: Any) -> RunResult:
    """A run that must not hang: after two seconds it is given up."""

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan, **options))
        done, _ = await asyncio.wait({run}, timeout=2)
        for _ in range(3):
            if not run.done():
                run.cancel()
                await asyncio.wait({run}, timeout=0.2)
        assert done, "the run hangs"
        return run.result()

    return drive(main())


# Fallbacks --------------------------------------------------------------------------------------------------------


def test_a_fallback_skill_of_high_risk_is_not_called_without_approval() -> None:
    """`Acceptor.stand_in` looks at its permissions, but not at its risk (page, section 3: "permissions and risk")."""
    calls: list[str] = []

    @skill(risk="high")
    async def pay() -> None:
        calls.append("paid")

    made = basic({"pay": pay})
    made.run(plan_of({**FAILS, "max_retries": 0, "fallback": {"skill": "pay", "parameters": {}}}))
    assert calls == []


# Approvals --------------------------------------------------------------------------------------------------------


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


LOOP = [
    {"id": "draft", "skill": "bump"},
    {"id": "quick", "dependencies": ["draft"]},
    {"id": "judge", "skill": "fail", "parameters": {"n": 1, "s": 5}, "max_retries": 0, "join": "any",
     "dependencies": ["quick", "ask"], "on_failure": "draft"},
]  # fmt: skip


def counting(**engine: Any) -> Any:
    """A bench with `bump`, which adds one to the context's n."""
    made = basic(**engine)

    async def bump(context: SkillContext) -> None:
        context.set("n", context.get("n", 0) + 1)

    made.engine.skills.add(bump)
    return made


def test_an_approval_that_was_given_before_a_jump_does_not_count_for_other_parameters_after_it() -> None:
    """A reset task that was approved and not started keeps its consent, and is called with what was rendered before."""
    made = counting()
    ask = {"id": "ask", "skill": "write", "parameters": {"key": "got", "value": "${n}"}, "approval": "required",
           "dependencies": ["draft"], "locks": ["db"]}  # fmt: skip
    wait = {"id": "wait", "skill": "nap", "parameters": {"s": 1}}
    keeps = {"id": "keeps", "skill": "nap", "parameters": {"s": 8}, "locks": ["db"], "dependencies": ["wait"]}
    draft, quick, judge = LOOP

    async def main() -> RunResult:
        plan = plan_of(draft, quick, ask, judge, wait, keeps, context={"n": 0})
        run = asyncio.create_task(made.engine.run(plan, run_id="r"))
        await made.clock.sleep(2)
        await made.engine.decide("r", "ask", "approve")
        return await run

    result = drive(main())
    assert result.context.get("got") != 1, "called with the parameters of before the jump"
    assert [event.parameters["value"] for event in made.of("approval_asked")] == [1, 2]


def test_an_approval_that_is_asked_for_again_after_a_jump_has_its_own_time() -> None:
    """The timer of the withdrawn question still runs, and the new question has the same id."""
    made = counting()
    ask = {"id": "ask", "skill": "nap", "parameters": {"s": 1}, "approval": "required", "approval_timeout": 20,
           "dependencies": ["draft"], "recovery": "skip"}  # fmt: skip
    draft, quick, judge = LOOP
    keeps = {"id": "keeps", "skill": "nap", "parameters": {"s": 50}}
    made.run(plan_of(draft, quick, ask, judge, keeps, context={"n": 0}))
    asked = made.of("approval_asked")
    assert len(asked) == 2
    assert made.of("approval_decided")[0].at == asked[1].expires_at == asked[1].at + 20


def test_a_question_about_a_failed_task_is_withdrawn_by_a_jump_at_the_same_moment() -> None:
    """`Run.to_ask` keeps the place of a task that is reset before it was asked about (a stream judges several at once)."""
    made = basic()
    common = {"skill": "fail", "parameters": {"n": 1, "s": 5}, "max_retries": 0}
    plan = plan_of(
        {"id": "draft"},
        {**common, "id": "a", "recovery": "pause", "dependencies": ["draft"]},
        {"id": "quick", "dependencies": ["draft"]},
        {**common, "id": "judge", "join": "any", "dependencies": ["a", "quick"], "on_failure": "draft"},
    )

    async def main() -> list[RunResult]:
        async with made.engine.stream(plan, run_id="r") as stream:
            async for _ in stream:
                pass
        assert stream.result is not None
        return [stream.result, await made.engine.resume("r")]

    paused, result = drive(main())
    assert (paused.phase, paused.waiting) == ("paused", [])
    assert statuses(result)["a"] == "SUCCEEDED"


def test_a_failure_that_was_not_asked_about_yet_does_not_wait_after_the_run_was_aborted() -> None:
    """`Run._stop` forgets `to_ask`, and leaves the statuses of its tasks at WAITING_APPROVAL."""
    made = basic()
    plan = plan_of(
        {"id": "ask", "approval": "required", "recovery": "pause"},
        {"id": "a", "skill": "fail", "parameters": {"n": 9}, "max_retries": 0, "recovery": "pause"},
    )

    async def main() -> RunResult:
        await made.engine.run(plan, run_id="r")
        await made.engine.decide("r", "ask", "reject")
        await made.engine.decide("r", "a", "fail")
        return await made.engine.resume("r")

    result = drive(main())
    assert (result.phase, statuses(result)) == ("failed", {"ask": "PENDING", "a": "FAILED"})


def test_a_decision_that_ends_a_run_at_the_moment_of_its_pause_hangs_nothing() -> None:
    """`Driver._resting` says no where a paused run is ending, `decide` says `Rest`: `drive` waits for ever."""
    made = basic()
    doings: list[asyncio.Task[None]] = []

    def meddle(event: Any) -> None:
        if event.type == "phase_changed" and event.dest == "paused":
            doings.append(asyncio.get_running_loop().create_task(made.engine.decide("r", "a", "fail")))

    made.engine.add_listener(meddle)
    task = {"id": "a", "skill": "fail", "parameters": {"n": 9}, "max_retries": 0, "recovery": "pause"}
    assert bounded(made, plan_of(task), run_id="r").phase in ("paused", "failed")


def test_an_approver_may_be_a_plain_function_that_returns_an_awaitable() -> None:
    """The type of `Approver` allows it; its answer is called nonsense, and the coroutine is never awaited."""

    async def ask(request: ApprovalRequest) -> bool:
        return True

    made = basic(approver=lambda request: ask(request))
    assert made.run(plan_of({"id": "ask", "approval": "required"})).completed


# Order ------------------------------------------------------------------------------------------------------------


def test_what_finishes_at_one_moment_is_judged_in_the_order_of_the_plan() -> None:
    """Each is judged at once when it ends, so that ties are never sorted by their place."""
    made = basic()
    tasks = [{"id": "low", **NAP, "priority": "low"}, {"id": "high", **NAP, "priority": "high"}]
    assert made.run(plan_of(*tasks)).trace == [("low", "ok"), ("high", "ok")]


# Results ----------------------------------------------------------------------------------------------------------


def test_what_a_loop_found_so_far_is_in_the_report_of_a_run_that_a_limit_ended() -> None:
    """`data` is the last visit's (cli.md), results so far are in the report (F12); a reset forgets them."""

    async def find() -> str:
        return "found"

    again = {"id": "again", "dependencies": ["search"], "condition": "on", "on_success": "search"}
    result = basic({"find": find}).run(plan_of({"id": "search", "skill": "find", "max_visits": 2}, again, context={"on": True}))
    assert (result.reason or {})["kind"] == "limit"
    assert result.tasks["search"].data == "found"


def test_the_reason_of_a_loop_that_is_used_up_names_the_setting_and_the_count() -> None:
    """F12 wants task, count and setting in the reason; the failure of the jumping task alone is in it."""
    judge = {"id": "judge", "skill": "fail", "parameters": {"n": 99}, "max_retries": 0, "dependencies": ["search"], "on_failure": "search"}
    result = basic().run(plan_of({"id": "search", "max_visits": 3}, judge))
    message = (result.reason or {})["message"]
    assert "search" in message, message
    assert "max_visits" in message, message
    assert "3" in message, message


def test_the_json_of_a_result_has_exactly_the_keys_of_the_command_line() -> None:
    """`not_run_finalizers` is one more."""
    document = basic().run(plan_of({"id": "a"})).to_json()
    assert set(document) == {
        "format", "run_id", "phase", "outcome", "reason", "goal", "plan_version", "output", "context", "tasks",
        "trace", "waiting", "criteria", "approvals", "resumable", "labels", "coverage", "invalid_actions", "elapsed_s",
    }  # fmt: skip


def test_a_simulated_run_keeps_as_little_of_an_unverified_result_as_a_real_one() -> None:
    """`Simulation._verify` leaves the data in the outcome, the engine does not: `results.a.data.v` differs."""

    async def give() -> dict[str, int]:
        return {"v": 0}

    plan = plan_of({"id": "a", "skill": "give", "verification": "result.v > 0", "on_failure": "b"}, {"id": "b"})
    real = basic({"give": give}).run(plan)
    simulated = simulate(compiled(plan), {"a": [{"data": {"v": 0}}]})
    assert simulated.tasks["a"].data == real.tasks["a"].data


def test_a_result_of_a_paused_run_shares_nothing_with_the_run() -> None:
    """`result_of` hands out the committed context and the data of tasks themselves."""
    made = basic()
    write = {"skill": "write", "parameters": {"key": "list", "value": [1]}}
    plan = plan_of({"id": "a", **write}, {"id": "ask", "dependencies": ["a"], "approval": "required"})

    async def main() -> RunResult:
        paused = await made.engine.run(plan, run_id="r")
        paused.context["list"].append("spoiled")
        paused.tasks["a"].data["seen"].append("spoiled")
        await made.engine.decide("r", "ask", "approve")
        return await made.engine.resume("r")

    result = drive(main())
    assert (result.context, result.tasks["a"].data) == ({"list": [1]}, {"seen": [1]})


# Journal ----------------------------------------------------------------------------------------------------------


def test_a_journal_whose_last_transition_is_missing_is_refused_at_its_end() -> None:
    """`run_finished` changes nothing, and is not compared with the phase."""
    made = basic()
    plan = plan_of({"id": "a"})
    made.run(plan, run_id="r")
    last = max(place for place, event in enumerate(made.events) if event.type == "phase_changed")
    with pytest.raises(IllegalTransition):
        replayed(plan, made.events[:last] + made.events[last + 1 :])


def test_a_planner_that_comes_back_after_the_end_of_its_run_adds_nothing_to_it() -> None:
    class Stubborn:
        asked = False

        async def propose(self, request: PlanRequest) -> Proposal:
            self.asked = True
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0.01)
            return Proposal(plan_of({"id": "a"}))

    planner = Stubborn()
    made = basic(planner=planner)

    async def main() -> None:
        run = asyncio.create_task(made.engine.run(goal="g", run_id="r"))
        await until(lambda: planner.asked)
        await made.engine.cancel("r")
        await run
        await asyncio.sleep(0.05)

    drive(main())
    assert made.events[-1].type == "run_finished"


@pytest.mark.parametrize("what", ["cancel", "pause"])
def test_nothing_is_recorded_after_the_end_of_a_run_that_is_still_in_hand(what: str) -> None:
    """`cancel` and `pause` do not look whether the run is over; it is in hand until its task goes on."""
    made = basic()
    doings: list[asyncio.Task[None]] = []

    def meddle(event: Any) -> None:
        if event.type == "run_finished":
            doings.append(asyncio.get_running_loop().create_task(getattr(made.engine, what)("r")))

    made.engine.add_listener(meddle)

    async def main() -> None:
        await made.engine.run(plan_of({"id": "a"}), run_id="r")
        await asyncio.gather(*doings, return_exceptions=True)

    drive(main())
    assert made.events[-1].type == "run_finished"


# Streams ----------------------------------------------------------------------------------------------------------


def test_a_stream_begins_with_the_first_event_of_its_run() -> None:
    """`run_started` is recorded before the stream listens."""
    made = basic()

    async def main() -> list[Any]:
        return [event async for event in made.engine.stream(plan_of({"id": "a"}))]

    assert drive(main()) == made.events


def test_a_stream_that_nobody_took_anything_from_can_be_closed_and_its_run_is_gone() -> None:
    made = basic()

    async def main() -> None:
        async with made.engine.stream(plan_of({"id": "a"}), run_id="r"):
            pass
        assert made.engine.run_ids == ()

    drive(main())


def test_a_stream_that_is_just_left_ends_with_its_event_loop_and_without_a_message(caplog: pytest.LogCaptureFixture) -> None:
    """`asyncio.run` closes both generators, `_drive` and the `steps` below it, at once: the second is running."""
    made = basic()
    plan = plan_of({"id": "a", **NAP}, {"id": "clean", "dependencies": ["a"], "join": "all_done"})

    async def main() -> None:
        async for event in made.engine.stream(plan):
            if event.type == "task_started":
                break

    with caplog.at_level(logging.ERROR, "asyncio"):
        drive(main())
    assert caplog.messages == []
    assert made.events[-1].type == "run_finished"


# Secrets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_refusal_of_a_filter_that_quotes_a_secret_is_redacted(when: str) -> None:
    """`FilterApplied.why`, and the task's error in a `before` filter, are recorded as they are."""

    def refuse(parameters: dict[str, Any], *_: Any) -> Any:
        raise RefusedByFilter(f"{parameters['it']} is refused")

    @skill(**{when: refuse})
    async def use(it: str) -> None: ...

    made = basic({"use": use})
    plan = plan_of({"id": "a", "skill": "use", "parameters": {"it": "${token}"}}, inputs={"token": {"secret": True}})
    result = made.run(plan, inputs={"token": "xyzzy-4711"})
    told = str([result.to_json(), [event.to_json() for event in made.events]])
    assert "xyzzy-4711" not in told


# Others -----------------------------------------------------------------------------------------------------------


def test_a_scripted_skill_is_given_to_an_engine_as_its_docstring_shows() -> None:
    """`PlannerEngine([book], clock=clock)`: a ScriptedSkill is no function."""
    book = ScriptedSkill("book", ["done"])
    assert PlannerEngine([book]).run_sync({"tasks": [{"id": "a", "skill": "book"}]}).completed  # type: ignore[list-item] # as in the docstring


def test_a_refused_expression_is_not_called_an_ill_typed_parameter_as_well() -> None:
    """The rule for parameters takes the text of an expression that did not compile for a constant."""
    plan = plan_of({"id": "a", "skill": "nap", "parameters": {"s": "${open('x')}"}})
    with pytest.raises(InvalidPlan) as refused:
        basic().run(plan)
    assert [problem.rule for problem in refused.value.problems] == ["unsafe_expression"]


def test_a_planner_may_propose_inputs() -> None:
    """`Proposal.inputs` is read by nobody."""

    class Knows:
        async def propose(self, request: PlanRequest) -> Proposal:
            plan = plan_of({"id": "a"}, inputs={"city": {"type": "string"}}, output="city")
            return Proposal(plan, inputs={"city": "Kiel"})

    assert basic(planner=Knows()).run(goal="g").output == "Kiel"
