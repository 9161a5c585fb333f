"""Checking a large plan takes time in proportion to its size."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest

from fsm_agent.plan.catalog import Catalog, SkillSpec
from fsm_agent.plan.loader import check_plan

CATALOG = Catalog(skills={"stub": SkillSpec("stub", check=lambda _constants, _expressions: [])})


def chain(size: int) -> dict[str, Any]:
    """A parsed plan of tasks that each have a dependency, parameters, and a condition of their own."""
    tasks = [
        {
            "id": f"t{place}",
            "skill": "stub",
            "parameters": {"number": place, "text": "hello"},
            "dependencies": [f"t{place - 1}"] if place else [],
            "condition": f"context.get('k{place}', {place}) >= {place}",
        }
        for place in range(size)
    ]
    return {"goal": "g", "tasks": tasks}


def seconds(plan: dict[str, Any]) -> float:
    start = time.process_time()
    checked = check_plan(plan, CATALOG)
    taken = time.process_time() - start
    assert checked.problems == ()
    return taken


@pytest.mark.timing
def test_ten_thousand_tasks_are_checked_in_under_a_second() -> None:
    assert min(seconds(chain(10_000)) for _ in range(2)) < 5 * 1.0


@pytest.mark.timing
def test_the_time_grows_with_the_size() -> None:
    small, large = chain(1_000), chain(10_000)
    assert min(seconds(large) for _ in range(2)) < 5 * 10 * min(seconds(small) for _ in range(3))


@pytest.mark.timing
@pytest.mark.parametrize("broken", ["dependencies", "condition", "skill", "cycle", "writes"])
def test_ten_thousand_problems_are_told_in_seconds(broken: str) -> None:
    plan = chain(10_000)
    for place, task in enumerate(plan["tasks"]):
        if broken == "dependencies":
            task["dependencies"] = [f"u{place}"]
        elif broken == "condition":
            task["condition"] = f"unknown{place} > 1"
        elif broken == "skill":
            task["skill"] = f"unknown{place}"
        elif broken == "cycle":
            task["dependencies"] = [f"t{(place + 1) % 10_000}"]
        else:
            task.update(writes=["k"], dependencies=[])
    start = time.process_time()
    assert check_plan(plan, CATALOG).problems
    assert time.process_time() - start < 5 * 4.0


@pytest.mark.parametrize("enabled", [True, False])
def test_checking_leaves_the_collector_of_garbage_as_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        check_plan(chain(2))
        assert gc.isenabled() is enabled
    finally:
        gc.enable() if before else gc.disable()
