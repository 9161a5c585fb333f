"""The engine as a library: how it is given skills, plans and options, and what it gives back."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import InvalidPlan, PlannerEngine, RunResult, SkillContext, SkillRegistry, load_plan, skill
from fsm_agent.errors import RunExists, UnknownRun, UsageError
from tests.engine.support import basic, bench, bounded, drive, most_at_once, plan_of, statuses

HELLO = {"tasks": [{"id": "a", "skill": "hello"}]}


async def hello() -> str:
    return "hello"


# Skills and plans, in their forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dict", "list", "registry", "file", "folder"])
def test_skills_are_given_in_any_of_their_forms(form: str, tmp_path: Path) -> None:
    file = tmp_path / "skills.py"
    file.write_text("from fsm_agent import skill\n\n@skill\ndef hello():\n    return 'hello'\n", encoding="utf-8")
    given: dict[str, Any] = {
        "dict": {"hello": hello}, "list": [hello], "registry": SkillRegistry([hello]), "file": file, "folder": tmp_path,
    }  # fmt: skip
    assert PlannerEngine(given[form]).run_sync(HELLO).tasks["a"].data == "hello"


@pytest.mark.parametrize("form", ["dict", "list", "path", "str", "plan"])
def test_a_plan_is_given_in_any_of_its_forms(form: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(HELLO), encoding="utf-8")
    given: dict[str, Any] = {
        "dict": HELLO, "list": HELLO["tasks"], "path": file, "str": str(file), "plan": load_plan(HELLO)
    }  # fmt: skip
    assert bench([hello]).run(given[form]).completed


def test_run_sync_inside_an_event_loop_is_a_usage_error() -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match="event loop"):
            PlannerEngine([hello]).run_sync(HELLO)

    drive(main())


def test_an_unknown_option_is_a_type_error_that_names_it() -> None:
    with pytest.raises(TypeError, match="max_paralel"):
        bench([hello]).run(HELLO, max_paralel=3)


# What is wrong beforehand is raised, and nothing runs ---------------------------------------------------------------


@pytest.mark.parametrize("door", ["run", "stream"])
def test_an_invalid_plan_is_raised_with_all_its_problems_before_anything_runs(door: str) -> None:
    made = bench([hello])
    plan = plan_of(
        {"id": "a", "skill": "helo"}, {"id": "b", "skill": "hello", "dependencies": ["c"], "condition": "1 +"}
    )

    async def main() -> None:
        if door == "run":
            await made.engine.run(plan)
        else:
            made.engine.stream(plan)

    with pytest.raises(InvalidPlan) as refused:
        drive(main())
    assert {problem.rule for problem in refused.value.problems} == {
        "unknown_skill", "unknown_dependency", "bad_expression"
    }  # fmt: skip
    assert (made.events, made.engine.run_ids) == ([], ())


def test_what_this_engine_does_not_bring_is_refused_by_name() -> None:
    with pytest.raises(InvalidPlan) as refused:
        bench([hello]).run({"tasks": [{"id": "a", "skill": "hello", "foreach": "[1, 2]", "as": "x"}]})
    assert {(problem.rule, problem.field) for problem in refused.value.problems} == {
        ("not_supported", "foreach"), ("not_supported", "as")
    }  # fmt: skip


WITH_INPUTS = {
    "inputs": {"budget": {"type": "number"}, "city": {"type": "string", "default": "Kiel"}},
    "tasks": [{"id": "a", "skill": "echo", "parameters": {"it": "${inputs}"}}],
    "output": "[budget, city, context['budget']]",
}


async def echo(it: Any) -> Any:
    return it


def test_inputs_are_names_of_expressions_and_the_start_of_the_context() -> None:
    result = bench([echo]).run(WITH_INPUTS, inputs={"budget": 10})
    assert result.output == [10, "Kiel", 10]
    assert result.context == {"budget": 10, "city": "Kiel"}
    assert result.tasks["a"].data == {"budget": 10, "city": "Kiel"}


@pytest.mark.parametrize(
    ("inputs", "rule"),
    [({}, "missing_input"), ({"budget": 1, "x": 1}, "unknown_input"), ({"budget": "much"}, "bad_input")],
)
def test_inputs_that_do_not_fit_are_raised_before_anything_runs(inputs: dict[str, Any], rule: str) -> None:
    made = bench([echo])
    with pytest.raises(InvalidPlan) as refused:
        made.run(WITH_INPUTS, inputs=inputs)
    assert [problem.rule for problem in refused.value.problems] == [rule]
    assert (made.events, made.engine.run_ids) == ([], ())


def test_the_callers_own_data_is_neither_changed_nor_shared() -> None:
    async def spoil(it: Any) -> Any:
        it.append("spoiled")
        return it

    inputs, plan = {"it": ["given"]}, {
        "inputs": {"it": {}}, "context": {"list": []},
        "tasks": [{"id": "a", "skill": "spoil", "parameters": {"it": "${inputs.it}"}}],
    }  # fmt: skip
    made = bench([spoil])
    result = made.run(plan, inputs=inputs)
    assert inputs == {"it": ["given"]}
    assert result.context == {"it": ["given"], "list": []}
    result.context["list"].append("changed by the caller")
    assert made.run(plan, inputs=inputs).context["list"] == []


# Options --------------------------------------------------------------------------------------------------------------


def test_the_goal_of_the_run_wins_over_the_plans() -> None:
    plan = {**HELLO, "goal": "of the plan", "output": "goal"}
    made = bench([hello])
    assert made.run(plan).goal == made.run(plan).output == "of the plan"
    assert made.run(plan, goal="of the run").goal == made.run(plan, goal="of the run").output == "of the run"


def test_the_labels_of_the_run_come_on_top_of_the_plans() -> None:
    result = bench([hello]).run({**HELLO, "labels": {"team": "a", "env": "test"}}, labels={"env": "live", "n": "1"})
    assert result.labels == {"team": "a", "env": "live", "n": "1"}


def test_a_run_id_of_ones_own_is_used_and_one_is_made_otherwise() -> None:
    made = bench([hello], ids=iter(["first", "second"]).__next__)
    assert made.run(HELLO).run_id == "first"
    assert made.run(HELLO, run_id="mine").run_id == "mine"
    assert {event.run_id for event in made.events} == {"first", "mine"}


@pytest.mark.parametrize("run_id", ["", " a", "a\n", "x" * 101, 7])
def test_a_bad_run_id_is_refused(run_id: Any) -> None:
    with pytest.raises(UsageError, match="run_id"):
        bench([hello]).run(HELLO, run_id=run_id)


def test_a_run_id_is_taken_while_its_run_is_in_hand_and_free_again_after_its_end() -> None:
    made = basic()

    async def main() -> None:
        plan = plan_of({"id": "a", "skill": "nap", "parameters": {"s": 1}})
        first = asyncio.create_task(made.engine.run(plan, run_id="r"))
        await asyncio.sleep(0)
        assert made.engine.run_ids == ("r",)
        assert made.engine.status("r").tasks["a"].status == "RUNNING"
        with pytest.raises(RunExists, match="'r'"):
            await made.engine.run(plan, run_id="r")
        await first
        assert made.engine.run_ids == ()
        with pytest.raises(UnknownRun):
            made.engine.status("r")
        assert (await made.engine.run(plan, run_id="r")).completed

    drive(main())


@pytest.mark.parametrize("words", [{"max_parallel": 0}, {"max_parallel": True}, {"deadline": 0}, {"grants": "one"}])
def test_an_option_of_no_use_is_refused(words: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(words))):
        bench([hello]).run(HELLO, **words)


NAPS = [{"id": f"t{place}", "skill": "nap", "parameters": {"s": 1}} for place in range(6)]


@pytest.mark.parametrize(
    ("limits", "option", "most"), [({}, None, 6), ({"max_parallel": 2}, None, 2), ({"max_parallel": 2}, 3, 3)]
)
def test_the_runs_max_parallel_wins_over_the_plans(limits: dict[str, Any], option: int | None, most: int) -> None:
    made = basic()
    made.run(plan_of(*NAPS, limits=limits), max_parallel=option)
    assert most_at_once(made.events) == most


@pytest.mark.parametrize(("limits", "option", "at"), [({"deadline": 5}, None, 5), ({"deadline": 5}, 2, 2), ({}, 3, 3)])
def test_a_deadline_ends_the_run_and_cancels_what_runs(limits: dict[str, Any], option: float | None, at: float) -> None:
    made = basic()
    plan = plan_of(
        {"id": "a", "skill": "nap", "parameters": {"s": 60}}, {"id": "b", "dependencies": ["a"]}, limits=limits
    )
    result = made.run(plan, deadline=option)
    assert made.clock.monotonic() == at
    assert result.phase == "failed"
    reason = result.reason or {}
    assert (reason["kind"], reason["setting"], reason["count"]) == ("limit", "limits.deadline", at)
    assert (result.tasks["a"].error or {})["kind"] == "cancelled"
    assert statuses(result) == {"a": "FAILED", "b": "PENDING"}


def test_a_run_has_the_permissions_that_it_was_granted() -> None:
    @skill(requires={"mail.send", "mail.read"})
    async def send() -> str:
        return "sent"

    plan = plan_of({"id": "a", "skill": "send", "on_failure": "b"}, {"id": "b"})
    made = basic({"send": send})
    refused = made.run(plan, grants=["mail.read"])
    assert refused.tasks["a"].error == {
        "kind": "permission", "type": None, "attempt": None,
        "message": "skill 'send' needs a permission that the run was not granted: mail.send (give --grant, or grants=)",
    }  # fmt: skip
    assert (refused.tasks["a"].visits, refused.tasks["a"].attempts) == (1, 0)
    assert statuses(refused) == {"a": "FAILED", "b": "SUCCEEDED"}
    granted = made.run(plan, grants=["mail.send", "mail.read", "else"])
    assert statuses(granted) == {"a": "SUCCEEDED", "b": "not_taken"}


def test_the_runs_approver_is_asked_instead_of_the_engines() -> None:
    made = basic(approver=lambda request: True)
    plan = plan_of({"id": "a", "approval": "required", "recovery": "skip"})
    assert statuses(made.run(plan)) == {"a": "SUCCEEDED"}
    assert statuses(made.run(plan, approver=lambda request: False)) == {"a": "optional"}


def test_workers_and_the_default_skill_of_the_engine_do_what_names_no_skill() -> None:
    async def who(context: SkillContext) -> list[str | None]:
        return [context.task.id, context.task.name, context.task.description, context.task.expected_output]

    async def other() -> str:
        return "the default"

    made = bench([who, other], workers={"clerk": "who"}, default_skill="other")
    tasks = [
        {"id": "a", "worker": "clerk", "name": "A", "description": "do it", "expected_output": "done"},
        {"id": "b"},
    ]
    result = made.run({"tasks": tasks})
    assert result.tasks["a"].data == ["a", "A", "do it", "done"]
    assert result.tasks["b"].data == "the default"


# The result ---------------------------------------------------------------------------------------------------------


def test_a_result_is_plain_json_and_says_the_same() -> None:
    plan = plan_of({"id": "a", "skill": "fail", "parameters": {"n": 1}}, {"id": "b", "dependencies": ["a"]}, goal="g")
    result = basic().run(plan, run_id="r", labels={"x": "y"})
    document = json.loads(json.dumps(result.to_json()))
    assert document["format"] == 1
    assert document["tasks"]["a"] == {
        "status": "SUCCEEDED", "reason": None, "visits": 1, "attempts": 2, "data": {"calls": 2}, "error": None,
        "fallback_used": False, "verified": None,
    }  # fmt: skip
    assert document["trace"] == [["a", "ok"], ["b", "ok"]]
    assert (document["coverage"], document["invalid_actions"]) == (1.0, 1 / 3)
    assert (document["run_id"], document["goal"], document["labels"]) == ("r", "g", {"x": "y"})
    assert (document["phase"], document["outcome"], document["reason"]) == ("completed", "clean", None)
    assert (document["resumable"], document["plan_version"]) == (False, 1)


def test_the_json_of_a_result_has_exactly_the_keys_of_the_command_line() -> None:
    document = basic().run(plan_of({"id": "a"})).to_json()
    assert set(document) == {
        "format", "run_id", "phase", "outcome", "reason", "goal", "plan_version", "output", "context", "tasks",
        "trace", "waiting", "criteria", "approvals", "resumable", "labels", "coverage", "invalid_actions", "elapsed_s",
    }  # fmt: skip


def test_a_fault_of_the_engine_itself_is_raised_where_the_run_is_awaited_and_hangs_nothing() -> None:
    class Broken:
        def random(self) -> float:
            raise ArithmeticError("no chance")

    with pytest.raises(ArithmeticError):
        bounded(basic(random=Broken()), plan_of({"id": "a", "skill": "fail", "parameters": {"n": 9}}))


def test_criteria_are_judged_and_prose_is_listed_as_not_judged() -> None:
    criteria = ["it reads well", {"check": "n == 1", "text": "one"}]
    made = basic()
    plan = plan_of({"id": "a"}, context={"n": 1}, completion_criteria=criteria)
    assert [each["verdict"] for each in made.run(plan).criteria] == ["not_judged", "met"]
    failed = made.run({**plan, "context": {"n": 2}, "output": "n"})
    assert (failed.phase, failed.output) == ("failed", None)
    assert failed.reason == {"kind": "criterion", "task": None, "message": "completion criterion not met: one"}
    assert [each["verdict"] for each in failed.criteria] == ["not_judged", "not_met"]


# Many runs at once --------------------------------------------------------------------------------------------------


def test_a_hundred_runs_at_once_each_come_to_their_own_end() -> None:
    async def raise_if(bad: bool) -> None:
        await made.clock.sleep(0.5)
        if bad:
            raise OSError("bad")

    made = basic({"raise_if": raise_if})

    async def main() -> list[RunResult]:
        plans = [mixed_plan(seed) for seed in range(100)]
        return await asyncio.gather(*(made.engine.run(plan, run_id=f"r{n}") for n, (plan, _) in enumerate(plans)))

    for seed, result in enumerate(drive(main())):
        wanted = mixed_plan(seed)[1]
        assert result.run_id == f"r{seed}"
        assert statuses(result) == wanted, f"seed {seed}"
        assert result.context.get("who", seed) == seed
        assert result.phase == "completed"
        mine = [event.seq for event in made.events if event.run_id == f"r{seed}"]
        assert mine == list(range(1, len(mine) + 1))
    assert made.engine.run_ids == ()


def mixed_plan(seed: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Ten tasks in a chain, some of which fail or are skipped, and what becomes of each."""
    chance = random.Random(seed)
    tasks: list[dict[str, Any]] = []
    wanted = {}
    for place in range(10):
        skill_name, parameters, condition, end = chance.choice([
            ("nap", {"s": chance.random()}, "1 < 2", "SUCCEEDED"),
            ("write", {"key": "who", "value": seed, "s": chance.random()}, "2 < 3", "SUCCEEDED"),
            ("raise_if", {"bad": True}, "3 < 4", "optional"),
            ("raise_if", {"bad": False}, "4 < 5", "SUCCEEDED"),
            ("nap", {"s": 0}, "1 > 2", "condition"),
        ])  # fmt: skip
        task = {"id": f"t{place}", "skill": skill_name, "parameters": parameters, "condition": condition}
        tasks.append({**task, "recovery": "skip", "dependencies": [f"t{place - 1}"] if place else []})
        wanted[f"t{place}"] = end
    return {"tasks": tasks}, wanted
