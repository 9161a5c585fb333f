"""Random plans run by the real engine, with skills that follow the script of `simulate`."""

from __future__ import annotations

import random
from typing import Any

from fsm_agent import Event, RunResult, SkillContext
from fsm_agent.core.result import result_of
from fsm_agent.core.run import Run
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.plan.loader import check_plan
from fsm_agent.testing import SimulatedClock
from tests.engine.support import Bench, bench
from tests.reference import Graph
from tests.reference.graph import is_decision

Plan = dict[str, Any]
Outcomes = dict[str, list[Any]]

VERIFIED = {"data": {"v": 1}}
"""A result that meets every verification of the generator."""


def compiled(plan: Plan) -> CompiledPlan:
    checked = check_plan(plan)
    assert checked.compiled is not None, checked.problems
    return checked.compiled


def playable(plan: Plan, outcomes: Outcomes) -> Outcomes:
    """The script without what only a simulation can play: verdicts of decisions, and final verdicts of checks."""
    script: Outcomes = {}
    for task in plan["tasks"]:
        if is_decision(plan, task):
            continue
        entries = ["fail" if entry == "rejected" else entry for entry in outcomes.get(task["id"], ["ok"])]
        if task.get("verification") is not None:
            entries = [VERIFIED if entry == "ok" else entry for entry in entries]
        script[task["id"]] = entries
    return script


class Player:
    """The skill `stub`: does what the script says for its task and visit, after a while of the simulated clock.

    And `undo`, of whose calls so many in a hundred fail.
    """

    def __init__(self, script: Outcomes, seed: int, longest: int, undo_fails: int = 0) -> None:
        self._undo_fails = random.Random(seed), undo_fails
        self.clock = SimulatedClock()
        self._script = script
        self._seed = seed
        self._longest = longest

    async def stub(self, context: SkillContext) -> Any:
        """One call."""
        entries = self._script[context.task_id]
        entry = entries[min(context.visit, len(entries)) - 1]
        chance = random.Random(f"{self._seed} {context.task_id} {context.visit}")
        if self._longest:
            await self.clock.sleep(chance.randint(1, self._longest))
        if entry == "timeout":
            await self.clock.sleep(1_000)
        if entry == "fail":
            raise OSError("scripted to fail")
        if entry == "ok":
            return {}
        for key, value in (entry.get("context") or {}).items():
            context.set(key, value)
        return entry.get("data", {})

    async def undo(self, context: SkillContext) -> Any:
        """One compensation."""
        chance, fails = self._undo_fails
        if self._longest:
            await self.clock.sleep(self._longest)
        if chance.randrange(100) < fails:
            raise OSError("it cannot be undone")
        return {}

    def skills(self) -> dict[str, Any]:
        """Both, by name."""
        return {"stub": self.stub, "undo": self.undo}


def play(
    plan: Plan, script: Outcomes, *, max_parallel: int, seed: int = 0, longest: int = 0
) -> tuple[Bench, RunResult]:
    """Run a plan by the real engine. A task takes up to `longest` seconds of the simulated clock."""
    player = Player(script, seed, longest)
    made = bench(player.skills(), clock=player.clock)
    patient = {**plan, "limits": {**plan.get("limits", {}), "cleanup_timeout": 1_000_000}}
    return made, made.run(patient, run_id="r", max_parallel=max_parallel)


def replayed(plan: Plan, events: list[Event]) -> RunResult:
    """The result that folding the events through a fresh run gives."""
    shape = compiled(plan)
    run = Run("r", lambda digest: shape)
    for event in events:
        run.evolve(event)
    return result_of(run)


def told(result: RunResult) -> dict[str, Any]:
    """All that a result says, but for how long the run took."""
    return {key: value for key, value in result.to_json().items() if key != "elapsed_s"}


def timeless(plan: Plan, script: Outcomes) -> tuple[Plan, Outcomes]:
    """The plan and the script without all by which timing could matter for final statuses.

    No aborts and no pauses, no writes to the context, one outcome for every visit of a task, no limits but of those
    tasks that jump or are jumped to, and `join: any` asks nothing of results that may not be there yet.
    """
    graph = Graph(plan)
    on_jumps = {name for edge in graph.back for name in (edge.source, edge.target)}
    tasks = []
    for task in plan["tasks"]:
        drop = {"recovery"} if task["id"] in on_jumps else {"recovery", "max_visits"}
        if task.get("join") == "any":
            drop |= {key for key in ("condition", "verification") if "results." in task.get(key, "")}
        tasks.append({key: value for key, value in task.items() if key not in drop})
        if task.get("type") == "condition":
            tasks[-1].setdefault("verification", "flag")
    keys = {key: value for key, value in plan.items() if key not in ("limits", "recovery", "tasks")}
    once = {task: [_without_writes(entry) for entry in entries[:1]] for task, entries in script.items()}
    jumpers = {edge.source for edge in graph.back}
    once.update({task: [_without_writes(entry) for entry in script[task]] for task in jumpers & script.keys()})
    return {**keys, "recovery": "skip", "tasks": tasks}, once


def _without_writes(entry: Any) -> Any:
    return {"data": entry.get("data", {})} if isinstance(entry, dict) else entry


def loops_are_simple(plan: Plan) -> bool:
    """Whether every loop is entered in one way, has one jumping task, and its tasks wait for all that leads there."""
    graph = Graph(plan)
    for loop in graph.loops:
        jumps = [edge for edge in graph.back if edge.source in loop]
        if len(jumps) != 1:
            return False
        entered = {after for before, after in graph.forward_pairs() if before not in loop and after in loop}
        inside = {after for before, after in graph.forward_pairs() if before in loop and after in loop}
        if not entered <= {jumps[0].target} or loop - inside - {jumps[0].target}:
            return False
        for name in loop:
            edges = [edge for edge in graph.forward if edge.target == name]
            if len(edges) > 1 or graph.tasks[name].get("join") == "any":
                return False
    return True
