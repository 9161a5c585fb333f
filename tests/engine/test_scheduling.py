"""Sections 2 and 4 of the plan's meaning in real runs: who runs beside whom, in what order, and what jumps do."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest

from fsm_agent import skill
from fsm_agent.testing import SimulatedClock
from tests.engine.support import basic, bench, most_at_once, plan_of, shared_locks, statuses

NAP: dict[str, Any] = {"skill": "nap", "parameters": {"s": 1}}


def naps(count: int, **words: Any) -> list[dict[str, Any]]:
    return [{"id": f"t{n}", **NAP, **words} for n in range(count)]


# Slots ------------------------------------------------------------------------------------------------------------


def test_independent_tasks_overlap() -> None:
    made = basic()
    made.run(plan_of(*naps(5)))
    assert [event.type for event in made.of("task_started", "task_evaluated")] == ["task_started"] * 5 + [
        "task_evaluated"
    ] * 5
    assert made.clock.monotonic() == 1


@pytest.mark.parametrize("most", [1, 2, 3, 8])
def test_never_more_than_max_parallel_run_at_once_and_no_slot_stays_empty(most: int) -> None:
    made = basic()
    made.run(plan_of(*naps(24), limits={"max_parallel": most}))
    assert most_at_once(made.events) == most
    assert made.clock.monotonic() == 24 / most


def test_the_default_is_eight_at_once() -> None:
    made = basic()
    made.run(plan_of(*naps(20)))
    assert most_at_once(made.events) == 8


def test_skips_and_decisions_take_no_slot() -> None:
    made = basic()
    plan = plan_of(
        {"id": "skipped", "condition": "1 > 2"},
        {"id": "decision", "verification": "1 < 2"},
        *naps(2),
        limits={"max_parallel": 2},
    )
    result = made.run(plan)
    assert (statuses(result)["skipped"], result.tasks["decision"].attempts) == ("condition", 0)
    assert made.clock.monotonic() == 1


# Order ----------------------------------------------------------------------------------------------------------------


def test_ready_tasks_are_taken_by_priority_and_then_by_their_place() -> None:
    made = basic()
    priorities = {"a": "low", "b": "medium", "c": "high", "d": "medium", "e": "high"}
    made.run(plan_of(*({"id": name, "priority": priority} for name, priority in priorities.items())), max_parallel=1)
    assert made.calls.order == ["c", "e", "b", "d", "a"]


def test_a_priority_is_not_inherited_by_what_a_task_waits_for() -> None:
    made = basic()
    made.run(plan_of({"id": "a"}, {"id": "b"}, {"id": "c", "priority": "high", "dependencies": ["b"]}), max_parallel=1)
    assert made.calls.order == ["a", "b", "c"]


def test_what_becomes_ready_meanwhile_is_put_in_its_place() -> None:
    made = basic()
    plan = plan_of({"id": "a"}, *naps(3, priority="low"), {"id": "urgent", "priority": "high", "dependencies": ["a"]})
    made.run(plan, max_parallel=1)
    assert made.calls.order == ["a", "urgent", "t0", "t1", "t2"]


def test_what_finishes_at_one_moment_is_judged_in_the_order_of_the_plan() -> None:
    made = basic()
    tasks = [{"id": "low", **NAP, "priority": "low"}, {"id": "high", **NAP, "priority": "high"}]
    assert made.run(plan_of(*tasks)).trace == [("low", "ok"), ("high", "ok")]


def test_what_finishes_is_judged_in_the_order_of_finishing() -> None:
    made = basic()
    tasks = [{"id": f"t{n}", "skill": "nap", "parameters": {"s": 5 - n}} for n in range(4)]
    assert [task for task, _ in made.run(plan_of(*tasks)).trace] == ["t3", "t2", "t1", "t0"]


# Locks ------------------------------------------------------------------------------------------------------------


def test_two_tasks_that_name_one_lock_never_run_at_once() -> None:
    made = basic()
    made.run(plan_of(*naps(4, locks=["db"]), {"id": "free", **NAP}))
    assert shared_locks(made.events, {**{f"t{n}": ["db"] for n in range(4)}, "free": []}) == []
    assert made.clock.monotonic() == 4
    assert made.calls.order[:2] == ["t0", "free"]


def test_a_task_that_names_one_lock_twice_runs() -> None:
    assert basic().run(plan_of({"id": "a", "locks": ["x", "x"]})).completed


def locked_plan(size: int, seed: int) -> tuple[dict[str, Any], dict[str, list[str]]]:
    chance = random.Random(seed)
    names = [f"lock {n}" for n in range(max(4, size // 20))]
    locks = {f"t{n}": chance.sample(names, chance.randint(0, 3)) for n in range(size)}
    tasks = [
        {"id": task, "skill": "nap", "parameters": {"s": chance.randint(1, 5)}, "locks": wanted,
         "priority": chance.choice(["high", "medium", "low"])}
        for task, wanted in locks.items()
    ]  # fmt: skip
    return plan_of(*tasks, limits={"max_parallel": 16}), locks


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_tasks_with_random_locks_share_none_and_all_run(seed: int) -> None:
    made = basic()
    plan, locks = locked_plan(1000, seed)
    result = made.run(plan)
    assert result.outcome == "clean"
    assert shared_locks(made.events, locks) == []
    assert 1 < most_at_once(made.events) <= 16


def test_a_lock_is_free_again_after_a_failure_a_timeout_and_a_retry() -> None:
    made = basic()
    common: dict[str, Any] = {"locks": ["db"], "recovery": "skip"}
    plan = plan_of(
        {"id": "fails", "skill": "fail", "parameters": {"n": 9}, "max_retries": 1, **common},
        {"id": "late", "skill": "nap", "parameters": {"s": 99}, "timeout": 1, **common},
        {"id": "last", **common},
    )
    assert statuses(made.run(plan)) == {"fails": "optional", "late": "optional", "last": "SUCCEEDED"}
    assert made.calls.order == ["fails", "fails", "late", "last"]


# Size ---------------------------------------------------------------------------------------------------------------


def seconds_for(plan: dict[str, Any]) -> float:
    """The best of three runs of a plan, without its validation."""
    made = basic()
    prepared = made.engine.check(plan).compiled.plan
    made.run(prepared)
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        assert made.run(prepared).completed
        best = min(best, time.process_time() - began)
        made.events.clear()
    return best


SHAPES = {
    "chain": lambda size: [{"id": f"t{n}", "dependencies": [f"t{n - 1}"] if n else []} for n in range(size)],
    "fan-out": lambda size: [{"id": "t"}, *({"id": f"t{n}", "dependencies": ["t"]} for n in range(size))],
    "fan-in": lambda size: [
        *({"id": f"t{n}"} for n in range(size)),
        {"id": "t", "dependencies": [f"t{n}" for n in range(size)]},
    ],
}


@pytest.mark.timing
@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_tasks_cost_about_ten_times_a_thousand(shape: str) -> None:
    small = seconds_for(plan_of(*SHAPES[shape](1_000)))
    made = basic()
    prepared = made.engine.check(plan_of(*SHAPES[shape](10_000))).compiled.plan
    began = time.process_time()
    assert made.run(prepared).outcome == "clean"
    assert time.process_time() - began < 5 * 10 * small


@pytest.mark.timing
def test_locks_cost_about_four_times_as_much_for_four_times_the_tasks() -> None:
    small, large = (seconds_for(locked_plan(size, 1)[0]) for size in (250, 1_000))
    assert large < 4 * 2.5 * small  # quadratic would be 16 times


# Sequential plans -------------------------------------------------------------------------------------------------


def test_a_sequential_plan_runs_one_after_the_other_and_goes_on_after_a_handled_failure() -> None:
    made = basic()
    plan = plan_of(
        {"id": "a"},
        {"id": "b", "skill": "fail", "parameters": {"n": 9}, "max_retries": 0, "on_failure": "b_failed"},
        {"id": "b_failed"},
        {"id": "c"},
        flow="sequential",
    )
    result = made.run(plan)
    assert made.calls.order == ["a", "b", "b_failed", "c"]
    assert most_at_once(made.events) == 1
    assert (result.phase, result.outcome) == ("completed", "handled_failures")


# The rest of what a run keeps to ---------------------------------------------------------------------------------


def test_sync_skills_overlap_too() -> None:
    together = threading.Barrier(3, timeout=10)

    @skill
    def meets_others() -> int:
        return together.wait()

    made = bench({"meet": meets_others}, clock=SimulatedClock())
    result = made.run({"tasks": [{"id": f"t{n}", "skill": "meet"} for n in range(3)]})
    assert sorted(task.data for task in result.tasks.values()) == [0, 1, 2]
