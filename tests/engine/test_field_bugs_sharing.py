"""Field bugs F07 and F08: approvals that are mixed up, and parallel writes that are lost."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fsm_agent import RunResult, SkillContext, skill
from fsm_agent.errors import DecisionRefused
from tests.engine.support import Basic, basic, drive, plan_of, statuses

# F07 Approvals mixed up -------------------------------------------------------------------------------------------

TWINS = plan_of(
    {"id": "first", "skill": "pay", "parameters": {"amount": 10}, "recovery": "skip"},
    {"id": "second", "skill": "pay", "parameters": {"amount": 10}, "recovery": "skip"},
)


def paying() -> Basic:
    made = basic()

    @skill(risk="high")
    async def pay(amount: float, context: SkillContext) -> float:
        made.calls.note(context)
        return amount

    made.engine.skills.add(pay)
    return made


def test_f07_exactly_the_approved_one_of_two_equal_calls_runs() -> None:
    made = paying()

    async def main() -> tuple[RunResult, RunResult]:
        paused = await made.engine.run(TWINS, run_id="r")
        asked = {each["task"]: each["approval"] for each in paused.waiting}
        await made.engine.decide("r", asked["second"], "reject", by="Ada", why="twice")
        await made.engine.decide("r", asked["first"], "approve", by="Bob")
        return paused, await made.engine.resume("r")

    paused, result = drive(main())
    assert paused.phase == "paused"
    assert [(each["task"], each["parameters"]) for each in paused.waiting] == [
        ("first", {"amount": 10}),
        ("second", {"amount": 10}),
    ]
    assert len({each["approval"] for each in paused.waiting}) == 2
    assert made.calls.order == ["first"]
    assert statuses(result) == {"first": "SUCCEEDED", "second": "optional"}
    assert (result.tasks["second"].error or {})["kind"] == "rejected"
    decided = [(each["task"], each["decision"], each["by"], each["why"]) for each in result.approvals]
    assert decided == [("second", "rejected", "Ada", "twice"), ("first", "approved", "Bob", None)]


def test_f07_the_same_holds_for_decisions_by_the_names_of_the_tasks() -> None:
    made = paying()

    async def main() -> RunResult:
        await made.engine.run(TWINS, run_id="r")
        await made.engine.decide("r", "second", "reject")
        await made.engine.decide("r", "first", "approve")
        return await made.engine.resume("r")

    assert statuses(drive(main())) == {"first": "SUCCEEDED", "second": "optional"}
    assert made.calls.order == ["first"]


def test_f07_a_decision_for_nobody_in_particular_is_refused_while_two_wait() -> None:
    made = paying()

    async def main() -> RunResult:
        paused = await made.engine.run(TWINS, run_id="r")
        with pytest.raises(DecisionRefused) as refused:
            await made.engine.decide("r", None, "approve")
        assert all(repr(each["task"]) in refused.value.hint for each in paused.waiting)
        return await made.engine.resume("r")

    result = drive(main())
    assert (result.phase, len(result.waiting)) == ("paused", 2)
    assert made.calls.order == []


def test_f07_an_approval_of_one_run_is_none_of_another() -> None:
    made = paying()

    async def main() -> set[str]:
        return {each["approval"] for run in "rs" for each in (await made.engine.run(TWINS, run_id=run)).waiting}

    assert len(drive(main())) == 4


# F08 Parallel writes lost -----------------------------------------------------------------------------------------


def write(name: str, value: Any, seconds: float = 1.0, key: str = "k") -> dict[str, Any]:
    return {"id": name, "skill": "write", "parameters": {"key": key, "value": value, "s": seconds}}


def test_f08_of_two_different_parallel_writes_the_later_fails_and_both_are_named() -> None:
    result = basic().run(plan_of(write("a", 1, 2.0), write("b", 2, 1.0), recovery="skip", context={"k": 0}))
    assert result.context == {"k": 2}
    assert statuses(result) == {"a": "optional", "b": "SUCCEEDED"}
    error = result.tasks["a"].error or {}
    assert error["kind"] == "write_conflict"
    assert all(word in error["message"] for word in ("'a'", "'b'", "'k'"))


def test_f08_of_two_that_finish_at_one_moment_the_later_in_the_plan_fails() -> None:
    result = basic().run(plan_of(write("a", 1), write("b", 2), recovery="skip"))
    assert statuses(result) == {"a": "SUCCEEDED", "b": "optional"}
    assert result.context == {"k": 1}


def test_f08_equal_parallel_writes_do_not_conflict() -> None:
    result = basic().run(plan_of(write("a", {"x": [1]}), write("b", {"x": [1]}, 2.0)))
    assert (result.outcome, result.context) == ("clean", {"k": {"x": [1]}})


def test_f08_one_that_only_reads_conflicts_with_nobody() -> None:
    async def read(context: SkillContext) -> Any:
        await made.clock.sleep(2.0)
        return context.get("k")

    made = basic({"read": read})
    result = made.run(plan_of(write("a", 1), {"id": "b", "skill": "read"}, context={"k": 0}))
    assert (result.outcome, result.context) == ("clean", {"k": 1})
    assert result.tasks["b"].data == 0


def test_f08_writes_one_after_the_other_do_not_conflict() -> None:
    result = basic().run(plan_of(write("a", 1), {**write("b", 2), "dependencies": ["a"]}))
    assert (result.outcome, result.context) == ("clean", {"k": 2})


def test_f08_a_task_that_begins_after_the_other_was_judged_is_not_concurrent() -> None:
    plan = plan_of(write("a", 1), write("b", 2), limits={"max_parallel": 1})
    result = basic().run(plan)
    assert (result.outcome, result.context) == ("clean", {"k": 2})


def test_f08_writes_to_different_keys_do_not_conflict() -> None:
    result = basic().run(plan_of(write("a", 1, key="x"), write("b", 2, key="y")))
    assert (result.outcome, result.context) == ("clean", {"x": 1, "y": 2})


def test_f08_what_a_failed_task_wrote_conflicts_with_nobody() -> None:
    async def writes_and_fails(context: SkillContext) -> None:
        context.set("k", 1)
        raise OSError("down")

    made = basic({"bad": writes_and_fails})
    result = made.run(plan_of({"id": "a", "skill": "bad", "recovery": "skip"}, write("b", 2)))
    assert (statuses(result), result.context) == ({"a": "optional", "b": "SUCCEEDED"}, {"k": 2})


VALUES = {"a": ["x", "y"], "b": ["y", "z"], "c": ["x"], "d": ["w"]}
RULES = [
    ("sum", {"a": 1, "b": 2, "c": 3.5, "d": -4}, 10, 12.5),
    ("append", VALUES, ["0"], ["0", ["x", "y"], ["y", "z"], ["x"], ["w"]]),
    ("union", VALUES, ["z"], ["z", "x", "y", "w"]),
]


@pytest.mark.parametrize(
    ("rule", "values", "start", "end"), RULES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_f08_under_a_merge_rule_it_does_not_matter_who_finishes_first(
    rule: str, values: dict[str, Any], start: Any, end: Any
) -> None:
    made = basic()
    for seed in range(200):
        chance = random.Random(seed)
        tasks = [write(name, value, chance.choice([0.5, 1.0, chance.random()])) for name, value in values.items()]
        result = made.run(plan_of(*tasks, context={"k": start}, merge={"k": rule}))
        assert (result.outcome, result.context) == ("clean", {"k": end}), f"seed {seed}"


def test_f08_under_the_rule_last_the_later_judged_wins() -> None:
    made = basic()
    for seed in range(200):
        chance = random.Random(seed)
        waits = {name: chance.choice([1.0, 2.0, 3.0]) for name in "abcd"}
        tasks = [write(name, name, seconds) for name, seconds in waits.items()]
        result = made.run(plan_of(*tasks, merge={"k": "last"}))
        assert result.context == {"k": max(waits, key=lambda name: (waits[name], name))}, f"seed {seed}"
        assert result.outcome == "clean"


def test_f08_without_a_rule_exactly_the_first_judged_of_different_writes_holds() -> None:
    made = basic()
    for seed in range(200):
        chance = random.Random(seed)
        names = list("abcd")
        chance.shuffle(names)
        waits = {name: chance.choice([1.0, 2.0, 3.0]) for name in names}
        tasks = [write(name, name, seconds) for name, seconds in waits.items()]
        result = made.run(plan_of(*tasks, recovery="skip"))
        first = min(names, key=lambda name: (waits[name], names.index(name)))
        assert result.context == {"k": first}, f"seed {seed}"
        assert statuses(result) == {name: "SUCCEEDED" if name == first else "optional" for name in names}


def test_f08_a_write_that_does_not_fit_its_rule_fails_and_names_the_key() -> None:
    result = basic().run(plan_of(write("a", "text"), context={"k": 0}, merge={"k": "sum"}, recovery="skip"))
    error = result.tasks["a"].error or {}
    assert error["kind"] == "write_conflict"
    assert "'k'" in error["message"]
    assert result.context == {"k": 0}
