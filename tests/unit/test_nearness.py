"""Which known names look like one that is not known."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fsm_agent.plan.nearness import did_you_mean, near

MANY = dict.fromkeys(f"task_{number:05}" for number in range(10_000))


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("bugdet", ["context", "budget", "goal"], ("budget",)),
        ("tsk_1", ["task_1", "log"], ("task_1",)),
        ("TASK", ["task", "other"], ("task",)),
        ("Depends_On", ["dependencies", "depends_on"], ("depends_on",)),
        ("taks_one", ["task_one", "task_two", "task_ones"], ("task_one", "task_ones")),
        ("预篹", ["预算", "目标"], ("预算",)),
        ("x", ["X", "context"], ("X",)),
        ("zzz", ["context", "goal"], ()),
        ("", ["context"], ()),
        ("context", [], ()),
    ],
)
def test_the_nearest_names_come_first(name: str, known: list[str], expected: tuple[str, ...]) -> None:
    assert near(name, known) == expected


def test_there_are_at_most_as_many_as_wanted() -> None:
    known = ["task_1", "task_2", "task_3"]
    assert [len(near("task_4", known, most)) for most in (0, 1, 2, 3)] == [0, 1, 2, 3]


def test_the_order_of_equals_does_not_depend_on_the_order_of_the_known() -> None:
    known = [f"task_{number}" for number in range(9)]
    assert near("task_x", known) == near("task_x", reversed(known)) == near("task_x", set(known))


@pytest.mark.parametrize("name", ["task_0123", "tsk_00123", "task_001234", "task_00132", "TASK_00123", "task_0o123"])
def test_one_mistake_is_found_among_ten_thousand(name: str) -> None:
    assert any(found in MANY for found in near(name, MANY))


@pytest.mark.timing
@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("tsk_00123", MANY),
        ("step_7", MANY),
        ("x" * 10_000, MANY),
        ("x" * 10_000, list(MANY)),
        ("a" * 10_000, ["a" * 10_000 + str(number) for number in range(100)]),
        ("a" * 60, ["a" * 59 + str(number) for number in range(1_000)]),
    ],
    ids=["miss", "other", "long", "list", "all long", "alike"],
)
def test_a_search_is_cheap(name: str, known: Any) -> None:
    began = time.perf_counter()
    near(name, known)
    assert time.perf_counter() - began < 5 * 0.02


def test_the_question_names_what_was_found() -> None:
    assert did_you_mean(("a", "b")) == "did you mean 'a' or 'b'?"
    assert did_you_mean(("a",)) == "did you mean 'a'?"
    assert did_you_mean(()) == ""
