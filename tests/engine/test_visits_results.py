"""Section 3 of the plan's meaning: what a skill returns, and what must be so for it to count."""

from __future__ import annotations

import dataclasses
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from fsm_agent import RefusedByFilter, RunResult, SkillContext, skill
from fsm_agent.core.result import TaskResult
from fsm_agent.engine.simulation import simulate
from fsm_agent.skills.filters import FilterInfo
from tests.engine.scripted import compiled
from tests.engine.support import Basic, basic, plan_of, statuses


def returning(value: Any, **words: Any) -> tuple[Basic, TaskResult]:
    """What becomes of one task whose skill returns this value."""

    @skill(idempotent=True)
    async def give(context: SkillContext) -> Any:
        made.calls.note(context)
        return value() if callable(value) and not isinstance(value, type) else value

    made = basic({"give": give})
    result = made.run(plan_of({"id": "a", "skill": "give", "recovery": "skip", **words}))
    return made, result.tasks["a"]


# Plain data -----------------------------------------------------------------------------------------------------------


class Model(BaseModel):
    n: int
    when: date


@dataclasses.dataclass
class Point:
    x: int
    tags: frozenset[str]


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        ((1, 2), [1, 2]),
        ({"b", "a"}, ["a", "b"]),
        (Model(n=1, when=date(2026, 1, 2)), {"n": 1, "when": "2026-01-02"}),
        (Point(1, frozenset({"t"})), {"x": 1, "tags": ["t"]}),
        (
            {"deep": [{"model": Model(n=1, when=date(2026, 1, 2))}]},
            {"deep": [{"model": {"n": 1, "when": "2026-01-02"}}]},
        ),
        (Decimal("1.5"), "1.5"),
        (10**30, 10**30),
    ],
)
def test_what_a_skill_returns_is_made_plain_data(value: Any, data: Any) -> None:
    assert returning(value)[1].data == data


def loop() -> list[Any]:
    items: list[Any] = [1]
    items.append(items)
    return items


async def nobody_awaits() -> None: ...


@pytest.mark.parametrize(
    ("value", "path", "type_name"),
    [
        (float("nan"), "$", "float"),
        ({"a": [1, float("inf")]}, "$.a[1]", "float"),
        (loop, "$[1]", "list"),
        ({"raw": b"\xff\xfe"}, "$.raw", "bytes"),
        ({"a": {1: 2}}, "$.a", "int"),
        (nobody_awaits, "$", "coroutine"),
        ([object()], "$[0]", "object"),
        ({"lone": "\ud800"}, "$.lone", "str"),
        ((number for number in "abc"), "$", "generator"),
    ],
    ids=["nan", "inf", "cycle", "bytes", "key", "coroutine", "object", "surrogate", "generator"],
)
def test_what_is_no_plain_data_fails_with_its_path_and_type_and_is_not_tried_again(
    value: Any, path: str, type_name: str
) -> None:
    made, task = returning(value, max_retries=3)
    assert (task.status, task.reason, task.data) == ("SKIPPED", "optional", None)
    error = task.error or {}
    assert error["kind"] == "not_json"
    assert error["message"].startswith(f"{path} is no plain JSON data")
    assert f"({type_name})" in error["message"]
    assert made.calls.of["a"] == 1


def test_the_data_of_a_task_is_a_copy_of_what_was_returned() -> None:
    kept: list[Any] = []

    async def give() -> Any:
        kept.append({"list": [1]})
        return kept[0]

    async def spoil() -> None:
        kept[0]["list"].append("spoiled")

    made = basic({"give": give, "spoil": spoil})
    result = made.run(plan_of({"id": "a", "skill": "give"}, {"id": "b", "skill": "spoil", "dependencies": ["a"]}))
    assert result.tasks["a"].data == {"list": [1]}


@pytest.mark.parametrize(("limit", "fits"), [(1002, True), (1001, False)])
def test_a_result_of_exactly_the_limit_fits_and_one_byte_more_does_not(limit: int, fits: bool) -> None:
    async def big() -> str:
        return "x" * 1000

    made = basic({"big": big})
    result = made.run(plan_of({"id": "a", "skill": "big"}, limits={"max_result_bytes": limit}))
    assert result.completed is fits
    if not fits:
        error = result.tasks["a"].error or {}
        assert error["kind"] == "too_large"
        assert "1,002 bytes" in error["message"]
        assert "1,001" in error["message"]


# Outcomes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({"success": True}, None),
        ({"success": True, "data": {"n": 1}}, {"n": 1}),
        ({"success": True, "data": [1], "message": "fine", "error": None}, [1]),
        ({"success": True, "n": 1}, {"success": True, "n": 1}),
        ({"data": 1, "message": "m"}, {"data": 1, "message": "m"}),
        ({"error": "only a field"}, {"error": "only a field"}),
    ],
)
def test_an_outcome_is_unwrapped_and_anything_else_is_the_data(value: Any, data: Any) -> None:
    task = returning(value)[1]
    assert (task.status, task.data) == ("SUCCEEDED", data)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"success": False, "error": "no room"}, "no room"),
        ({"success": False, "message": "no room"}, "no room"),
        ({"success": False, "error": {"type": "Full", "message": "no room"}}, "no room"),
        ({"success": False, "rooms": 0}, "the skill reported a failure without a message"),
    ],
)
def test_a_reported_failure_fails_the_task(value: Any, message: str) -> None:
    task = returning(value, max_retries=0)[1]
    error = task.error or {}
    assert (task.reason, error["kind"], error["message"]) == ("optional", "reported", message)


@pytest.mark.parametrize(("retry_on", "calls"), [(None, 3), (["reported"], 3), (["OSError"], 1)])
def test_a_reported_failure_is_tried_again_where_that_is_allowed(retry_on: list[str] | None, calls: int) -> None:
    words = {} if retry_on is None else {"retry_on": retry_on}
    assert returning({"success": False}, max_retries=2, **words)[0].calls.of["a"] == calls


# Verification -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("retry_on", "calls"), [(None, 1), (["verification"], 3), (["OSError", "reported"], 1)])
def test_a_false_verification_is_tried_again_only_where_it_is_named(retry_on: list[str] | None, calls: int) -> None:
    words = {} if retry_on is None else {"retry_on": retry_on}
    made, task = returning({"n": 0}, verification="result.n > 0", max_retries=2, **words)
    assert made.calls.of["a"] == calls
    assert task.error == {
        "kind": "verification", "type": None, "message": "the verification is false", "attempt": calls
    }  # fmt: skip


def test_a_verified_result_says_so() -> None:
    assert returning({"n": 1}, verification="result.n > 0")[1].verified is True


def test_with_warn_the_task_succeeds_and_the_report_says_that_it_is_not_verified() -> None:
    made, task = returning({"n": 0}, verification="result.n > 0", on_unverified="warn")
    assert (task.status, task.verified, task.data) == ("SUCCEEDED", False, {"n": 0})
    result = made.run(plan_of({"id": "a", "skill": "give", "verification": "result.n > 0", "on_unverified": "warn"}))
    assert (result.outcome, result.coverage) == ("handled_failures", 0.0)


@pytest.mark.parametrize("words", [{}, {"on_unverified": "warn"}])
def test_a_verification_that_errs_fails_the_task_and_is_never_taken_for_false(words: dict[str, Any]) -> None:
    made, task = returning({"n": 0}, verification="result.m > 0", max_retries=3, retry_on=["verification"], **words)
    error = task.error or {}
    assert (error["kind"], error["type"], made.calls.of["a"]) == ("condition", "UnknownField", 1)


def test_a_verification_sees_the_writes_of_its_own_attempt() -> None:
    async def write_both(context: SkillContext) -> None:
        context.set("k", 2)

    made = basic({"write_both": write_both})
    plan = plan_of({"id": "a", "skill": "write_both", "verification": "context['k'] == 2 and k == 2"}, context={"k": 1})
    assert made.run(plan).tasks["a"].verified is True


def test_the_writes_of_a_task_that_is_not_verified_are_not_committed() -> None:
    made = basic()
    task = {
        "id": "a",
        "skill": "write",
        "parameters": {"key": "k", "value": 2},
        "verification": "1 > 2",
        "recovery": "skip",
    }
    assert made.run(plan_of(task, context={"k": 1})).context == {"k": 1}


def test_a_simulated_run_keeps_as_little_of_an_unverified_result_as_a_real_one() -> None:
    async def give() -> dict[str, int]:
        return {"v": 0}

    plan = plan_of({"id": "a", "skill": "give", "verification": "result.v > 0", "on_failure": "b"}, {"id": "b"})
    real = basic({"give": give}).run(plan)
    simulated = simulate(compiled(plan), {"a": [{"data": {"v": 0}}]})
    assert simulated.tasks["a"].data == real.tasks["a"].data


# Filters ----------------------------------------------------------------------------------------------------------


def filtered(before: Any = (), after: Any = ()) -> tuple[Basic, RunResult, list[Any]]:
    """A run of one task `echo(n=1)` under these filters, and what the skill was called with."""
    seen: list[Any] = []

    @skill(before=before, after=after, idempotent=True)
    async def echo(n: int) -> Any:
        seen.append(n)
        return {"n": n}

    made = basic({"echo": echo})
    task = {"id": "a", "skill": "echo", "parameters": {"n": 1}, "recovery": "skip", "verification": "result.n > 0"}
    return made, made.run(plan_of(task)), seen


def doubles(parameters: dict[str, Any], info: FilterInfo) -> dict[str, Any]:
    return {"n": parameters["n"] * 2}


def forbids(parameters: dict[str, Any], info: FilterInfo) -> None:
    raise RefusedByFilter("not today")


def breaks(parameters: dict[str, Any], info: FilterInfo) -> None:
    raise ZeroDivisionError("a bug in the filter")


def changes_result(parameters: dict[str, Any], data: Any, info: FilterInfo) -> Any:
    data["n"] += parameters["n"] * 10


def spoils_result(parameters: dict[str, Any], data: Any, info: FilterInfo) -> Any:
    return {"n": 0}


def forbids_result(parameters: dict[str, Any], data: Any, info: FilterInfo) -> Any:
    raise RefusedByFilter("not this one")


def notes(made: Basic) -> list[tuple[str, str, str, str]]:
    return [(event.filter, event.when, event.what, event.why) for event in made.of("filter_applied")]


def test_a_before_filter_changes_what_is_called_and_that_is_an_event() -> None:
    made, result, seen = filtered(before=[doubles, doubles])
    assert seen == [4]
    assert notes(made) == [("doubles", "before", "changed", "")] * 2
    assert made.of("task_started")[0].parameters == {"n": 4}
    assert result.outcome == "clean"


@pytest.mark.parametrize(("before", "why"), [(forbids, "not today"), (breaks, "it failed with ZeroDivisionError")])
def test_a_before_filter_that_refuses_or_fails_keeps_the_skill_from_being_called(before: Any, why: str) -> None:
    made, result, seen = filtered(before=[before])
    assert seen == []
    assert statuses(result) == {"a": "optional"}
    assert (result.tasks["a"].error or {})["kind"] == "parameters"
    assert why in (result.tasks["a"].error or {})["message"]
    assert (result.tasks["a"].visits, result.tasks["a"].attempts) == (1, 0)
    assert [note[:3] for note in notes(made)] == [(before.__name__, "before", "refused")]


def test_an_after_filter_changes_the_result_before_it_is_verified() -> None:
    made, result, _ = filtered(after=[changes_result])
    assert result.tasks["a"].data == {"n": 11}
    assert notes(made) == [("changes_result", "after", "changed", "")]
    assert statuses(filtered(after=[spoils_result])[1]) == {"a": "optional"}


def test_an_after_filter_that_refuses_makes_it_a_reported_failure() -> None:
    made, result, seen = filtered(after=[forbids_result])
    error = result.tasks["a"].error or {}
    assert error["kind"] == "reported"
    assert "not this one" in error["message"]
    assert seen == [1, 1]
    assert notes(made) == [("forbids_result", "after", "refused", "not this one")] * 2


def test_what_a_person_approves_is_what_the_filters_made_of_it() -> None:
    @skill(before=doubles, risk="high")
    async def echo(n: int) -> int:
        return n

    made = basic({"echo": echo})
    result = made.run(plan_of({"id": "a", "skill": "echo", "parameters": {"n": 1}}))
    assert result.waiting[0]["parameters"] == {"n": 2}


def test_a_result_that_is_too_large_fails_with_the_hint_to_write_a_file() -> None:
    async def big() -> str:
        return "x" * 1000

    result = basic({"big": big}).run(plan_of({"id": "a", "skill": "big"}, limits={"max_result_bytes": 100}))
    assert "file" in (result.tasks["a"].error or {})["message"]
