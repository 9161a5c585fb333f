"""Random plans and their scripted outcomes, for hypothesis and for long seeded runs."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from .chooser import Chooser, DrawnChooser, SeededChooser, sample
from .draft import draft_plan, repair, with_rollbacks
from .graph import ON_FAILURE, ON_SUCCESS, Plan, Task, is_decision

Outcomes = dict[str, list[Any]]


def random_plan(rng: random.Random) -> tuple[Plan, Outcomes]:
    """A valid plan and its outcomes."""
    choose = SeededChooser(rng)
    plan = repair(draft_plan(choose))
    outcomes = draft_outcomes(choose, plan)
    plan = with_rollbacks(choose, plan)
    return plan, with_failures(choose, plan, outcomes)


@st.composite
def raw_plans(draw: st.DrawFn) -> Plan:
    """Plans whose ids and references exist, but whose structure may be invalid."""
    return draft_plan(DrawnChooser(draw))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Valid plans of 1 to 12 tasks."""
    choose = DrawnChooser(draw)
    return with_rollbacks(choose, repair(draft_plan(choose)))


@st.composite
def outcomes_for(draw: st.DrawFn, plan: Plan) -> Outcomes:
    """Scripted outcomes for some tasks of the plan."""
    choose = DrawnChooser(draw)
    return with_failures(choose, plan, draft_outcomes(choose, plan))


def draft_outcomes(choose: Chooser, plan: Plan) -> Outcomes:
    """One entry a visit, for some of the tasks; most failures have a handler or a recovery that goes on."""
    outcomes = {}
    for task in plan["tasks"]:
        jumps = _jump_key(plan, task)
        if choose.chance(_scripted_share(plan, task)):
            entries = [_entry(choose, plan, task) for _ in range(choose.integer(1, 4))]
            if jumps and choose.chance(75):
                entries.insert(0, "ok" if jumps == ON_SUCCESS else "fail")
            outcomes[task["id"]] = entries
    return outcomes


def with_failures(choose: Chooser, plan: Plan, outcomes: Outcomes) -> Outcomes:
    """The outcomes, with first visits that fail where that leads to a rollback, and first writes where one undoes."""
    changed = dict(outcomes)
    for task in plan["tasks"]:
        if is_decision(plan, task):
            continue
        if task.get("recovery") == "rollback" and choose.chance(60):
            changed[task["id"]] = ["fail", *outcomes.get(task["id"], ["ok"])]
        elif "compensation" in task and task["id"] not in outcomes:
            changed[task["id"]] = [_result(choose) for _ in range(choose.integer(1, 3))]
    return changed


def _jump_key(plan: Plan, task: Task) -> str | None:
    """The branch of the task that leads to itself or up the plan, if any."""
    names = [other["id"] for other in plan["tasks"]]
    up_to_here = names[: names.index(task["id"]) + 1]
    return next((key for key in (ON_FAILURE, ON_SUCCESS) if task.get(key) in up_to_here), None)


def _scripted_share(plan: Plan, task: Task) -> int:
    if is_decision(plan, task):
        return 35
    return 80 if ON_FAILURE in task else 50


def _entry(choose: Chooser, plan: Plan, task: Task) -> Any:
    if is_decision(plan, task):
        return choose.pick(("ok", "fail"))
    tame = "skip" in (task.get("recovery"), plan.get("recovery")) or task.get("priority") == "low"
    if choose.chance(55 if ON_FAILURE in task else 40 if tame else 7):
        return choose.pick(("fail", "fail", "fail", "timeout", "rejected"))
    return _result(choose) if choose.chance(65) else "ok"


def _result(choose: Chooser) -> dict[str, Any]:
    written = {
        "n": choose.integer(0, 3),
        "flag": choose.chance(50),
        "mode": choose.pick(("a", "b")),
        "extra": choose.integer(0, 2),
        "total": choose.integer(1, 3),
        "log": choose.integer(0, 9),
        "tags": [choose.pick(("x", "y")), choose.pick(("y", "z"))],
    }
    data = {"v": choose.integer(0, 2)} if choose.chance(80) else {}
    return {"data": data, "context": {key: written[key] for key in sample(choose, list(written), 3)}}
