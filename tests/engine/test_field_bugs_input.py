"""Field bugs F04, F05 and F09: plans that are refused before anything runs, and conditions that touch nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fsm_agent import InvalidPlan, StaticPlanner
from tests.engine.support import Basic, basic, plan_of

Writer = Callable[[Path, Any], Path]


def as_json(folder: Path, plan: Any) -> Path:
    path = folder / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    return path


def as_yaml(folder: Path, plan: Any) -> Path:
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(plan), encoding="utf-8")
    return path


def problems_of(made: Basic, source: Any) -> list[Any]:
    """What a run of this plan is refused with; nothing of it may have run."""
    with pytest.raises(InvalidPlan) as refused:
        made.run(source)
    assert made.events == []
    assert made.engine.run_ids == ()
    return [problem for problem in refused.value.problems if problem.severity == "error"]


# F04 A cycle from the planner -------------------------------------------------------------------------------------

CYCLES = {
    "two": ([{"id": "a", "dependencies": ["b"]}, {"id": "b", "dependencies": ["a"]}], "a -> b -> a"),
    "five": (
        [{"id": f"t{place}", "dependencies": [f"t{(place + 1) % 5}"]} for place in range(5)],
        "t0 -> t4 -> t3 -> t2 -> t1 -> t0",
    ),
    "self": ([{"id": "a", "dependencies": ["a"]}], "a -> a"),
    "soft": ([{"id": "a", "soft_dependencies": ["b"]}, {"id": "b", "dependencies": ["a"]}], "a -> b -> a"),
    "branch": (
        [{"id": "a", "dependencies": ["c"]}, {"id": "b", "dependencies": ["a"], "on_success": "c"}, {"id": "c"}],
        "a -> b -> c -> a",
    ),
}
cycles = pytest.mark.parametrize(("tasks", "path"), CYCLES.values(), ids=CYCLES.keys())


@cycles
@pytest.mark.parametrize("write", [as_json, as_yaml])
def test_f04_a_plan_file_with_a_cycle_is_refused_with_the_whole_cycle_as_a_path(
    tasks: list[dict[str, Any]], path: str, write: Writer, tmp_path: Path
) -> None:
    (problem,) = problems_of(basic(), write(tmp_path, plan_of(*tasks)))
    assert problem.rule == "cycle"
    assert path in problem.message
    assert problem.line is not None


@cycles
def test_f04_a_planner_that_proposes_a_cycle_fails_the_run_before_anything_is_called(
    tasks: list[dict[str, Any]], path: str
) -> None:
    made = basic(planner=StaticPlanner(plan_of(*tasks)))
    result = made.run(goal="anything")
    assert (result.phase, result.outcome, result.tasks) == ("failed", "failed", {})
    assert (result.reason or {})["kind"] == "planning"
    assert path in (result.reason or {})["message"]
    assert [problem["rule"] for problem in made.of("plan_rejected")[0].problems] == ["cycle"]
    assert not made.of("task_started")


# F05 A tool that does not exist -----------------------------------------------------------------------------------

INVENTED = ["serch_web", "functions.search_web", "multi_tool_use.parallel", "Search_Web", "", "x" * 10_000]


async def search_web(words: str = "") -> str:
    raise AssertionError("an unknown skill was mapped to another one")


@pytest.mark.parametrize("name", INVENTED, ids=lambda name: name[:30] or "empty")
@pytest.mark.parametrize("write", [as_json, as_yaml])
def test_f05_a_plan_file_with_an_unknown_skill_is_refused_with_the_task_and_known_skills(
    name: str, write: Writer, tmp_path: Path
) -> None:
    source = write(tmp_path, plan_of({"id": "first"}, {"id": "a", "skill": name}))
    (problem,) = problems_of(basic({"search_web": search_web}), source)
    assert (problem.rule, problem.task, problem.field) == ("unknown_skill", "a", "skill")
    assert name[:20] in problem.message
    assert "search_web" in problem.hint
    assert len(problem.message) < 500


@pytest.mark.parametrize("name", ["serch_web", "Search_Web"])
def test_f05_the_nearest_known_skill_is_offered(name: str) -> None:
    (problem,) = problems_of(basic({"search_web": search_web}), plan_of({"id": "a", "skill": name}))
    assert problem.hint == "did you mean 'search_web'?"


@pytest.mark.parametrize("name", INVENTED, ids=lambda name: name[:30] or "empty")
def test_f05_a_planner_that_invents_a_skill_fails_the_run_without_a_call(name: str) -> None:
    proposed = plan_of({"id": "a", "skill": name})
    made = basic({"search_web": search_web}, planner=StaticPlanner(proposed))
    result = made.run(goal="anything")
    assert (result.phase, (result.reason or {})["kind"]) == ("failed", "planning")
    assert [problem["rule"] for problem in made.of("plan_rejected")[0].problems] == ["unknown_skill"]


# F09 A condition that runs code -----------------------------------------------------------------------------------

HOSTILE = [
    "().__class__.__base__.__subclasses__()",
    "__import__('os').system('touch {marker}')",
    "open('{marker}', 'w')",
    "results.a.__class__",
    "9**9**9",
    "'a'*10**9",
    "[0 for _ in range(10**9)]",
    "(lambda: 0).__globals__",
    "context.get.__self__",
    "'{0.__class__}'.format(context)",
    "1 == 1 and " * 9_000 + "True",
    "(" * 5_000 + "1" + ")" * 5_000,
    "(x := 1)",
    "f'{context}'",
    "context.update(n=2)",
    "context.get('list').append(1)",
]
PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "condition": lambda text: {"tasks": [{"id": "a", "skill": "ok"}, {"id": "b", "skill": "ok", "condition": text}]},
    "verification": lambda text: {"tasks": [{"id": "a", "skill": "ok", "verification": text}]},
    "decision": lambda text: {"tasks": [{"id": "a", "verification": text}]},
    "parameters": lambda text: {"tasks": [{"id": "a", "skill": "nap", "parameters": {"s": "${" + text + "}"}}]},
    "criterion": lambda text: {"tasks": [{"id": "a", "skill": "ok"}], "completion_criteria": [{"check": text}]},
    "output": lambda text: {"tasks": [{"id": "a", "skill": "ok"}], "output": text},
}
places = pytest.mark.parametrize("place", PLACES)


@places
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:30])
def test_f09_a_hostile_expression_is_refused_at_load_wherever_it_stands(text: str, place: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    began = time.monotonic()
    made = basic()
    plan = {**PLACES[place](text.replace("{marker}", str(marker))), "context": {"n": 1, "list": []}}
    rules = {problem.rule for problem in problems_of(made, plan)}
    assert rules <= {"unsafe_expression", "bad_expression", "unknown_name", "impossible_reference"}
    assert time.monotonic() - began < 5
    assert not marker.exists()
    assert made.calls.order == []


@places
@pytest.mark.parametrize(
    "text", ["'a' * 1000000000", "[n] * 1000000000", "(n * 'ab' * 99999999) in 'abc'", "n / (n - 1)"]
)
def test_f09_an_expression_that_goes_too_far_fails_in_bounded_time_and_changes_nothing(text: str, place: str) -> None:
    began = time.monotonic()
    result = basic().run({**PLACES[place](text), "context": {"n": 1}})
    assert time.monotonic() - began < 5
    assert result.phase == "failed"
    assert (result.reason or {})["kind"] == ("parameters" if place == "parameters" else "condition")
    assert result.context == {"n": 1}
