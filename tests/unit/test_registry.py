"""`@skill` and the registry: what an author says of a function, and the skills that there are."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from fsm_agent.errors import BadSkill, DuplicateSkill, UnknownSkill
from fsm_agent.plan.model import Backoff, Fallback
from fsm_agent.skills.declaration import skill
from fsm_agent.skills.registry import Skill, SkillRegistry
from fsm_agent.skills.safe_execute import safe_execute


@skill
def plain(a: int) -> int:
    """Plain."""
    return a


@skill(
    "pay_bill",
    description="Pay a bill.",
    risk="high",
    requires={"money.spend"},
    timeout=5,
    max_retries=2,
    retry_on=(ConnectionError, "reported"),
    backoff={"base": 1},
    fallback={"value": None},
    writes=("paid", "paid"),
)
async def pay(amount: int) -> int:
    return amount


def undeclared(a: int = 1) -> int:
    return a


def registry(*functions: Any, **options: Any) -> SkillRegistry:
    return SkillRegistry(functions, builtins=False, **options)


def test_a_declared_function_stays_the_same_function() -> None:
    assert plain(3) == 3
    assert asyncio.run(pay(4)) == 4


def test_a_bare_declaration_takes_the_functions_own_name_and_words() -> None:
    spec = registry(plain).get("plain").spec
    assert (spec.name, spec.description, spec.risk, spec.idempotent) == ("plain", "Plain.", "low", False)
    assert (spec.requires, spec.writes) == (frozenset(), None)
    assert spec.source.endswith(f"test_registry.py:{plain.__code__.co_firstlineno}")


def test_all_that_an_author_says_is_in_the_spec() -> None:
    found = registry(pay).get("pay_bill")
    spec = found.spec
    assert (spec.description, spec.risk, spec.requires) == ("Pay a bill.", "high", {"money.spend"})
    assert spec.writes == ("paid",)
    assert (spec.policy.timeout, spec.policy.max_retries) == (5.0, 2)
    assert spec.policy.retry_on == ("ConnectionError", "reported")
    assert spec.policy.backoff == Backoff(base=1)
    assert spec.policy.fallback == Fallback(value=None)
    assert found.is_async
    assert found.function is pay


@pytest.mark.parametrize(
    "words",
    [
        {"name": ""},
        {"name": " x"},
        {"name": "a\nb"},
        {"name": "x" * 101},
        {"name": 3},
        {"risk": "hgih"},
        {"requires": [3]},
        {"requires": 3},
        {"writes": ["", "a"]},
        {"timeout": -1},
        {"max_retries": "3"},
        {"retry_on": "exception"},
        {"fallback": {"value": 1, "skill": "x"}},
        {"fallback": {}},
        {"fallback": {"value": 1, "parameters": {}}},
        {"fallback": {"vlaue": 1}},
        {"before": 3},
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(words: dict[str, Any]) -> None:
    with pytest.raises(BadSkill):
        skill(**words)


def test_one_word_may_stand_where_several_can() -> None:
    @skill(requires="a.b", writes="k", retry_on=OSError, fallback="other", backoff=3)
    def act() -> None: ...

    spec = registry(act).get("act").spec
    assert (spec.requires, spec.writes, spec.policy.retry_on) == ({"a.b"}, ("k",), ("OSError",))
    assert spec.policy.fallback == Fallback(skill="other")
    assert spec.policy.backoff == Backoff(base=3)


def test_a_function_can_be_declared_in_one_call() -> None:
    def act() -> None: ...

    assert skill(act, risk="high") is act
    assert registry(act).get("act").spec.risk == "high"


def test_a_type_with_a_field_that_is_named_like_its_type_is_refused_with_that_hint() -> None:
    @dataclass(slots=True)
    class Trip:
        date: date

    def book(trip: Trip) -> None: ...

    book.__annotations__["trip"] = Trip
    with pytest.raises(BadSkill, match="'trip' has a type without a JSON form") as caught:
        registry(book)
    assert "a field may not be named like its type" in caught.value.hint


def test_what_cannot_carry_a_declaration_is_refused() -> None:
    class Closed:
        __slots__ = ()

        def __call__(self) -> None: ...

    with pytest.raises(BadSkill, match="cannot carry"):
        skill(Closed())


def test_functions_are_given_by_name_or_in_a_list_declared_or_not() -> None:
    by_name = SkillRegistry({"x": undeclared, "y": plain, "z": lambda: 1}, builtins=False)
    assert [each.spec.name for each in by_name] == ["x", "y", "z"]
    in_list = registry(undeclared, plain)
    assert [each.spec.name for each in in_list] == ["undeclared", "plain"]
    assert ("undeclared" in in_list, "other" in in_list, len(in_list)) == (True, False, 2)


def test_a_lambda_in_a_list_has_no_name() -> None:
    with pytest.raises(BadSkill, match="name"):
        registry(lambda: 1)


def test_bound_methods_can_be_skills() -> None:
    class Desk:
        def __init__(self, name: str) -> None:
            self.name = name

        @skill(risk="medium")
        @safe_execute(max_retries=2)
        def answer(self, question: str) -> str:
            return f"{self.name}: {question}"

    found = registry(Desk("A").answer).get("answer")
    assert found.function(**found.validate({"question": "?"})) == "A: ?"
    assert (found.spec.risk, found.spec.policy.max_retries) == ("medium", 2)


def test_two_skills_of_one_name_are_an_error_that_names_both() -> None:
    def other() -> None: ...

    made = registry(plain)
    with pytest.raises(DuplicateSkill) as caught:
        made.add(other, "plain")
    for function in (plain, other):
        assert f"test_registry.py:{function.__code__.co_firstlineno}" in str(caught.value)
    assert made.get("plain").function is plain
    assert len(made) == 1


def test_a_built_in_skill_cannot_be_replaced() -> None:
    with pytest.raises(DuplicateSkill, match="the built-in skills"):
        SkillRegistry({"note": undeclared})


def test_a_skill_that_is_not_there_is_named_with_the_nearest_ones() -> None:
    made = SkillRegistry({"search_web": undeclared}, builtins=False)
    for wrong in ("serch_web", "Search_Web"):
        with pytest.raises(UnknownSkill) as caught:
            made.get(wrong)
        assert caught.value.near == ("search_web",)
    for wrong in ("", "x" * 10_000, "multi_tool_use.parallel"):
        with pytest.raises(UnknownSkill) as caught:
            made.get(wrong)
        assert len(str(caught.value)) < 200


def test_the_specs_are_one_mapping_until_something_is_added() -> None:
    made = registry(plain)
    before = made.specs()
    assert made.specs() is before
    made.add(undeclared)
    assert set(made.specs()) == {"plain", "undeclared"}
    assert set(before) == {"plain"}


def test_a_skill_can_be_added_under_another_name() -> None:
    first = registry(plain).get("plain")
    made = registry(first)
    added = made.add(first, "again")
    assert isinstance(added, Skill)
    assert added.spec.name == "again"
    assert set(made.specs()) == {"plain", "again"}


def test_what_is_no_function_is_refused() -> None:
    for bad in (3, "x"):
        with pytest.raises(BadSkill):
            registry(bad)


def test_the_built_in_skills_are_there() -> None:
    assert set(SkillRegistry().specs()) == {"http_request", "read_file", "write_file", "sleep", "note"}


# safe_execute below a registry ---------------------------------------------------------------------------------------


def test_safe_execute_is_taken_off_and_its_policy_kept() -> None:
    calls: list[int] = []

    @safe_execute(max_retries=3, timeout=2, backoff=1, fallback=9)
    def act() -> None:
        calls.append(1)
        raise ValueError

    found = registry(act).get("act")
    with pytest.raises(ValueError):  # the bare function: no second loop
        found.function()
    assert calls == [1]
    policy = found.spec.policy
    assert (policy.max_retries, policy.timeout, policy.backoff) == (3, 2.0, Backoff(base=1))
    assert policy.retry_on == ("Exception",)
    assert policy.fallback == Fallback(value=9)


def test_either_order_of_the_two_decorators_will_do_and_skill_has_the_last_word() -> None:
    @skill(risk="high", timeout=5)
    @safe_execute(max_retries=3, timeout=2)
    def above() -> None: ...

    @safe_execute(max_retries=3, timeout=2)
    @skill(risk="high", timeout=5)
    def below() -> None: ...

    for function in (above, below):
        (found,) = registry(function)
        assert found.spec.risk == "high"
        assert (found.spec.policy.timeout, found.spec.policy.max_retries) == (5.0, 3)
        assert not hasattr(found.function, "__wrapped__")


def test_an_idempotent_skill_keeps_the_engines_retry_list_under_safe_execute() -> None:
    @skill(idempotent=True)
    @safe_execute(max_retries=3)
    def one() -> None: ...

    @safe_execute(idempotent=True)
    def two() -> None: ...

    for found in registry(one, two):
        assert found.spec.idempotent
        assert found.spec.policy.retry_on is None


def test_a_decorator_above_safe_execute_is_refused() -> None:
    @safe_execute(max_retries=3)
    def act() -> None: ...

    @functools.wraps(act)
    def logged() -> None:
        act()

    with pytest.raises(BadSkill, match="decorator above safe_execute"):
        registry(logged)


def test_a_fallback_function_becomes_a_skill_of_its_own() -> None:
    def guess(city: str) -> str:
        return f"sunny in {city}"

    @safe_execute(fallback=guess)
    def weather(city: str) -> str:
        raise OSError

    made = registry(weather)
    assert made.get("weather").spec.policy.fallback == Fallback(skill="weather.fallback")
    assert made.get("weather.fallback").function is guess


def test_a_fallback_function_without_parameters_is_given_none() -> None:
    @skill(fallback=lambda: "n/a")
    def weather(city: str) -> str:
        raise OSError

    assert registry(weather).get("weather").spec.policy.fallback == Fallback(skill="weather.fallback", parameters={})


def test_a_fallback_value_must_be_plain_data() -> None:
    @safe_execute(fallback=(1, 2))
    def fine() -> None: ...

    @safe_execute(fallback={"value": object()})
    def bad() -> None: ...

    assert registry(fine).get("fine").spec.policy.fallback == Fallback(value=[1, 2])
    with pytest.raises(BadSkill, match="no plain data"):
        registry(bad)
