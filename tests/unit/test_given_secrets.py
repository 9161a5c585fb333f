"""Which secret inputs a run gets, at its start and when another process goes on with it."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.core import events as ev
from fsm_agent.core.run import Run
from fsm_agent.engine.secrets import given_again, with_secrets
from fsm_agent.errors import InvalidPlan, MissingSecret, UsageError
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.plan.loader import check_plan
from tests.taking_up import fresh

SOURCE: dict[str, Any] = {
    "inputs": {
        "city": {"type": "string"},
        "pin": {"type": "string", "secret": True},
        "token": {"type": "string", "secret": True, "required": False},
    },
    "tasks": [{"id": "a", "skill": "s"}],
}


def shape() -> CompiledPlan:
    found = check_plan(SOURCE).compiled
    assert found is not None
    return found


def begun() -> Run:
    """A run as its journal has it: without secrets."""
    run = fresh(shape())
    run.evolve(ev.RunStarted(goal="g", seq=1))
    run.evolve(ev.PlanAdopted(version=1, digest="d", author="person", inputs={"city": "Oslo"}, seq=2))
    return run


def test_without_a_resolver_the_inputs_are_as_given() -> None:
    given = {"city": "Oslo"}
    assert with_secrets(shape().plan, given, None) is given


def test_a_resolver_is_asked_for_secret_inputs_that_were_not_given_and_for_no_others() -> None:
    asked: list[str] = []

    def resolver(name: str) -> str | None:
        asked.append(name)
        return {"pin": "1234", "city": "Rome"}.get(name)

    assert with_secrets(shape().plan, {}, resolver) == {"pin": "1234"}
    assert asked == ["pin", "token"]


def test_what_was_given_wins_over_the_resolver() -> None:
    assert with_secrets(shape().plan, {"pin": "mine"}, {"pin": "other"}.get) == {"pin": "mine"}


def test_a_run_without_a_plan_needs_no_secrets() -> None:
    assert given_again(fresh(shape()), {"pin": "1234"}, None) == {}


@pytest.mark.parametrize(("given", "resolver"), [({"pin": "1234"}, None), ({}, {"pin": "1234"}.get)])
def test_only_secret_inputs_come_back(given: dict[str, Any], resolver: Any) -> None:
    assert given_again(begun(), given, resolver) == {"pin": "1234", "token": None}


def test_a_missing_secret_is_named_and_how_to_give_it() -> None:
    with pytest.raises(MissingSecret) as raised:
        given_again(begun(), {}, None)
    assert raised.value.names == ("pin",)
    assert "FSM_AGENT_SECRET_PIN" in raised.value.hint


def test_a_lenient_reader_does_without_a_missing_secret() -> None:
    assert given_again(begun(), {}, None, lenient=True) == {"token": None}


def test_an_input_that_the_journal_has_is_not_given_again() -> None:
    with pytest.raises(UsageError, match="'city' was given when the run began"):
        given_again(begun(), {"pin": "1234", "city": "Rome"}, None)


@pytest.mark.parametrize(("given", "rule"), [({"pin": 7}, "bad_input"), ({"pin": "1", "pni": "1"}, "unknown_input")])
@pytest.mark.parametrize("lenient", [False, True])
def test_what_does_not_fit_is_refused_even_by_a_lenient_reader(given: dict[str, Any], rule: str, lenient: bool) -> None:
    with pytest.raises(InvalidPlan) as raised:
        given_again(begun(), given, None, lenient=lenient)
    assert [problem.rule for problem in raised.value.problems] == [rule]
