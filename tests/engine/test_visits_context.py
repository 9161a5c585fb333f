"""Section 3 of the plan's meaning: what a skill sees of its run, what it writes, and what stays the same in a visit."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import SkillContext, skill
from fsm_agent.errors import NotJson, UndeclaredWrite
from tests.engine.support import basic, drive, plan_of, statuses, until

# Identity ---------------------------------------------------------------------------------------------------------


def test_a_skill_knows_for_what_it_is_called() -> None:
    @skill(idempotent=True)
    async def who(context: SkillContext) -> list[Any]:
        if context.attempt == 1:
            raise OSError("down")
        return [context.run_id, context.task_id, context.task.name, context.visit, context.attempt]

    made = basic({"who": who})
    task = {"id": "a", "name": "A", "skill": "who", "max_retries": 1, "on_success": "a", "max_visits": 2}
    result = made.run(plan_of({**task, "condition": "'again' not in context"}), run_id="r")
    assert [event.data for event in made.of("task_evaluated")] == [["r", "a", "A", visit, 2] for visit in (1, 2)]
    assert (result.reason or {})["kind"] == "limit"


def test_the_idempotency_key_is_the_same_for_every_attempt_of_one_visit_and_for_nothing_else() -> None:
    keys: dict[tuple[str, str, int], set[str]] = {}

    @skill(idempotent=True)
    async def note(context: SkillContext) -> None:
        keys.setdefault((context.run_id, context.task_id, context.visit), set()).add(context.idempotency_key)
        raise OSError("down")

    made = basic({"keyed": note})
    task = {"skill": "keyed", "max_retries": 2}
    plan = plan_of(
        {**task, "id": "a", "on_failure": "a", "max_visits": 3, "recovery": "skip"},
        {**task, "id": "b", "recovery": "skip"},
    )
    for run_id in ("r", "s"):
        assert made.run(plan, run_id=run_id).tasks["a"].attempts == 9
    assert len(keys) == 8
    assert all(len(found) == 1 for found in keys.values())
    assert len({key for found in keys.values() for key in found}) == 8
    assert all(key.isascii() and 16 <= len(key) <= 64 for found in keys.values() for key in found)


def test_a_skill_sees_the_results_of_its_dependencies_as_copies() -> None:
    async def look(context: SkillContext) -> Any:
        seen = {task: [each["status"], each["success"], str(each["data"])] for task, each in context.results.items()}
        for each in context.results.values():
            if each["data"]:
                each["data"]["spoiled"] = True
        return seen

    made = basic({"look": look})
    plan = plan_of(
        {"id": "good", "skill": "fail", "parameters": {"n": 0}},
        {"id": "skipped", "condition": "1 > 2"},
        {"id": "unrelated"},
        {"id": "a", "skill": "look", "dependencies": ["good", "skipped"]},
    )
    result = made.run(plan)
    assert result.tasks["a"].data == {
        "good": ["SUCCEEDED", True, "{'calls': 1}"], "skipped": ["SKIPPED", False, "None"]
    }  # fmt: skip
    assert result.tasks["good"].data == {"calls": 1}


def test_progress_and_log_lines_are_events_of_their_visit_and_attempt() -> None:
    @skill(idempotent=True)
    def sync_work(context: SkillContext) -> None:
        context.progress(0.5, "half")
        context.log("a line", n=1, odd=object())
        if context.attempt == 1:
            raise OSError("down")
        context.progress(7)

    made = basic({"work": sync_work})
    made.run(plan_of({"id": "a", "skill": "work", "max_retries": 1}))
    told = [(each.attempt, each.share, each.text) for each in made.of("progress")]
    assert told == [(1, 0.5, "half"), (2, 0.5, "half"), (2, 1.0, "")]
    logged = [(each.attempt, each.message, each.fields) for each in made.of("task_logged")]
    assert logged == [(attempt, "a line", {"n": 1, "odd": "<object>"}) for attempt in (1, 2)]


# Reading and writing --------------------------------------------------------------------------------------------------


def test_a_visit_reads_the_context_as_committed_at_its_start_and_its_own_writes() -> None:
    async def look(context: SkillContext) -> Any:
        seen = [context.get("k"), context.get("own", "nothing")]
        await made.clock.sleep(5)
        context.set("own", [1])
        context.get("own").append("spoiled")
        context.get("list").append("spoiled")
        return [*seen, context.get("k"), context.get("own"), context.get("list"), context.get("missing", 7)]

    made = basic({"look": look})
    plan = plan_of(
        {"id": "a", "skill": "look"},
        {"id": "b", "skill": "write", "parameters": {"key": "k", "value": 2, "s": 1}},
        context={"k": 1, "list": []},
    )
    result = made.run(plan)
    assert result.tasks["a"].data == [1, "nothing", 1, [1], [], 7]
    assert result.context == {"k": 2, "list": [], "own": [1]}


def test_each_attempt_begins_with_an_empty_write_buffer() -> None:
    @skill(idempotent=True)
    async def writes(context: SkillContext) -> Any:
        seen = context.get(f"try {context.attempt - 1}")
        context.set(f"try {context.attempt}", 1)
        if context.attempt < 3:
            raise OSError("down")
        return seen

    made = basic({"writes": writes})
    result = made.run(plan_of({"id": "a", "skill": "writes", "max_retries": 2}))
    assert (result.context, result.tasks["a"].data) == ({"try 3": 1}, None)


def test_a_failed_task_writes_nothing() -> None:
    async def writes(context: SkillContext) -> None:
        context.set("k", 2)
        raise OSError("down")

    made = basic({"writes": writes})
    assert made.run(plan_of({"id": "a", "skill": "writes", "recovery": "skip"}, context={"k": 1})).context == {"k": 1}
    assert not made.of("context_changed")


def test_what_is_written_is_plain_data_and_a_copy() -> None:
    async def writes(context: SkillContext) -> None:
        mine = {"t": (1, 2)}
        context.set("k", mine)
        mine["t"] = (3, 4)

    made = basic({"writes": writes})
    assert made.run(plan_of({"id": "a", "skill": "writes"})).context == {"k": {"t": [1, 2]}}


@pytest.mark.parametrize("swallow", [False, True])
@pytest.mark.parametrize(
    ("key", "value", "kind", "error"),
    [("k", object(), "not_json", NotJson), ("else", 1, "undeclared_write", UndeclaredWrite)],
)
def test_a_write_that_breaks_a_rule_fails_the_task_even_if_the_skill_goes_on(
    key: str, value: Any, kind: str, error: type[Exception], swallow: bool
) -> None:
    @skill(writes=["k"], idempotent=True)
    async def writes(context: SkillContext) -> str:
        try:
            context.set(key, value)
        except error:
            if not swallow:
                raise
        return "done"

    made = basic({"writes": writes})
    result = made.run(plan_of({"id": "a", "skill": "writes", "recovery": "skip", "max_retries": 3}))
    found = result.tasks["a"].error or {}
    assert (found["kind"], result.tasks["a"].attempts, result.context) == (kind, 1, {})
    assert key in found["message"]


def test_a_plan_may_declare_what_a_task_writes() -> None:
    made = basic()
    write = {"skill": "write", "parameters": {"key": "k", "value": 1}, "recovery": "skip"}
    result = made.run(
        plan_of({**write, "id": "a", "writes": ["k"]}, {**write, "id": "b", "writes": ["other"], "dependencies": ["a"]})
    )
    assert statuses(result) == {"a": "SUCCEEDED", "b": "optional"}
    assert "other" in (result.tasks["b"].error or {})["message"]


# Parameters -------------------------------------------------------------------------------------------------------


def test_parameters_are_rendered_once_a_visit_and_each_attempt_gets_its_own_copy() -> None:
    seen: list[Any] = []

    @skill(idempotent=True)
    async def spoil(items: list[str], deep: dict[str, list[int]]) -> None:
        seen.append([[*items], {"list": [*deep["list"]]}])
        items.append("spoiled")
        deep["list"].append(0)
        raise OSError("down")

    made = basic({"spoil": spoil})
    parameters = {"items": "${context['list']}", "deep": {"list": [1, "${n}"]}}
    plan = plan_of(
        {
            "id": "a",
            "skill": "spoil",
            "parameters": parameters,
            "max_retries": 2,
            "on_failure": "a",
            "max_visits": 2,
            "recovery": "skip",
        },
        context={"list": ["x"], "n": 1},
    )
    result = made.run(plan)
    assert seen == [[["x"], {"list": [1, 1]}]] * 6
    assert result.context == {"list": ["x"], "n": 1}


def test_each_attempt_gets_its_own_copy_of_parameters_without_a_type() -> None:
    seen: list[Any] = []

    @skill(idempotent=True)
    async def spoil(items, deep: dict[str, Any]) -> None:  # type: ignore[no-untyped-def] # untyped is the point
        seen.append([[*items], {"list": [*deep["list"]]}])
        items.append("spoiled")
        deep["list"].append("spoiled")
        raise OSError("down")

    task = {"id": "a", "skill": "spoil", "parameters": {"items": ["x"], "deep": {"list": [1]}}, "max_retries": 2}
    basic({"spoil": spoil}).run(plan_of(task))
    assert seen == [[["x"], {"list": [1]}]] * 3


def test_a_skill_cannot_change_the_record_of_its_own_start() -> None:
    async def spoil(items: Any) -> None:
        items.append("spoiled")

    made = basic({"spoil": spoil})
    made.run(plan_of({"id": "a", "skill": "spoil", "parameters": {"items": "${[n]}"}}, context={"n": 1}))
    assert made.of("task_started")[0].parameters == {"items": [1]}


def test_every_visit_renders_its_parameters_anew() -> None:
    seen: list[int] = []

    async def count(n: int, context: SkillContext) -> None:
        seen.append(n)
        context.set("n", n + 1)

    made = basic({"count": count})
    task = {"id": "a", "skill": "count", "parameters": {"n": "${n}"}, "condition": "n < 4", "on_success": "a"}
    assert made.run(plan_of(task, context={"n": 0})).completed
    assert seen == [0, 1, 2, 3]


def test_parameters_that_do_not_fit_fail_the_visit_without_a_call_and_without_their_values() -> None:
    made = basic()
    task = {"id": "a", "skill": "fail", "parameters": {"n": "${'a' + 'lot'}"}, "recovery": "skip", "max_retries": 3}
    result = made.run(plan_of(task))
    error = result.tasks["a"].error or {}
    assert (error["kind"], result.tasks["a"].visits, result.tasks["a"].attempts) == ("parameters", 1, 0)
    assert "n" in error["message"]
    assert "alot" not in error["message"]
    assert made.calls.order == []


def test_a_parameter_that_cannot_be_rendered_fails_the_visit() -> None:
    made = basic()
    result = made.run(
        plan_of({"id": "a", "skill": "fail", "parameters": {"n": "${context['no']}"}, "recovery": "skip"})
    )
    assert (result.tasks["a"].error or {})["kind"] == "parameters"
    assert (result.tasks["a"].visits, result.tasks["a"].attempts) == (1, 0)


# Versions of skills -----------------------------------------------------------------------------------------------

VERSION = """
from fsm_agent import skill

@skill(idempotent=True, max_retries=1)
async def work(context):
    context.log("version {n}")
    if context.attempt == 1:
        raise OSError("again")
    return {n}
"""


def test_a_visit_keeps_the_version_of_its_skill_that_it_began_with(tmp_path: Path) -> None:
    file = tmp_path / "work.py"
    file.write_text(VERSION.replace("{n}", "1"), encoding="utf-8")
    made = basic()
    made.engine.skills.load(file)

    async def main() -> Any:
        plan = plan_of({"id": "a", "skill": "work"}, {"id": "b", "skill": "work", "dependencies": ["a"]})
        run = asyncio.create_task(made.engine.run(plan))
        await until(lambda: made.of("attempt_failed"))
        file.write_text(VERSION.replace("{n}", "22"), encoding="utf-8")
        assert made.engine.skills.reload().reloaded == ("work",)
        return await run

    result = drive(main())
    assert (result.tasks["a"].data, result.tasks["b"].data) == (1, 22)
    assert [event.message for event in made.of("task_logged")] == ["version 1"] * 2 + ["version 22"] * 2


def test_a_skill_that_is_gone_at_its_turn_fails_its_task_and_not_the_engine(tmp_path: Path) -> None:
    file = tmp_path / "work.py"
    file.write_text(VERSION.replace("{n}", "1"), encoding="utf-8")
    made = basic()
    made.engine.skills.load(file)

    async def vanish() -> None:
        file.write_text("", encoding="utf-8")
        made.engine.skills.reload()

    made.engine.skills.add(vanish)
    result = made.run(
        plan_of({"id": "a", "skill": "vanish"}, {"id": "b", "skill": "work", "dependencies": ["a"], "recovery": "skip"})
    )
    assert statuses(result) == {"a": "SUCCEEDED", "b": "optional"}
    assert "no skill 'work'" in (result.tasks["b"].error or {})["message"]


def test_context_variables_of_one_skill_do_not_reach_the_next() -> None:
    whose: ContextVar[str] = ContextVar("whose", default="nobody's")
    seen: list[str] = []

    async def mark(name: str) -> None:
        seen.append(whose.get())
        whose.set(name)

    def mark_in_thread(name: str) -> None:
        seen.append(whose.get())
        whose.set(name)

    tasks = [
        {"id": "a", "skill": "mark", "parameters": {"name": "a"}},
        {"id": "b", "skill": "mark", "parameters": {"name": "b"}, "dependencies": ["a"]},
        {"id": "c", "skill": "mark_in_thread", "parameters": {"name": "c"}, "dependencies": ["b"]},
        {"id": "d", "skill": "mark", "parameters": {"name": "d"}, "dependencies": ["c"]},
    ]
    made = basic({"mark": mark, "mark_in_thread": mark_in_thread})

    async def main() -> None:
        whose.set("the caller's")
        await made.engine.run(plan_of(*tasks))
        assert whose.get() == "the caller's"

    drive(main())
    assert seen == ["the caller's"] * 4
