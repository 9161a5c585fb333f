"""Filters of a skill may change or refuse its parameters and its results."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fsm_agent.errors import BadSkill, RefusedByFilter
from fsm_agent.skills.declaration import skill
from fsm_agent.skills.filters import FilterInfo, FilterNote, apply_after, apply_before
from fsm_agent.skills.registry import Skill
from fsm_agent.skills.skill import build_skills


def skill_with(**filters: Any) -> Skill:
    @skill(risk="high", **filters)
    def pay(amount: int) -> None: ...

    return build_skills(pay)[0]


def round_up(parameters: dict[str, Any], info: FilterInfo) -> dict[str, Any]:
    return {**parameters, "amount": parameters["amount"] + 1}


def in_place(parameters: dict[str, Any], info: FilterInfo) -> None:
    parameters["amount"] = 7


def look(parameters: dict[str, Any], info: FilterInfo) -> None: ...


def too_much(parameters: dict[str, Any], info: FilterInfo) -> None:
    if parameters["amount"] > 10:
        raise RefusedByFilter("more than 10")


def broken(*_: Any) -> None:
    raise KeyError("x")


def leaving(*_: Any) -> None:
    raise SystemExit(3)


def speechless(*_: Any) -> None:
    class Speechless(RefusedByFilter):
        def __init__(self) -> None: ...

        def __str__(self) -> str:
            raise SystemExit

    raise Speechless


def no_mapping(parameters: dict[str, Any], info: FilterInfo) -> Any:
    return [1]


def no_data(*_: Any) -> Any:
    return object()


def hide(parameters: dict[str, Any], data: Any, info: FilterInfo) -> Any:
    return {"paid": data["paid"]}


def no_result(parameters: dict[str, Any], data: Any, info: FilterInfo) -> None:
    raise RefusedByFilter(f"nothing for {parameters['amount']}")


def test_filters_run_in_order_and_each_change_is_noted() -> None:
    made = skill_with(before=(round_up, look, in_place, round_up))
    parameters, notes, refusal = apply_before(made, {"amount": 1})
    assert (parameters, refusal) == ({"amount": 8}, None)
    assert notes == [FilterNote(name, "before", "changed") for name in ("round_up", "in_place", "round_up")]


def test_what_a_filter_gets_is_a_copy() -> None:
    given = {"amount": 1}
    apply_before(skill_with(before=in_place), given)
    assert given == {"amount": 1}


def test_a_refusal_ends_it_with_the_reason() -> None:
    made = skill_with(before=(round_up, too_much, round_up))
    _, notes, refusal = apply_before(made, {"amount": 10})
    assert refusal == "filter 'too_much' refused the parameters: more than 10"
    assert notes[-1] == FilterNote("too_much", "before", "refused", "more than 10")
    assert apply_before(made, {"amount": 1})[2] is None


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (broken, "KeyError"),
        (leaving, "SystemExit: 3"),
        (speechless, "Speechless"),
        (no_mapping, "no mapping"),
        (no_data, "no plain data"),
    ],
)
def test_a_guard_that_fails_lets_nothing_through(bad: Any, words: str) -> None:
    _, notes, refusal = apply_before(skill_with(before=bad), {"amount": 1})
    assert refusal is not None
    assert words in refusal
    assert notes[-1].what == "refused"


def test_results_can_be_changed_or_refused() -> None:
    made = skill_with(after=hide)
    assert apply_after(made, {"amount": 1}, {"paid": 1, "card": "…"}) == (
        {"paid": 1},
        [FilterNote("hide", "after", "changed")],
        None,
    )
    _, notes, refusal = apply_after(skill_with(after=no_result), {"amount": 1}, {"paid": 1})
    assert refusal == "filter 'no_result' refused the result: nothing for 1"
    assert notes == [FilterNote("no_result", "after", "refused", "nothing for 1")]
    assert apply_after(skill_with(after=no_data), {}, 1)[2] is not None


def test_a_filter_is_told_of_the_skill_and_cannot_change_that() -> None:
    seen: list[FilterInfo] = []
    made = skill_with(before=lambda parameters, info: seen.append(info))
    apply_before(made, {"amount": 1})
    assert (seen[0].skill.name, seen[0].skill.risk, seen[0].when) == ("pay", "high", "before")
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen[0].when = "after"


def test_filters_are_plain_functions() -> None:
    async def later(parameters: dict[str, Any], info: FilterInfo) -> None: ...

    with pytest.raises(BadSkill, match="async"):
        skill(before=later)
    with pytest.raises(BadSkill):
        skill(after="mask")
