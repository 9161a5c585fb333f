"""Field bugs F03 and F12: no limbo behind a skip, and no loop without an exit."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from fsm_agent import RunResult
from fsm_agent.engine.simulation import simulate
from fsm_agent.plan.loader import check_plan
from tests.engine.support import basic, drive, plan_of, statuses

# F03 Limbo behind a skip ------------------------------------------------------------------------------------------

OUTCOMES = ("SUCCEEDED", "FAILED", "condition", "optional", "person", "not_taken", "upstream_failed")
SORTS = {"SUCCEEDED": "good", "FAILED": "bad", "not_taken": "none", "upstream_failed": "bad"}
RUNS, UPSTREAM, NOT_TAKEN = "SUCCEEDED", "upstream_failed", "not_taken"

TABLE = {
    # (one, other): what becomes of c under join all, any, all_done
    ("good", "good"): (RUNS, RUNS, RUNS),
    ("good", "pass"): (RUNS, RUNS, RUNS),
    ("good", "bad"): (UPSTREAM, RUNS, RUNS),
    ("good", "none"): (RUNS, RUNS, RUNS),
    ("pass", "pass"): (RUNS, RUNS, RUNS),
    ("pass", "bad"): (UPSTREAM, RUNS, RUNS),
    ("pass", "none"): (RUNS, RUNS, RUNS),
    ("bad", "bad"): (UPSTREAM, UPSTREAM, RUNS),
    ("bad", "none"): (UPSTREAM, UPSTREAM, RUNS),
    ("none", "none"): (NOT_TAKEN, NOT_TAKEN, NOT_TAKEN),
}
JOINS = ("all", "any", "all_done")


def due(a: str, b: str, join: str) -> str:
    """What the page says becomes of a task that depends on a and b."""
    pair = (SORTS.get(a, "pass"), SORTS.get(b, "pass"))
    return TABLE.get(pair, TABLE.get(pair[::-1], ()))[JOINS.index(join)]


def tasks_for(name: str, outcome: str) -> list[dict[str, Any]]:
    """Tasks that bring the task of this name to this outcome."""
    fails = {"skill": "fail", "parameters": {"n": 99}, "max_retries": 0}
    own: dict[str, Any] = {"id": name, "skill": "ok"}
    match outcome:
        case "FAILED":
            return [{**own, **fails, "on_failure": f"{name}_handler"}, {"id": f"{name}_handler"}]
        case "condition":
            return [{**own, "condition": "off"}]
        case "optional":
            return [{**own, **fails, "recovery": "skip"}]
        case "person":
            return [{**own, "approval": "required"}]
        case "not_taken":
            return [{"id": f"{name}_gate", "verification": "on", "on_failure": name}, own]
        case "upstream_failed":
            first = {**fails, "id": f"{name}_first", "on_failure": f"{name}_handler"}
            return [first, {"id": f"{name}_handler"}, {**own, "dependencies": [f"{name}_first"]}]
        case _:
            return [own]


def limbo_plan(a: str, b: str, join: str) -> dict[str, Any]:
    end = {"id": "c", "dependencies": ["a", "b"], "join": join}
    return plan_of(*tasks_for("a", a), *tasks_for("b", b), end, context={"on": True, "off": False})


def run_for_real(plan: dict[str, Any]) -> RunResult:
    """To the end; a person skips whatever waits."""
    made = basic()

    async def main() -> RunResult:
        result = await made.engine.run(plan, run_id="r")
        if result.phase == "paused":
            for asked in result.waiting:
                await made.engine.decide("r", asked["approval"], "skip", by="Ada")
            result = await made.engine.resume("r")
        return result

    return drive(main())


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(("a", "b"), list(product(OUTCOMES, OUTCOMES)))
def test_f03_whatever_two_tasks_come_to_the_third_settles_as_the_page_says(a: str, b: str, join: str) -> None:
    result = run_for_real(limbo_plan(a, b, join))
    found = statuses(result)
    assert (found["a"], found["b"]) == (a, b)
    assert found["c"] == due(a, b, join)
    assert result.phase == "completed"


SCRIPTED = [outcome for outcome in OUTCOMES if outcome != "person"]


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(("a", "b"), list(product(SCRIPTED, SCRIPTED)))
def test_f03_a_simulated_run_comes_to_the_same(a: str, b: str, join: str) -> None:
    plan = limbo_plan(a, b, join)
    compiled = check_plan(plan).compiled
    assert compiled is not None
    script = {task["id"]: ["fail"] for task in plan["tasks"] if task.get("skill") == "fail"}
    result = simulate(compiled, script)
    assert statuses(result)["c"] == due(a, b, join)
    assert (result.phase, statuses(result)) == ("completed", statuses(run_for_real(plan)))


# F12 The loop without an exit -------------------------------------------------------------------------------------

SEARCH: dict[str, Any] = {"id": "search", "skill": "find"}
JUDGE: dict[str, Any] = {"id": "judge", "skill": "reject", "dependencies": ["search"], "on_failure": "search"}


def searching(*tasks: dict[str, Any], **keys: Any) -> RunResult:
    found = 0

    async def find() -> dict[str, int]:
        nonlocal found
        found += 1
        return {"found": found}

    async def reject() -> dict[str, Any]:
        return {"success": False, "error": "not good enough"}

    made = basic({"find": find, "reject": reject})
    return made.run(plan_of(*tasks, **keys))


@pytest.mark.parametrize(("words", "visits"), [({}, 10), ({"max_visits": 3}, 3)])
def test_f12_two_tasks_that_hand_work_to_each_other_stop_at_max_visits(words: dict[str, Any], visits: int) -> None:
    result = searching({**SEARCH, **words}, JUDGE)
    assert result.phase == "failed"
    assert (result.tasks["search"].visits, result.tasks["judge"].visits) == (visits, visits)
    assert result.trace == [("search", "ok"), ("judge", "fail")] * visits
    assert (result.reason or {})["task"] == "judge"


def test_f12_what_was_found_so_far_is_in_the_report() -> None:
    result = searching({**SEARCH, "max_visits": 4}, JUDGE)
    assert result.tasks["search"].data == {"found": 4}


def test_f12_the_last_failure_goes_to_the_recovery_that_one_chose() -> None:
    result = searching(
        {**SEARCH, "max_visits": 3}, {**JUDGE, "recovery": "skip"}, {"id": "report", "dependencies": ["judge"]}
    )
    assert (result.phase, result.outcome) == ("completed", "handled_failures")
    assert statuses(result) == {"search": "SUCCEEDED", "judge": "optional", "report": "SUCCEEDED"}


def test_f12_a_loop_of_successes_stops_with_the_task_the_count_and_the_setting() -> None:
    again = {"id": "again", "skill": "ok", "dependencies": ["search"], "condition": "on", "on_success": "search"}
    result = searching({**SEARCH, "max_visits": 4}, again, context={"on": True})
    assert result.phase == "failed"
    assert result.reason == {
        "kind": "limit", "task": "search", "setting": "max_visits", "count": 4,
        "message": "task 'search' was due for visit 5; max_visits allows 4",
    }  # fmt: skip
    assert result.tasks["search"].status == "PENDING"


@pytest.mark.parametrize(("words", "visits"), [({}, 10), ({"max_visits": 2}, 2)])
def test_f12_a_task_that_jumps_to_itself_stops_at_max_visits(words: dict[str, Any], visits: int) -> None:
    result = searching({"id": "a", "skill": "reject", "on_failure": "a", **words})
    assert (result.phase, result.tasks["a"].visits) == ("failed", visits)
    assert result.reason is not None
    assert (result.reason["kind"], result.reason["task"]) == ("reported", "a")
    assert "not good enough" in result.reason["message"]


def test_f12_a_run_stops_at_max_task_runs_with_the_count_and_the_setting() -> None:
    result = searching(SEARCH, JUDGE, limits={"max_task_runs": 5})
    assert result.phase == "failed"
    assert result.reason == {
        "kind": "limit", "task": "judge", "setting": "limits.max_task_runs", "count": 5,
        "message": "task 'judge' was due for task run 6; limits.max_task_runs allows 5",
    }  # fmt: skip
    assert len(result.trace) == 5
    assert result.tasks["search"].data == {"found": 3}


@pytest.mark.parametrize(("recovery", "status"), [("skip", "optional"), ("abort", "PENDING")])
def test_f12_past_max_visits_the_recovery_of_the_task_itself_decides(recovery: str, status: str) -> None:
    again = {"id": "again", "skill": "ok", "dependencies": ["search"], "condition": "on", "on_success": "search"}
    result = searching({**SEARCH, "max_visits": 2, "recovery": recovery}, again, context={"on": True})
    assert statuses(result)["search"] == status
    assert result.tasks["search"].visits == 2


def test_f12_what_a_loop_found_so_far_is_in_the_report_of_a_run_that_a_limit_ended() -> None:
    async def find() -> str:
        return "found"

    again = {"id": "again", "dependencies": ["search"], "condition": "on", "on_success": "search"}
    result = basic({"find": find}).run(
        plan_of({"id": "search", "skill": "find", "max_visits": 2}, again, context={"on": True})
    )
    assert (result.reason or {})["kind"] == "limit"
    assert result.tasks["search"].data == "found"


def test_f12_the_reason_of_a_loop_that_is_used_up_names_the_setting_and_the_count() -> None:
    judge = {
        "id": "judge",
        "skill": "fail",
        "parameters": {"n": 99},
        "max_retries": 0,
        "dependencies": ["search"],
        "on_failure": "search",
    }
    result = basic().run(plan_of({"id": "search", "max_visits": 3}, judge))
    message = (result.reason or {})["message"]
    assert "search" in message, message
    assert "max_visits" in message, message
    assert "3" in message, message
