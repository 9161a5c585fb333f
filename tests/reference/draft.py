"""A random plan in normal form; dependencies, branches, loops, conditions, finalizers each have a good share."""

from __future__ import annotations

from typing import Any

from .chooser import Chooser, sample
from .graph import ON_FAILURE, ON_SUCCESS, Graph, Plan, Task, is_decision, reach, validity

CONDITIONS = (
    "context['n'] < 2",
    "n >= 1",
    "flag",
    "not context['flag']",
    "mode == 'a' or n > 2",
    "context.get('n', 0) % 2 == 0",
    "'extra' in context",
    "context.get('extra', 0) + 1 > 2",
)
ERRING_CONDITIONS = ("context['extra'] == 1", "context.get('extra') > 1", "mode < n", "context['missing']")
RESULT_CHECKS = ("result['v'] > 0", "result.get('v', 1) >= 1", "result['v'] + 1 == 2")
JOINS = ("any", "all_done", "all")


def draft_plan(choose: Chooser) -> Plan:
    """A random plan of 1 to 12 tasks; its structure may be invalid."""
    size = choose.integer(4, 12) if choose.chance(75) else choose.integer(1, 12)
    sequential = choose.chance(25)
    plan: Plan = {"goal": "a random plan", "tasks": [{"id": f"t{place}"} for place in range(size)]}
    if sequential:
        plan["flow"] = "sequential"
    tail = choose.integer(1, 2) if size >= 4 and choose.chance(35) else 0
    for place, task in enumerate(plan["tasks"][: size - tail]):
        _add_dependencies(choose, plan, place, sparse=sequential)
        _add_work(choose, task)
        _add_forward_branches(choose, plan, place, size - tail)
    for place in range(size - tail):
        _add_jump(choose, plan, place)
    for task in plan["tasks"][: size - tail]:
        _add_policy(choose, task)
    for place in range(size - tail, size):
        _add_finalizer(choose, plan, place, size - tail)
    _add_plan_keys(choose, plan)
    return plan


def repair(plan: Plan) -> Plan:
    """Takes edges away, the last ones first, until the structure is valid."""
    while validity(plan):
        candidates = _suspects(plan)
        for place, key in candidates:
            smaller = _without(plan, place, key)
            if not validity(smaller):
                return smaller
        plan = _without(plan, *candidates[0])
    return plan


def _suspects(plan: Plan) -> list[tuple[int, str]]:
    keys = (ON_SUCCESS, ON_FAILURE, "soft_dependencies", "dependencies")
    return [(place, key) for key in keys for place, task in reversed(list(enumerate(plan["tasks"]))) if key in task]


def _without(plan: Plan, place: int, key: str) -> Plan:
    tasks = [dict(task) for task in plan["tasks"]]
    del tasks[place][key]
    if key.endswith("dependencies"):
        _forget_results(tasks[place])
    return {**plan, "tasks": tasks}


def _forget_results(task: Task) -> None:
    """A task that lost its dependencies must not name their results."""
    for key in ("condition", "verification"):
        if "results." in task.get(key, ""):
            task[key] = "flag"


def _ids(tasks: list[Task]) -> list[str]:
    return [task["id"] for task in tasks]


def _add_dependencies(choose: Chooser, plan: Plan, place: int, *, sparse: bool) -> None:
    task, names = plan["tasks"][place], _ids(plan["tasks"])
    wanted = sample(choose, names[:place], 3) if choose.chance(20 if sparse else 65) else []
    if place + 1 < len(names) and choose.chance(4):
        wanted.append(choose.pick(names[place + 1 :]))
    if wanted:
        task["dependencies"] = wanted
    if place and choose.chance(10):
        task["soft_dependencies"] = sample(choose, names[:place], 2)
    if (wanted or sparse) and choose.chance(45 if wanted else 20):
        task["join"] = choose.pick(JOINS)


def _add_work(choose: Chooser, task: Task) -> None:
    if choose.chance(18):
        task["type"] = "condition"
        task["verification"] = _condition(choose, task)
    else:
        task["skill"] = "stub"
        if choose.chance(15):
            task["verification"] = choose.pick(RESULT_CHECKS)
            if choose.chance(40):
                task["on_unverified"] = choose.pick(("warn", "fail"))
    if choose.chance(18):
        task["condition"] = _condition(choose, task)


def _condition(choose: Chooser, task: Task) -> str:
    """An expression over the context, or over the result of a dependency."""
    before = [*task.get("dependencies", []), *task.get("soft_dependencies", [])]
    if before and choose.chance(25):
        view = choose.pick(("success", "status == 'FAILED'", "status == 'SKIPPED'", "data.v == 1"))
        return f"results.{choose.pick(before)}.{view}"
    return choose.pick(ERRING_CONDITIONS if choose.chance(8) else CONDITIONS)


def _add_forward_branches(choose: Chooser, plan: Plan, place: int, end: int) -> None:
    task, later = plan["tasks"][place], _ids(plan["tasks"])[place + 1 : end]
    decision = task.get("type") == "condition"
    if later and choose.chance(60 if decision else 15):
        task[ON_SUCCESS] = choose.pick(later[:3])
    if later and choose.chance(50 if decision else 25):
        task[ON_FAILURE] = choose.pick(later[:4])


def _add_jump(choose: Chooser, plan: Plan, place: int) -> None:
    """A branch to the task itself or back up the plan, most often to where the task can be reached from."""
    task = plan["tasks"][place]
    if not choose.chance(22):
        return
    key = ON_SUCCESS if choose.chance(60 if task.get("type") == "condition" else 15) else ON_FAILURE
    earlier = _ids(plan["tasks"])[:place]
    pairs = Graph(plan).all_pairs()
    above = [name for name in earlier if task["id"] in reach(pairs, {name})]
    if choose.chance(30) or not earlier:
        task[key] = task["id"]
    else:
        task[key] = choose.pick(above or earlier)


def _add_policy(choose: Chooser, task: Task) -> None:
    if choose.chance(35):
        task["priority"] = choose.pick(("high", "low", "medium"))
    if choose.chance(40):
        task["max_visits"] = choose.integer(1, 4)
    if choose.chance(30):
        task["recovery"] = choose.pick(("skip", "skip", "skip", "abort", "abort", "pause"))


def with_rollbacks(choose: Chooser, plan: Plan) -> Plan:
    """Some plans with rollbacks: to tasks, to layers, to the start; the others as they are."""
    if not choose.chance(30):
        return plan
    tasks = [dict(task) for task in plan["tasks"]]
    for task in tasks:
        if choose.chance(40):
            task["layer"] = choose.pick(("red", "blue"))
        if not is_decision(plan, task) and choose.chance(70):
            task["compensation"] = {"skill": "undo"}
    plan = {**plan, "tasks": tasks}
    graph = Graph(plan)
    for task in tasks:
        if choose.chance(50 if ON_FAILURE in task else 70):
            task["recovery"] = "rollback"
            choices = [to for to in ("red", "blue", *graph.order) if _leads_to(graph, to, task["id"])]
            if choices and choose.chance(75):
                task["rollback_to"] = choose.pick(choices)
    if choose.chance(30):
        plan["recovery"] = "rollback"
    if choose.chance(80):
        plan["limits"] = {**plan.get("limits", {}), "max_rollbacks": choose.pick((2, 3, 5, 5, 0))}
    return plan


def _leads_to(graph: Graph, to: str, name: str) -> bool:
    starts = graph.starts(to)
    return name in starts or any(name in graph.below(start) for start in starts)


def _add_finalizer(choose: Chooser, plan: Plan, place: int, start: int) -> None:
    task, names = plan["tasks"][place], _ids(plan["tasks"])
    task.update({"skill": "stub", "join": "all_done"})
    if plan.get("flow") != "sequential" or choose.chance(50):
        task["dependencies"] = sample(choose, names[:start], 3)
        if place > start and choose.chance(50):
            task["dependencies"].append(names[place - 1])
    if place + 1 < len(names) and choose.chance(20):
        task[ON_SUCCESS] = names[place + 1]
    if choose.chance(20):
        task["condition"] = _condition(choose, task)
    if choose.chance(25):
        task["priority"] = choose.pick(("high", "low"))
    if choose.chance(10):
        task["max_visits"] = 1


def _add_plan_keys(choose: Chooser, plan: Plan) -> None:
    plan["context"] = {
        "n": choose.integer(0, 3),
        "flag": choose.chance(50),
        "mode": choose.pick(("a", "b")),
        "total": 0,
    }
    if choose.chance(40):
        plan["merge"] = {"total": "sum", "log": "append", "tags": "union"}
    if choose.chance(40):
        plan["recovery"] = choose.pick(("skip", "skip", "by_priority", "by_priority", "abort", "pause"))
    if choose.chance(10):
        plan["limits"] = {"max_task_runs": choose.integer(1, 12)}
    if choose.chance(15):
        plan["completion_criteria"] = _criteria(choose)
    if choose.chance(8):
        plan["output"] = choose.pick(("context['n']", "context['extra']"))


def _criteria(choose: Chooser) -> list[Any]:
    prose = "the numbers are right"
    if choose.chance(30):
        return [prose]
    return [prose, {"check": _condition(choose, {}), "text": "as agreed"}]
