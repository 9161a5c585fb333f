"""Budgets: what the next call would pass, as a table."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent import Budget, Price, PriceTable, Spent
from fsm_agent.errors import UsageError
from fsm_agent.llm.budget import NextCall
from fsm_agent.llm.protocol import Usage

CHEAP = Price(0.5, 1.5)


@pytest.mark.parametrize(
    ("budget", "spent", "call", "bound"),
    [
        (Budget(), Spent(10**6, 10**9, 1e6, 1e6), NextCall(10**6, 1e6), None),
        (Budget(calls=0), Spent(), NextCall(), "calls"),
        (Budget(calls=2), Spent(calls=1), NextCall(), None),
        (Budget(calls=2), Spent(calls=2), NextCall(), "calls"),
        (Budget(tokens=0), Spent(), NextCall(), "tokens"),
        (Budget(tokens=100), Spent(tokens=99), NextCall(), None),
        (Budget(tokens=100), Spent(tokens=100), NextCall(), "tokens"),
        (Budget(tokens=100), Spent(tokens=60), NextCall(tokens=40), None),
        (Budget(tokens=100), Spent(tokens=60), NextCall(tokens=41), "tokens"),
        (Budget(money=1), Spent(money=0.6), NextCall(money=0.4), None),
        (Budget(money=1), Spent(money=0.6), NextCall(money=0.41), "money"),
        (Budget(money=1), Spent(), NextCall(money=None), "money"),
        (Budget(money=1), Spent(unpriced=1), NextCall(), "money"),
        (Budget(calls=9), Spent(unpriced=1), NextCall(money=None), None),
        (Budget(seconds=10), Spent(seconds=9.99), NextCall(), None),
        (Budget(seconds=10), Spent(seconds=10), NextCall(), "seconds"),
        (Budget(1, 1, 1, 1), Spent(9, 9, 9, 9), NextCall(), "calls"),
    ],
)
def test_a_budget_names_the_first_bound_that_the_next_call_would_pass(
    budget: Budget, spent: Spent, call: NextCall, bound: str | None
) -> None:
    passed = spent.passes(budget, call)
    assert (passed and passed.bound) == bound


def test_what_is_said_of_a_passed_bound_names_the_figures() -> None:
    passed = Spent(tokens=9_000).passes(Budget(tokens=10_000), NextCall.of(600, 1_000, CHEAP))
    assert str(passed) == "the budget of tokens is 10,000: 9,000 are spent, and the next call may need 1,600"
    assert "is not known" in str(Spent().passes(Budget(money=1), NextCall.of(600, None, None)))


def test_calls_add_up_without_drifting() -> None:
    spent = Spent()
    for _ in range(10):
        spent = spent.plus(Usage(100_000, 33_333), 0.1, CHEAP)
    assert spent == Spent(10, 1_333_330, 0.999995, 1.0, 0)
    assert spent.plus(Usage(1, 1), 0.5).unpriced == 1
    assert spent.plus(None, 0.5) == Spent(11, 1_333_330, 0.999995, 1.5, 0)


@pytest.mark.parametrize(
    ("names", "price"),
    [
        (["gpt-x"], 1), (["gpt-x-2026-01-01"], 2), (["gpt-x-mini-2026"], 3), (["other"], None), ([], None),
        (["other", "gpt-x"], 1), (["gpt-x-mini"], 4), (["*"], None),
    ],
)  # fmt: skip
def test_a_price_is_found_by_its_name_or_the_longest_beginning(names: list[str], price: int | None) -> None:
    numbers = {"gpt-x": 1, "gpt-x-*": 2, "gpt-x-mini-*": 3, "gpt-x-mini": 4}
    table = PriceTable({name: Price(number, number) for name, number in numbers.items()})
    found = table.price(*names)
    assert (found and found.prompt) == price


COUNTS = st.none() | st.integers(0, 10**9)
FIGURES = st.none() | st.floats(0, 1e9)


@given(budget=st.builds(Budget, COUNTS, COUNTS, FIGURES, FIGURES), times=st.integers(0, 5), usage=st.integers(0, 10**6))
def test_budgets_prices_and_what_was_spent_go_through_json_and_come_back(
    budget: Budget, times: int, usage: int
) -> None:
    assert Budget.from_json(json.loads(json.dumps(budget.to_json()))) == budget
    spent = Spent()
    for number in range(times):
        spent = spent.plus(Usage(usage, number), usage / 7, CHEAP if number % 2 else None)
    assert Spent.from_json(json.loads(json.dumps(spent.to_json()))) == spent
    table = PriceTable({"m": CHEAP, "n*": Price(0, 3)})
    assert PriceTable.from_json(json.loads(json.dumps(table.to_json()))) == table


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget(calls=-1),
        lambda: Budget(calls=1.5),  # type: ignore[arg-type]
        lambda: Budget(tokens=True),
        lambda: Budget(money=float("nan")),
        lambda: Budget(seconds=float("inf")),
        lambda: Budget(money="1"),  # type: ignore[arg-type]
        lambda: Price(-1, 0),
        lambda: Spent(calls=-1),
        lambda: Spent(tokens=0.5),  # type: ignore[arg-type]
        lambda: Budget.from_json({"cals": 1}),
        lambda: Budget.from_json([]),  # type: ignore[arg-type]
        lambda: Spent.from_json({"calls": None}),
        lambda: PriceTable.from_json({"m": {"prompt": 1}}),
        lambda: PriceTable.from_json({"m": 3}),
        lambda: PriceTable.from_json({"m": {"prompt": 1, "completion": "2"}}),
    ],
)
def test_what_makes_no_sense_is_refused(make) -> None:
    with pytest.raises(UsageError):
        make()
