"""Warnings: branches upwards, loops, clean-up, and writes at the same time."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.errors import Problem
from fsm_agent.plan.catalog import Catalog, SkillSpec
from fsm_agent.plan.loader import check_plan


def task(name: str, *dependencies: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "skill": "s", "dependencies": list(dependencies), **more}


def write(name: str, *dependencies: str, **more: Any) -> dict[str, Any]:
    return task(name, *dependencies, writes=["k"], **more)


def decision(name: str, yes: str, no: str, *dependencies: str) -> dict[str, Any]:
    verification = "context.get('x')"
    return {
        "id": name,
        "verification": verification,
        "on_success": yes,
        "on_failure": no,
        "dependencies": [*dependencies],
    }


def warnings(*tasks: dict[str, Any], **plan: Any) -> list[Problem]:
    checked = check_plan({"tasks": list(tasks), **plan})
    assert checked.valid
    return list(checked.problems)


def rules(*tasks: dict[str, Any], **plan: Any) -> list[tuple[str, str | None, str | None]]:
    return [(problem.rule, problem.task, problem.field) for problem in warnings(*tasks, **plan)]


def test_a_branch_upwards_that_is_no_loop_is_told() -> None:
    assert rules(task("a"), task("b", on_failure="a")) == [("backward_branch", "b", "on_failure")]


def test_a_jump_back_and_a_branch_downwards_are_fine() -> None:
    assert rules(task("a"), task("b", "a", on_failure="a", on_success="c"), task("c")) == []


def test_what_depends_on_a_loop_without_its_jumper_runs_once_after_it() -> None:
    found = warnings(task("gen"), task("rev", "gen", on_failure="gen"), task("note", "gen"))
    assert [(p.rule, p.task, p.field) for p in found] == [("once_after_loop", "note", "dependencies")]
    assert "let 'rev' depend on it" in found[0].hint


@pytest.mark.parametrize("dependencies", [("rev",), ("gen", "rev")])
def test_what_depends_on_the_jumper_is_meant_to_run_after_the_loop(dependencies: tuple[str, ...]) -> None:
    assert rules(task("gen"), task("rev", "gen", on_failure="gen"), task("note", *dependencies)) == []


def test_a_task_on_the_loop_is_fine() -> None:
    assert rules(task("gen"), task("note", "gen"), task("rev", "gen", "note", on_failure="gen")) == []


def test_clean_up_that_other_work_follows_is_told() -> None:
    found = rules(task("a"), task("clean", "a", join="all_done"), task("b", "clean"))
    assert found == [("cleanup_not_last", "clean", "join")]


def test_clean_up_that_leads_on_by_success_is_told() -> None:
    found = rules(task("a"), task("clean", "a", join="all_done", on_success="b"), task("b"))
    assert found == [("cleanup_not_last", "clean", "join")]


def test_clean_up_that_only_clean_up_follows_is_fine() -> None:
    assert rules(task("a"), task("c", "a", join="all_done"), task("d", "c", join="all_done")) == []


def test_two_tasks_beside_each_other_that_write_one_key_are_told() -> None:
    found = warnings(write("a"), write("b"))
    assert [(p.rule, p.task, p.field) for p in found] == [("parallel_writers", "b", "writes")]
    assert "'a'" in found[0].message
    assert "'k'" in found[0].message


def test_writes_that_the_skill_declares_count_too() -> None:
    catalog = Catalog(skills={"s": SkillSpec("s", writes=("k",))})
    [problem] = check_plan([task("a"), task("b")], catalog).problems
    assert (problem.rule, problem.task, problem.field) == ("parallel_writers", "b", None)


def test_each_later_writer_is_told_once() -> None:
    assert [found[1] for found in rules(write("a"), write("b"), write("c"), write("d", "a", "b", "c"))] == ["b", "c"]


@pytest.mark.parametrize(
    "tasks",
    [
        [write("a"), write("b", "a")],
        [write("a"), task("m", "a"), write("b", "m")],
        [write("a"), write("b", soft_dependencies=["a"])],
        [write("a", on_failure="b"), write("b")],
        [write("a", locks=["x", "y"]), write("b", locks=["y"])],
        [write("a"), task("b", writes=["other"])],
        [write("a"), task("b", writes=[])],
        [decision("if", "a", "b"), write("a"), write("b")],
        [decision("if", "a", "b"), task("a"), write("a2", "a"), task("b"), write("b2", "b")],
        [decision("if", "a", "b"), task("a", on_success="a2"), write("a2"), write("b")],
        [task("t", on_success="a", on_failure="b"), write("a"), write("b")],
    ],
)
def test_writers_that_never_run_at_the_same_time_are_fine(tasks: list[dict[str, Any]]) -> None:
    assert rules(*tasks) == []


@pytest.mark.parametrize(
    "tasks",
    [
        [decision("if", "a", "b"), write("a"), task("b"), write("c", "if", join="all_done")],
        [decision("if", "a", "b"), decision("if2", "a", "c"), write("a"), write("b"), task("c")],
        [decision("if", "a", "b"), task("a"), task("b"), write("c", "a", "b"), write("d", "a")],
    ],
)
def test_writers_that_a_fork_does_not_keep_apart_are_told(tasks: list[dict[str, Any]]) -> None:
    assert [found[0] for found in rules(*tasks) if found[0] == "parallel_writers"] == ["parallel_writers"]


def test_a_merge_rule_or_one_task_at_a_time_lets_all_write() -> None:
    assert rules(write("a"), write("b"), merge={"k": "last"}) == []
    assert rules(write("a"), write("b"), limits={"max_parallel": 1}) == []


def test_a_sequential_plan_has_its_writers_in_order() -> None:
    assert rules(write("a"), write("b"), write("c"), flow="sequential") == []


def test_no_warning_that_a_missing_edge_would_make_false_is_given_of_half_a_plan() -> None:
    source = [write("a"), {**write("b"), "dependencies": "a"}]
    assert [problem.rule for problem in check_plan(source).problems] == ["bad_value"]


def test_an_unknown_key_alone_hides_no_warning() -> None:
    source = [write("a"), {**write("b"), "zzz": 1}]
    assert [problem.rule for problem in check_plan(source).problems] == ["parallel_writers", "unknown_key"]
