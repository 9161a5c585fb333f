"""Rollback: compensations in the reverse order of success, then all runs again as if it had not run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fsm_agent import RunResult, SkillContext, skill
from fsm_agent.engine.contexts import idempotency_key
from fsm_agent.errors import DecisionRefused
from tests.engine.support import Basic, basic, drive, plan_of, resumed_after, statuses

Task = dict[str, Any]


class Undoing:
    """A bench whose skill `undo(**anything)` keeps what it was called with, and fails as often as it is told."""

    def __init__(self, **engine: Any) -> None:
        self.called: list[tuple[str, dict[str, Any]]] = []
        self.keys: list[str] = []
        self.fails = 0
        self.takes = 0.0

        @skill(idempotent=True, max_retries=0)
        async def undo(context: SkillContext, value: Any = None, key: str | None = None, token: str = "") -> Any:
            given = {"value": value, "key": key, "token": token}
            self.called.append((context.task_id, {name: item for name, item in given.items() if item}))
            self.keys.append(context.idempotency_key)
            if self.takes:
                await self.bench.clock.sleep(self.takes)
            if len(self.called) <= self.fails:
                raise OSError("it cannot be undone")
            return {"undone": context.task_id}

        self.bench: Basic = basic({"undo": undo}, **engine)

    @property
    def order(self) -> list[str]:
        return [task for task, _ in self.called]

    def run(self, plan: dict[str, Any], **options: Any) -> RunResult:
        return self.bench.run(plan, run_id="r", **options)


def undoable(name: str, **keys: Any) -> Task:
    return {"id": name, "skill": "ok", "compensation": {"skill": "undo", "parameters": {}}, **keys}


def failing(name: str, times: int = 1, **keys: Any) -> Task:
    return {
        "id": name, "skill": "fail", "parameters": {"n": times}, "max_retries": 0, "recovery": "rollback", **keys,
    }  # fmt: skip


def writing(name: str, key: str, value: Any, **keys: Any) -> Task:
    return {"id": name, "skill": "write", "parameters": {"key": key, "value": value}, **keys}


CHAIN = [undoable("a"), undoable("b", dependencies=["a"]), undoable("c", dependencies=["b"])]


def test_what_succeeded_is_undone_in_reverse_and_runs_again() -> None:
    made = Undoing()
    result = made.run(plan_of(*CHAIN, failing("d", dependencies=["c"]), {"id": "e", "dependencies": ["d"]}))
    assert made.order == ["c", "b", "a"]
    assert [task for task, _ in result.trace] == ["a", "b", "c", "d", "a", "b", "c", "d", "e"]
    assert (result.phase, result.outcome) == ("completed", "clean")


@pytest.mark.parametrize(
    ("to", "undone", "again"),
    [
        (None, ["c", "b", "a"], ["a", "b", "c", "d"]),
        ("a", ["c", "b", "a"], ["a", "b", "c", "d"]),
        ("b", ["c", "b"], ["b", "c", "d"]),
        ("d", [], ["d"]),
        ("late", ["c"], ["c", "d"]),
    ],
)
def test_it_leads_back_to_a_task_a_layer_or_the_start(to: str | None, undone: list[str], again: list[str]) -> None:
    made = Undoing()
    last = {**CHAIN[2], "layer": "late"}
    failed = failing("d", dependencies=["c"], **({"rollback_to": to} if to else {}))
    result = made.run(plan_of(*CHAIN[:2], last, failed))
    assert made.order == undone
    assert [task for task, _ in result.trace] == ["a", "b", "c", "d", *again]


def test_a_layer_is_gone_back_to_as_it_was_with_its_branches_undecided() -> None:
    made = Undoing()
    plan = plan_of(
        {"id": "which", "verification": "True", "on_success": "left", "on_failure": "right"},
        undoable("left", layer="book"),
        undoable("right", layer="book"),
        failing("pay", dependencies=["left", "right"], rollback_to="book"),
    )
    result = made.run(plan)
    assert made.order == ["left"]
    assert statuses(result) == {
        "which": "SUCCEEDED", "left": "SUCCEEDED", "right": "not_taken", "pay": "SUCCEEDED",
    }  # fmt: skip


def test_going_back_to_a_task_runs_it_though_no_branch_leads_there_any_more() -> None:
    plan = plan_of(
        {"id": "which", "verification": "True", "on_success": "left", "on_failure": "right"},
        {"id": "left"},
        {"id": "right"},
        failing("pay", dependencies=["left", "right"], rollback_to="right", priority="high"),
    )
    result = Undoing().run(plan)
    assert [task for task, _ in result.trace] == ["which", "left", "pay", "right", "pay"]


def test_the_order_is_that_of_success_and_not_that_of_the_plan() -> None:
    made = Undoing()
    slow = undoable("a", skill="nap", parameters={"s": 3})
    plan = plan_of(slow, undoable("b"), failing("c", dependencies=["a", "b"]))
    made.run(plan)
    assert made.order == ["a", "b"]


def test_the_number_of_rollbacks_is_bounded_and_the_reason_says_so() -> None:
    made = Undoing()
    result = made.run(plan_of(undoable("a"), failing("b", 9, dependencies=["a"]), limits={"max_rollbacks": 2}))
    assert made.order == ["a", "a"]
    assert (result.phase, result.reason and result.reason["kind"]) == ("failed", "exception")
    assert "it is not rolled back: limits.max_rollbacks allows 2" in (result.reason or {})["message"]
    assert statuses(result) == {"a": "SUCCEEDED", "b": "FAILED"}


@pytest.mark.parametrize(
    ("task", "failed", "words"),
    [
        ({}, {"max_visits": 1}, "task 'b' has had 1 visits (max_visits: 1)"),
        ({"max_visits": 1}, {"rollback_to": "a"}, "task 'a' has had 1 visits (max_visits: 1)"),
    ],
)
def test_a_rollback_that_could_not_help_is_not_made(task: Task, failed: Task, words: str) -> None:
    made = Undoing()
    result = made.run(plan_of(undoable("a", **task), failing("b", dependencies=["a"], **failed)))
    assert (made.order, result.phase) == ([], "failed")
    assert words in (result.reason or {})["message"]


def test_a_task_whose_visits_are_used_up_ends_the_run_by_that_limit() -> None:
    made = Undoing()
    result = made.run(plan_of(undoable("a", max_visits=1, recovery="rollback"), failing("b", dependencies=["a"])))
    assert made.order == ["a"]
    assert (result.reason or {})["setting"] == "max_visits"


def test_a_failure_before_the_call_is_rolled_back_too() -> None:
    made = Undoing()
    bad = {"id": "b", "dependencies": ["a"], "condition": "context['nothing']", "recovery": "rollback"}
    result = made.run(plan_of(undoable("a"), bad))
    assert (made.order, result.phase) == (["a"], "failed")


def test_tasks_without_a_compensation_just_run_again() -> None:
    made = Undoing()
    result = made.run(plan_of({"id": "a"}, failing("b", dependencies=["a"])))
    assert (made.order, result.phase, result.tasks["a"].visits) == ([], "completed", 2)


# What a compensation is called with -----------------------------------------------------------------------------------


def test_its_own_parameters_may_name_the_result_of_the_task_and_of_others() -> None:
    made = Undoing()
    parameters = {"key": "${str(results.b.data.napped)}", "value": "${result.napped}"}
    undo = {"skill": "undo", "parameters": parameters}
    first = {"id": "a", "skill": "nap", "parameters": {"s": 2}, "compensation": undo}
    second = {"id": "b", "skill": "nap", "parameters": {"s": 3}, "dependencies": ["a"]}
    plan = plan_of(first, second, failing("c", dependencies=["b"]))
    made.run(plan)
    assert made.called == [("a", {"key": "3.0", "value": 2.0})]


def test_without_parameters_it_gets_those_of_the_call_as_they_were_then() -> None:
    made = Undoing()
    made.run(
        plan_of(
            writing("a", "n", "${context['n'] + 1}", compensation={"skill": "undo"}),
            writing("b", "n", 7, dependencies=["a"]),
            failing("c", dependencies=["b"]),
            context={"n": 1},
        )
    )
    assert made.called == [("a", {"key": "n", "value": 2})]


def test_a_secret_of_the_call_reaches_its_compensation_and_no_record() -> None:
    made = Undoing()
    task = {
        "id": "a", "skill": "undo", "parameters": {"token": "Bearer ${inputs.door}", "value": "${context['n']}"},
        "compensation": {"skill": "undo"},
    }  # fmt: skip
    plan = plan_of(
        task,
        writing("b", "n", 2, dependencies=["a"]),
        failing("c", dependencies=["b"]),
        context={"n": 1},
        inputs={"door": {"secret": True}},
    )
    made.run(plan, inputs={"door": "open-sesame"})
    assert made.called[1] == ("a", {"token": "Bearer open-sesame", "value": 1})
    assert "sesame" not in str([event.to_json() for event in made.bench.events])


def test_a_secret_that_cannot_be_worked_out_again_stops_the_undoing() -> None:
    made = Undoing()
    task = {
        "id": "a", "skill": "undo", "parameters": {"value": "${inputs.door} ${context['n']}"},
        "compensation": {"skill": "undo"},
    }  # fmt: skip
    plan = plan_of(
        task,
        writing("b", "n", 2, dependencies=["a"]),
        failing("c", dependencies=["b"]),
        context={"n": 1},
        inputs={"door": {"secret": True}},
    )
    result = made.run(plan, inputs={"door": "open-sesame"})
    assert (result.phase, result.waiting[0]["kind"]) == ("paused", "compensation")
    [failed] = made.bench.of("compensated")
    assert (failed.error.kind, failed.attempts) == ("parameters", 0)


def test_it_sees_its_task_its_visit_and_a_key_of_its_own() -> None:
    seen: list[tuple[str | None, int, int, list[str]]] = []

    @skill(idempotent=True, backoff={"base": 0})
    def undo(context: SkillContext) -> None:
        seen.append((context.task.description, context.visit, context.attempt, [*context.results]))
        keys.append(context.idempotency_key)
        if context.attempt == 1:
            raise OSError("once more")

    keys: list[str] = []
    made = basic({"undo": undo})
    plan = plan_of(
        {"id": "z"}, undoable("a", description="words", dependencies=["z"]), failing("b", dependencies=["a"])
    )
    made.run(plan, run_id="r")
    assert seen == [("words", 1, 1, ["z"]), ("words", 1, 2, ["z"])]
    assert set(keys) == {idempotency_key("r", "a", 1, "compensation")} != {idempotency_key("r", "a", 1)}


def test_what_it_writes_to_the_context_stays() -> None:
    def refund(context: SkillContext) -> None:
        context.set("refunded", True)
        context.set("n", 5)

    made = basic({"refund": refund})
    plan = plan_of(writing("a", "n", 1, compensation={"skill": "refund"}), failing("b", dependencies=["a"]))
    plan["tasks"][0]["compensation"]["parameters"] = {}
    plan["tasks"][0]["condition"] = "'refunded' not in context"
    result = made.run(plan)
    assert result.context == {"refunded": True, "n": 5}
    assert result.rollbacks[0]["kept"] == {}


# Compensations that fail ----------------------------------------------------------------------------------------------


def test_one_that_fails_pauses_the_run_for_a_person() -> None:
    made = Undoing()
    made.fails = 1
    result = made.run(plan_of(*CHAIN[:2], failing("c", dependencies=["b"])))
    assert (result.phase, made.order) == ("paused", ["b"])
    assert [(each["kind"], each["task"], each["visit"]) for each in result.waiting] == [("compensation", "b", 1)]
    assert statuses(result) == {"a": "SUCCEEDED", "b": "SUCCEEDED", "c": "PENDING"}
    assert result.rollbacks == [
        {
            "task": "c", "to": None, "compensated": [], "not_compensated": ["b", "a"], "undone": [], "kept": {},
            "finished": False,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(("decision", "order"), [("rerun", ["b", "b", "a"]), ("done", ["b", "a"])])
def test_the_person_has_it_called_again_or_says_that_it_is_done(decision: str, order: list[str]) -> None:
    made = Undoing()
    made.fails = 1
    paused, result = resumed_after(
        made.bench, plan_of(*CHAIN[:2], failing("c", dependencies=["b"])), ("b", decision), by="ann"
    )
    assert (paused.phase, result.phase, made.order) == ("paused", "completed", order)
    assert len(set(made.keys[: len(order) - 1])) == 1


def test_a_compensation_that_fails_twice_is_asked_about_twice() -> None:
    made = Undoing()
    made.fails = 2

    async def main() -> list[str]:
        asked = []
        await made.bench.engine.run(plan_of(undoable("a"), failing("b", dependencies=["a"])), run_id="r")
        for _ in range(2):
            await made.bench.engine.decide("r", "a", "rerun")
            result = await made.bench.engine.resume("r")
            asked += [each["approval"] for each in result.waiting]
        assert result.phase == "completed"
        return asked

    assert len(drive(main())) == 1
    asked = [event.approval for event in made.bench.of("approval_asked")]
    assert len(set(asked)) == 2


@pytest.mark.parametrize("decision", ["skip", "fail", "approved"])
def test_other_decisions_about_it_are_refused(decision: str) -> None:
    made = Undoing()
    made.fails = 1
    with pytest.raises(DecisionRefused, match="cannot be decided about"):
        resumed_after(made.bench, plan_of(undoable("a"), failing("b", dependencies=["a"])), ("a", decision))


def test_a_timeout_of_a_compensation_is_a_failure() -> None:
    @skill(timeout=1)
    async def undo(context: SkillContext) -> None:
        await made.clock.sleep(60)

    made = basic({"undo": undo})
    result = made.run(plan_of(undoable("a"), failing("b", dependencies=["a"])))
    assert result.phase == "paused"
    assert made.of("compensated")[0].error.kind == "timeout"


def test_a_permission_that_the_run_lacks_stops_the_undoing() -> None:
    @skill(requires={"refund"})
    def undo() -> None: ...

    made = basic({"undo": undo})
    plan = plan_of(undoable("a"), failing("b", dependencies=["a"]))
    assert made.run(plan).phase == "paused"
    assert made.of("compensated")[0].error.kind == "permission"
    assert made.run(plan, grants=["refund"]).phase == "completed"


def test_the_risk_of_a_compensation_is_a_risk_of_its_task_and_is_approved_with_it() -> None:
    asked: list[str | None] = []

    @skill(risk="high")
    def undo() -> None: ...

    def approver(request: Any) -> bool:
        asked.append(request.task)
        return True

    made = basic({"undo": undo})
    plan = plan_of(undoable("a"), failing("b", dependencies=["a"]))
    result = made.run(plan, approver=approver)
    assert (result.phase, asked) == ("completed", ["a", "a"])


# What goes on meanwhile -----------------------------------------------------------------------------------------------


def test_what_runs_of_the_set_is_discarded_and_undone_and_what_runs_outside_settles() -> None:
    made = Undoing()
    nap = {"skill": "nap", "parameters": {"s": 5}}
    plan = plan_of(
        undoable("start"),
        undoable("inside", dependencies=["start"], **nap),
        {"id": "outside", **nap},
        {"id": "waits", "dependencies": ["outside"]},
        failing("bad", dependencies=["start"], rollback_to="start"),
    )
    result = made.run(plan)
    assert made.order == ["inside", "start"]
    assert [event.task for event in made.bench.of("visit_discarded")] == ["inside"]
    assert result.trace[:3] == [("start", "ok"), ("bad", "fail"), ("outside", "ok")]
    assert made.bench.of("rollback_started")[0].seq > made.bench.of("task_evaluated", task="outside")[0].seq
    first = made.bench.of("task_started", task="waits")[0].seq
    assert first > made.bench.of("rolled_back")[0].seq
    assert (result.phase, result.tasks["inside"].visits, result.tasks["outside"].visits) == ("completed", 2, 1)


def test_a_second_failure_meanwhile_has_its_rollback_after_the_first() -> None:
    made = Undoing()
    plan = plan_of(
        undoable("a"),
        failing("x", dependencies=["a"], rollback_to="a"),
        undoable("b"),
        failing("y", dependencies=["b"], rollback_to="b", parameters={"n": 1, "s": 2}),
        limits={"max_rollbacks": 2},
    )
    result = made.run(plan)
    assert made.order == ["a", "b"]
    assert [each["task"] for each in result.rollbacks] == ["x", "y"]
    assert result.phase == "completed"


def test_a_second_failure_beyond_the_bound_aborts_once_the_first_is_undone() -> None:
    made = Undoing()
    plan = plan_of(
        undoable("a"),
        failing("x", dependencies=["a"], rollback_to="a"),
        undoable("b"),
        failing("y", dependencies=["b"], rollback_to="b", parameters={"n": 1, "s": 2}),
    )
    result = made.run(plan)
    assert (made.order, result.phase, result.reason and result.reason["task"]) == (["a"], "failed", "y")
    assert statuses(result) == {"a": "PENDING", "x": "PENDING", "b": "SUCCEEDED", "y": "FAILED"}


def test_a_failure_outside_that_aborts_ends_the_run_before_anything_is_undone() -> None:
    made = Undoing()
    plan = plan_of(
        undoable("a"),
        failing("x", dependencies=["a"], rollback_to="a"),
        {"id": "y", "skill": "fail", "parameters": {"n": 1, "s": 2}, "max_retries": 0},
    )
    result = made.run(plan)
    assert (made.order, result.phase, result.reason and result.reason["task"]) == ([], "failed", "y")
    assert statuses(result) == {"a": "SUCCEEDED", "x": "FAILED", "y": "FAILED"}


def test_a_question_about_a_task_of_the_set_is_withdrawn_and_put_again() -> None:
    made = Undoing()
    plan = plan_of(
        undoable("a"), {"id": "q", "approval": "required", "dependencies": ["a"]}, failing("b", dependencies=["a"])
    )
    result = made.run(plan)
    assert (result.phase, made.order) == ("paused", ["a"])
    assert [event.task for event in made.bench.of("approval_asked")] == ["q", "q"]
    assert [each["task"] for each in result.waiting] == ["q"]


# Cancel, limits and pauses in the middle ------------------------------------------------------------------------------


async def in_the_middle(made: Undoing, act: Callable[[str], Any]) -> RunResult:
    """The run of MIDDLE, in which something is done while the second compensation is under way."""
    made.takes = 5
    run = asyncio.create_task(made.bench.engine.run(MIDDLE, run_id="r"))
    await made.bench.clock.sleep(7)
    await act("r")
    return await run


MIDDLE = plan_of(
    writing("a", "x", 1, compensation={"skill": "undo", "parameters": {}}),
    writing("b", "y", 2, dependencies=["a"], compensation={"skill": "undo", "parameters": {}}),
    writing("c", "z", 3, dependencies=["b"], compensation={"skill": "undo", "parameters": {}}),
    failing("d", dependencies=["c"]),
    {"id": "last", "dependencies": ["d"], "join": "all_done"},
)


def assert_each_task_is_undone_or_is_not(result: RunResult) -> None:
    assert statuses(result) == {
        "a": "SUCCEEDED", "b": "SUCCEEDED", "c": "PENDING", "d": "FAILED", "last": "SUCCEEDED",
    }  # fmt: skip
    assert result.context == {"x": 1, "y": 2}
    [told] = result.rollbacks
    assert (told["compensated"], told["not_compensated"], told["finished"]) == (["c"], ["b", "a"], False)


def test_a_cancel_in_the_middle_leaves_each_task_undone_or_as_it_was() -> None:
    made = Undoing()

    result = drive(in_the_middle(made, made.bench.engine.cancel))
    assert result.phase == "cancelled"
    assert_each_task_is_undone_or_is_not(result)


def test_a_deadline_in_the_middle_does_the_same() -> None:
    made = Undoing()
    made.takes = 5
    result = made.run(MIDDLE, deadline=7)
    assert (result.phase, result.reason and result.reason["setting"]) == ("failed", "limits.deadline")
    assert_each_task_is_undone_or_is_not(result)
    assert [event.error.kind for event in made.bench.of("compensated") if event.error] == ["cancelled"]


def test_a_pause_in_the_middle_lets_the_call_end_and_the_rest_follows_after_it() -> None:
    made = Undoing()

    async def main() -> tuple[RunResult, RunResult]:
        paused = await in_the_middle(made, made.bench.engine.pause)
        assert made.order == ["c", "b"]
        return paused, await made.bench.engine.resume("r")

    paused, result = drive(main())
    assert (paused.phase, paused.rollbacks[0]["compensated"]) == ("paused", ["c", "b"])
    assert (result.phase, made.order) == ("completed", ["c", "b", "a"])


def test_a_cancel_while_a_person_is_asked_ends_the_run_in_the_same_way() -> None:
    made = Undoing()

    async def main() -> RunResult:
        made.fails = 1
        await made.bench.engine.run(MIDDLE, run_id="r")
        await made.bench.engine.decide("r", "c", "done")
        made.fails = 2
        paused = await made.bench.engine.resume("r")
        assert paused.waiting[0]["task"] == "b"
        return await made.bench.engine.cancel("r")

    result = drive(main())
    assert (result.phase, result.waiting) == ("cancelled", [])
    assert_each_task_is_undone_or_is_not(result)


# The context ----------------------------------------------------------------------------------------------------------


def test_own_writes_are_undone_newest_first_and_new_keys_removed() -> None:
    seen: list[dict[str, Any]] = []

    def look(context: SkillContext) -> None:
        seen.append({key: context.get(key) for key in ("n", "new")})

    made = basic({"look": look})
    plan = plan_of(
        {"id": "look", "skill": "look"},
        writing("a", "n", 1, dependencies=["look"]),
        writing("b", "n", 2, dependencies=["a"]),
        writing("c", "new", 3, dependencies=["b"]),
        failing("d", dependencies=["c"]),
        context={"n": 0},
    )
    result = made.run(plan)
    assert seen == [{"n": 0, "new": None}, {"n": 0, "new": None}]
    assert result.rollbacks[0]["undone"] == ["n", "new"]


def test_a_key_that_a_task_outside_has_written_since_stays_and_is_told() -> None:
    made = basic()
    plan = plan_of(
        writing("a", "n", 1),
        writing("out", "n", 2, soft_dependencies=[], parameters={"key": "n", "value": 2, "s": 1}, locks=["n"]),
        {"id": "wait", "skill": "nap", "parameters": {"s": 2}, "dependencies": ["a"]},
        failing("b", dependencies=["wait"], rollback_to="a"),
        merge={"n": "last"},
    )
    plan["tasks"][0]["condition"] = "context['n'] != 2"
    plan["context"] = {"n": 0}
    result = made.run(plan)
    assert result.context["n"] == 2
    assert result.rollbacks[0]["kept"] == {"n": "out"}
    assert made.of("rolled_back")[0].kept == {"n": "out"}


def test_of_merged_keys_the_share_of_the_set_is_taken_out() -> None:
    made = basic()
    plan = plan_of(
        writing("a", "sum", 10),
        writing("a2", "log", "a", dependencies=["a"]),
        writing("a3", "tags", ["p", "q"], dependencies=["a2"]),
        writing("out", "sum", 1, parameters={"key": "sum", "value": 1, "s": 1}),
        writing("out2", "log", "o", parameters={"key": "log", "value": "o", "s": 1}),
        writing("out3", "tags", ["q", "r"], parameters={"key": "tags", "value": ["q", "r"], "s": 1}),
        {"id": "wait", "skill": "nap", "parameters": {"s": 2}, "dependencies": ["a3"]},
        {**failing("b", dependencies=["wait"], rollback_to="a"), "max_visits": 2},
        limits={"max_rollbacks": 1},
        merge={"sum": "sum", "log": "append", "tags": "union"},
    )
    plan["tasks"][-1]["parameters"]["n"] = 9
    for task in plan["tasks"][:3]:
        task["condition"] = "context.get('sum', 0) == 0"
    result = made.run(plan)
    assert result.context == {"sum": 1, "log": ["o"], "tags": ["q", "r"]}


def test_what_an_earlier_round_of_an_outer_loop_wrote_stays() -> None:
    seen: list[Any] = []

    def count(context: SkillContext) -> None:
        seen.append(context.get("n"))
        context.set("n", context.get("n") + 1)

    made = basic({"count": count})
    plan = plan_of(
        {"id": "round", "skill": "ok"},
        {"id": "count", "skill": "count", "dependencies": ["round"]},
        {**failing("work", dependencies=["count"], rollback_to="count"), "condition": "n == 2", "parameters": {"n": 1}},
        {"id": "more", "dependencies": ["work"], "verification": "n < 3", "on_success": "round"},
        context={"n": 0},
    )
    result = made.run(plan)
    assert seen == [0, 1, 1, 2]
    assert result.context == {"n": 3}
    assert result.phase == "completed"


def test_a_cancel_leaves_no_task_waiting_for_an_answer_that_nobody_wants() -> None:
    made = Undoing()
    made.takes = 5
    question = {"id": "q", "approval": "required", "dependencies": ["a"]}
    plan = plan_of(undoable("a"), question, failing("b", dependencies=["a"]))
    result = made.run(plan, deadline=2)
    assert (result.phase, result.waiting) == ("failed", [])
    assert statuses(result) == {"a": "SUCCEEDED", "q": "PENDING", "b": "FAILED"}
