"""Where a rollback leads: from the task that failed back to a task, to a layer, or to the plan's start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fsm_agent.plan.graph import Graph
from fsm_agent.plan.model import Plan, Task
from fsm_agent.plan.walks import reach


@dataclass(frozen=True, slots=True)
class WayBack:
    """The way from one task back to where its rollback leads."""

    to: str | None
    """A task's id or a layer's name; None for the plan's start."""
    task: int | None
    """The place of the task, where one is named."""
    members: frozenset[int]
    """What runs again: the named tasks, and all that can be reached from them by dependencies and forward edges."""

    def heads(self, graph: Graph) -> list[int]:
        """The members that no other member leads to."""
        followers = {target for place in self.members for target in graph.successors[place]}
        return sorted(self.members - followers)


def recovers_by_rollback(task: Task, plan: Plan) -> bool:
    """Whether a failure of the task that no edge takes up leads to a rollback."""
    return (task.recovery or plan.recovery) == "rollback"


def layer_of(plan: Plan, name: str) -> list[int]:
    """The places of a layer's tasks."""
    return [place for place, task in enumerate(plan.tasks) if task.layer == name]


def what_is(plan: Plan, graph: Graph, name: str) -> Literal["task", "layer", "both"] | None:
    """What a `rollback_to` names; None where there is no such thing."""
    if any(task.layer == name for task in plan.tasks):
        return "both" if name in graph.index else "layer"
    return "task" if name in graph.index else None


def way_back(plan: Plan, graph: Graph, place: int) -> WayBack:
    """The way back of a task's rollback. Its `rollback_to` must name a task or a layer, if anything."""
    to = plan.tasks[place].rollback_to
    if to is None:
        return WayBack(None, None, frozenset(range(len(graph.ids))))
    task = graph.index.get(to)
    if task is not None:
        return WayBack(to, task, graph.reachable(task))
    return WayBack(to, None, frozenset(reach(layer_of(plan, to), graph.successors)))


def ways_back(plan: Plan, graph: Graph) -> Iterator[tuple[int, WayBack]]:
    """The ways of all tasks that a failure may send back, with their places; those of a wrong name are left out."""
    known: dict[str | None, WayBack] = {}
    for place, task in enumerate(plan.tasks):
        to = task.rollback_to
        if recovers_by_rollback(task, plan) and (to is None or what_is(plan, graph, to) is not None):
            way = known.get(to)
            if way is None:
                way = known[to] = way_back(plan, graph, place)
            yield place, way
