"""The two corpora of conditions: what must work, and what must be refused."""

from __future__ import annotations

import copy
import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from fsm_agent.errors import ConditionError
from fsm_agent.plan.expressions import Evaluator, Names, compile_expression

DATA = Path(__file__).parents[1] / "data"
FIXED = frozenset({"context", "inputs", "results", "goal"})
GOOD = json.loads((DATA / "conditions_good.json").read_text(encoding="utf-8"))
HOSTILE = json.loads((DATA / "conditions_hostile.json").read_text(encoding="utf-8"))


def by_id(case: dict[str, Any]) -> str:
    return str(case["id"])


def evaluate(text: str, data: dict[str, Any], evaluator: Evaluator) -> Any:
    return compile_expression(text, Names(FIXED, frozenset(data))).value(data, evaluator)


def gives_what_it_says(case: dict[str, Any], evaluator: Evaluator) -> None:
    data = copy.deepcopy(case["context"])
    value = evaluate(case["expr"], data, evaluator)
    assert (value, type(value)) == (case["value"], type(case["value"]))
    assert data == case["context"]


@pytest.mark.parametrize("case", GOOD, ids=by_id)
def test_a_good_condition_gives_its_value(case: dict[str, Any]) -> None:
    gives_what_it_says(case, Evaluator())


def test_one_evaluator_serves_all_good_conditions_in_turn() -> None:
    evaluator = Evaluator()
    for case in GOOD + GOOD:
        gives_what_it_says(case, evaluator)


@pytest.mark.parametrize("case", [case for case in HOSTILE if case["expect"] == "value"], ids=by_id)
def test_an_odd_but_harmless_condition_gives_its_value(case: dict[str, Any]) -> None:
    gives_what_it_says(case, Evaluator())


@pytest.mark.parametrize("case", [case for case in HOSTILE if case["expect"] == "rejected"], ids=by_id)
def test_a_hostile_condition_is_a_typed_error_and_leaves_no_trace(case: dict[str, Any]) -> None:
    evaluator, data = Evaluator(), copy.deepcopy(case["context"])
    tracemalloc.start()
    began = time.perf_counter()
    with pytest.raises(ConditionError) as caught:
        evaluate(case["expr"], data, evaluator)
    took, peak = time.perf_counter() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert took < 1
    assert peak < 50_000_000
    assert data == case["context"]
    assert evaluate("1 + 1 == 3", data, evaluator) is False
    wanted = case.get("error", {})
    assert caught.value.column is not None
    assert wanted.get("column", caught.value.column) == caught.value.column
    assert wanted.get("name", caught.value.name) == caught.value.name
    if "suggest" in wanted:
        assert caught.value.suggestions[0] == wanted["suggest"]
