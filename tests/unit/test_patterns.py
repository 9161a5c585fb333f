"""Regular expressions of plans: those that could run for ever are refused."""

from __future__ import annotations

import time

import pytest

from fsm_agent.errors import UsageError
from fsm_agent.plan.loader import check_plan
from fsm_agent.plan.model import Plan
from fsm_agent.plan.patterns import MAX_SEARCHED, matches, pattern_error
from fsm_agent.planner.template import fits

FINE = [
    r"sales|sold",
    r"\bumbrella\b",
    r"colou?r",
    r"(sales|stock) (fell|rose)",
    r"a.*b",
    r"[a-z]+ trip",
    r"(ab)?c",
    r"^x{2,5}$",
]
REFUSED = [
    r"(a+)+$",
    r"(a|a)*b",
    r"(ab)*c",
    r"(?=a)b",
    r"(?<!a)b",
    r"(a)\1",
    r".*.*.*x",
    "a" * 501,
    "(",
    "[a",
    "(?P<n>a)(?P=n)",
]


@pytest.mark.parametrize("pattern", FINE)
def test_a_plain_pattern_is_fine(pattern: str) -> None:
    assert pattern_error(pattern) == ""


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_that_may_run_for_ever_or_is_none_is_refused(pattern: str) -> None:
    assert pattern_error(pattern) != ""
    problems = check_plan({"when": f"/{pattern}/", "tasks": [{"id": "a", "skill": "s"}]}).problems
    assert [problem.rule for problem in problems] == ["bad_value"]


def test_a_template_with_such_a_pattern_is_not_tried() -> None:
    with pytest.raises(UsageError, match="repeated"):
        fits(Plan.model_validate({"when": "/(a+)+$/", "tasks": [{"id": "a"}]}), "a" * 50 + "!")


@pytest.mark.timing
@pytest.mark.parametrize("pattern", [r".*.*x", r"a*a*x", r"[ab]+[ab]+c"])
def test_the_worst_that_is_left_ends_soon(pattern: str) -> None:
    assert pattern_error(pattern) == ""
    began = time.perf_counter()
    assert not matches(pattern, "a" * 100_000)
    assert time.perf_counter() - began < 5


def test_letters_match_in_either_case() -> None:
    assert matches("SALES", "why did sales fall")
    assert MAX_SEARCHED == 500
