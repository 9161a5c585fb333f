"""Ids, references, cycles, and loops that cannot end."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.errors import Problem
from fsm_agent.plan.loader import check_plan


def task(name: str, *dependencies: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "skill": "s", "dependencies": list(dependencies), **more}


def errors(*tasks: dict[str, Any], **plan: Any) -> list[Problem]:
    problems = check_plan({"tasks": list(tasks), **plan}).problems
    return [problem for problem in problems if problem.severity == "error"]


def only(*tasks: dict[str, Any], **plan: Any) -> Problem:
    [problem] = errors(*tasks, **plan)
    return problem


def test_each_further_task_of_one_id_is_a_duplicate() -> None:
    found = errors(task("a"), task("a"), task("b"), task("a"))
    assert [(p.rule, p.task, p.field) for p in found] == [("duplicate_id", "a", "id")] * 2


def test_an_unknown_dependency_is_told_with_the_nearest_task() -> None:
    problem = only(task("load_data"), task("b", "load_dat"))
    assert (problem.rule, problem.task, problem.field) == ("unknown_dependency", "b", "dependencies[0]")
    assert problem.hint == "did you mean 'load_data'?"


def test_soft_dependencies_are_references_too() -> None:
    assert only(task("a", soft_dependencies=["a1", "a2"][:1])).field == "soft_dependencies[0]"


def test_an_unknown_target_is_told_with_the_nearest_task() -> None:
    problem = only(task("a", on_success="plott"), task("plot"))
    assert (problem.rule, problem.task, problem.field) == ("unknown_target", "a", "on_success")
    assert problem.hint == "did you mean 'plot'?"


def test_f04_a_cycle_of_two_is_shown_as_a_path() -> None:
    problem = only(task("a", "b"), task("b", "a"))
    assert (problem.rule, problem.task, problem.field) == ("cycle", "a", "dependencies")
    assert problem.message == "these tasks wait for each other: a -> b -> a"


def test_f04_a_cycle_of_five_is_shown_whole() -> None:
    names = ["a", "b", "c", "d", "e"]
    problem = only(*(task(name, names[place - 1]) for place, name in enumerate(names)))
    assert "a -> b -> c -> d -> e -> a" in problem.message


def test_f04_a_self_dependency_is_a_cycle() -> None:
    problem = only(task("a", "a"))
    assert (problem.rule, problem.message) == ("cycle", "this task waits for itself: a -> a")


def test_f04_a_cycle_that_closes_through_a_forward_branch_says_so() -> None:
    problem = only(task("a", "b", on_success="b"), task("b"))
    assert problem.rule == "cycle"
    assert "a -> b -> a (a -> b by on_success)" in problem.message


def test_a_cycle_of_soft_dependencies_is_one() -> None:
    assert "by soft_dependencies" in only(task("a", soft_dependencies=["b"]), task("b", "a")).message


def test_a_cycle_that_flow_makes_says_which_edge_was_implied() -> None:
    problem = only(task("a", "b"), task("b"), flow="sequential")
    assert problem.rule == "cycle"
    assert "a -> b implied by flow: sequential" in problem.message


def test_two_cycles_are_two_problems() -> None:
    found = errors(task("a", "b"), task("b", "a"), task("c", "d"), task("d", "c"))
    assert sorted(problem.message[-11:] for problem in found) == ["a -> b -> a", "c -> d -> c"]


def test_a_very_long_cycle_is_cut_in_the_middle() -> None:
    size = 10_000
    problem = only(*(task(f"t{place}", f"t{(place - 1) % size}") for place in range(size)))
    assert problem.message.startswith("these tasks wait for each other: t0 -> t1 -> ")
    assert problem.message.endswith(" -> t9999 -> t0")
    assert len(problem.message) < 1_000


def test_a_jump_back_makes_no_cycle() -> None:
    assert errors(task("draft"), task("review", "draft", on_failure="draft")) == []


def test_a_task_whose_branches_both_jump_back_has_no_exit() -> None:
    problem = only(task("a"), task("b", "a", on_success="a", on_failure="a"))
    assert (problem.rule, problem.task, problem.field) == ("no_exit_loop", "b", "on_failure")


def test_a_loop_of_successes_alone_has_no_exit() -> None:
    problem = only(task("a"), task("b", "a", on_success="a"))
    assert (problem.rule, problem.task, problem.field) == ("no_exit_loop", "b", "on_success")
    assert "a -> b -> a" in problem.message


@pytest.mark.parametrize(
    "way_out",
    [
        {"condition": "context.get('more')"},
        {"on_failure": "c"},
        {"skill": None, "verification": "context.get('more')"},
    ],
)
def test_a_condition_a_handler_or_a_decision_lets_a_loop_end(way_out: dict[str, Any]) -> None:
    assert errors(task("a"), task("b", "a", on_success="a", **way_out), task("c")) == []


def test_a_loop_without_an_exit_around_a_cycle_is_told_with_it() -> None:
    tasks = [{"id": "a", "skill": "s", "dependencies": ["b"]}, {"id": "b", "skill": "s", "on_success": "a"}]
    assert {problem.rule for problem in errors({"id": "z", "skill": "s"}, *tasks, flow="sequential")} == {
        "cycle",
        "no_exit_loop",
    }


@pytest.mark.parametrize("letter", ["\u200b", "\u202e", "\u00ad", "\ufeff", "\U000e0041", "\x1b"], ids=ascii)
def test_an_id_holds_no_letter_that_is_not_seen(letter: str) -> None:
    found = check_plan({"tasks": [{"id": f"a{letter}b", "skill": "s"}]}).problems
    assert [(problem.rule, problem.field) for problem in found] == [("bad_value", "tasks[0].id")]


def test_an_emoji_of_several_parts_may_be_an_id() -> None:
    assert check_plan({"tasks": [{"id": "👨\u200d👩\u200d👧", "skill": "s"}]}).problems == ()
