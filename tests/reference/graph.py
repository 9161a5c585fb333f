"""The structure of a plan: edges, back edges, loops, targets, finalizers (section 2, Edges; section 4, 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Plan = dict[str, Any]
Task = dict[str, Any]
Pair = tuple[str, str]

ON_SUCCESS = "on_success"
ON_FAILURE = "on_failure"


@dataclass(frozen=True)
class Branch:
    """A branch edge: `source` names `target` under its key `kind`."""

    source: str
    kind: str
    target: str


def reach(pairs: Iterable[Pair], starts: Iterable[str]) -> set[str]:
    """The nodes that can be reached from `starts` over one edge or more."""
    edges = list(pairs)
    found: set[str] = set()
    frontier = set(starts)
    while frontier:
        frontier = {target for source, target in edges if source in frontier} - found
        found |= frontier
    return found


def is_decision(plan: Plan, task: Task) -> bool:
    """Section 0, Who does a task: nobody does it, and it has a verification."""
    if any(task.get(key) for key in ("subplan", "subgoal", "skill")):
        return False
    worker = (plan.get("workers") or {}).get(task.get("worker") or task.get("agent")) or {}
    if worker.get("skill"):
        return False
    if task.get("type") == "action" and plan.get("default_skill"):
        return False
    return task.get("verification") is not None


def branches_of(tasks: Iterable[Task]) -> list[Branch]:
    """Every branch edge, in the order of the plan."""
    return [
        Branch(task["id"], kind, task[kind])
        for task in tasks
        for kind in (ON_SUCCESS, ON_FAILURE)
        if task.get(kind) is not None
    ]


def implied_dependencies(plan: Plan) -> dict[str, list[str]]:
    """Section 2, Edges, `flow: sequential`: what each task without dependencies waits for."""
    tasks = plan["tasks"]
    if plan.get("flow") != "sequential":
        return {}

    def led_to(place: int) -> bool:
        return any(branch.target == tasks[place]["id"] for branch in branches_of(tasks[:place]))

    implied = {}
    for place, task in enumerate(tasks):
        if place == 0 or task.get("dependencies") or led_to(place):
            continue
        nearest = max(before for before in range(place) if not led_to(before))
        implied[task["id"]] = [tasks[before]["id"] for before in range(nearest, place)]
    return implied


class Graph:
    """A plan's edges and what the page defines from them alone. Ids and references must exist."""

    def __init__(self, plan: Plan) -> None:
        self.tasks: dict[str, Task] = {task["id"]: task for task in plan["tasks"]}
        self.order: list[str] = list(self.tasks)
        self.decisions = {name for name, task in self.tasks.items() if is_decision(plan, task)}
        self.implied = implied_dependencies(plan)
        self.dependencies = {
            name: list(task.get("dependencies") or self.implied.get(name, [])) for name, task in self.tasks.items()
        }
        self.soft = {name: list(task.get("soft_dependencies") or []) for name, task in self.tasks.items()}
        self.branches = branches_of(plan["tasks"])
        self.back = {branch for branch in self.branches if self._jumps_back(branch)}
        self.forward = [branch for branch in self.branches if branch not in self.back]
        self.targets = {branch.target for branch in self.forward}
        self.loops = self._loops()
        self.finalizers = self._finalizers()

    def branch(self, source: str, kind: str) -> Branch | None:
        """The branch edge that `source` has under `kind`, if any."""
        return next((branch for branch in self.branches if (branch.source, branch.kind) == (source, kind)), None)

    def dependency_pairs(self) -> list[Pair]:
        """Dependencies, given and implied, as edges in the direction of the flow."""
        return [(before, after) for after in self.order for before in self.dependencies[after]]

    def soft_pairs(self) -> list[Pair]:
        """Soft dependencies as edges in the direction of the flow."""
        return [(before, after) for after in self.order for before in self.soft[after]]

    def forward_pairs(self) -> list[Pair]:
        """Every forward edge: dependencies, soft dependencies, and the branches that do not jump back."""
        branches = [(branch.source, branch.target) for branch in self.forward]
        return self.dependency_pairs() + self.soft_pairs() + branches

    def all_pairs(self) -> list[Pair]:
        """Every edge, back edges included."""
        return self.forward_pairs() + [(branch.source, branch.target) for branch in self.back]

    def below(self, name: str) -> set[str]:
        """What can be reached from `name` by dependencies and forward edges."""
        return reach(self.forward_pairs(), {name})

    def starts(self, to: str | None) -> set[str]:
        """What a rollback goes back to: a task, the tasks of a layer, or all of them."""
        if to is None or to in self.tasks:
            return set(self.order) if to is None else {to}
        return {name for name in self.order if self.tasks[name].get("layer") == to}

    def above(self, name: str) -> set[str]:
        """What `name` can be reached from by dependencies and forward branches.

        A soft dependency is a forward edge for cycles, loops and resets only: it says nothing of what a finalizer
        cleans up after.
        """
        pairs = self.dependency_pairs() + [(branch.source, branch.target) for branch in self.forward]
        return {other for other in self.order if other != name and name in reach(pairs, {other})}

    def jumpers(self, loop: frozenset[str]) -> set[str]:
        """The tasks of a loop that a back edge leaves from."""
        return {branch.source for branch in self.back if branch.source in loop}

    def downstream(self, loop: frozenset[str]) -> set[str]:
        """The tasks that can be reached from a loop by dependencies and forward edges, and are not on it."""
        return reach(self.forward_pairs(), loop) - loop

    def _jumps_back(self, branch: Branch) -> bool:
        if self.order.index(branch.target) > self.order.index(branch.source):
            return False
        if branch.source == branch.target:
            return True
        pairs = [(other.source, other.target) for other in self.branches]
        return branch.source in reach(self.dependency_pairs() + self.soft_pairs() + pairs, {branch.target})

    def _loops(self) -> list[frozenset[str]]:
        pairs = self.all_pairs()
        reached = {name: reach(pairs, {name}) for name in self.order}
        loops = {
            frozenset(other for other in reached[name] if name in reached[other])
            for name in self.order
            if name in reached[name]
        }
        return sorted(loops, key=lambda loop: min(self.order.index(name) for name in loop))

    def _finalizers(self) -> set[str]:
        followers = self.dependency_pairs() + [
            (branch.source, branch.target) for branch in self.forward if branch.kind == ON_SUCCESS
        ]
        chosen = {name for name in self.order if self.tasks[name].get("join") == "all_done" and self.dependencies[name]}
        while True:
            wrong = {source for source, target in followers if source in chosen and target not in chosen}
            if not wrong:
                return chosen
            chosen -= wrong


def validity(plan: Plan) -> set[str]:
    """What is wrong with the plan's structure: a subset of `cycle` and `no_exit_loop`, empty when it is fine."""
    graph = Graph(plan)
    found = set()
    if any(name in graph.below(name) for name in graph.order):
        found.add("cycle")
    if _both_jump_back(graph) or _never_leaves(graph):
        found.add("no_exit_loop")
    return found


def _both_jump_back(graph: Graph) -> bool:
    return any(
        graph.branch(name, ON_SUCCESS) in graph.back and graph.branch(name, ON_FAILURE) in graph.back
        for name in graph.order
    )


def _never_leaves(graph: Graph) -> bool:
    """A cycle of dependencies and `on_success` edges, with back edges, all from tasks that can only jump."""

    def can_leave(name: str) -> bool:
        task = graph.tasks[name]
        return bool(task.get("condition") is not None or task.get(ON_FAILURE)) or name in graph.decisions

    jumps = [branch for branch in graph.back if branch.kind == ON_SUCCESS and not can_leave(branch.source)]
    onward = [branch for branch in graph.forward if branch.kind == ON_SUCCESS]
    pairs = graph.dependency_pairs() + graph.soft_pairs()
    pairs += [(branch.source, branch.target) for branch in [*onward, *jumps]]
    return any(jump.source == jump.target or jump.source in reach(pairs, {jump.target}) for jump in jumps)
