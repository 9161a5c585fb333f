"""The plan's shape: edges, back edges, loops, joins, finalizers. Pure structure, computed once, shared by all runs.

Tasks are known by their place in the plan (0-based); `index` gives the place of an id. References to tasks that do not
exist are left out here (a rule names them), so that a plan with such a problem still has a shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final, Literal

from fsm_agent.plan.model import Plan, Task
from fsm_agent.plan.walks import components, path_between, reach

NONE = -1
"""No task."""

RANKS: Final = {"high": 0, "medium": 1, "low": 2}

JoinRule = Literal["all", "any", "all_done", "sequential"]
EdgeKind = Literal["dependency", "implied", "soft", "on_success", "on_failure"]


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge between two places; `back` where it jumps back up the plan."""

    source: int
    target: int
    kind: EdgeKind
    back: bool = False


@dataclass(slots=True)
class Graph:
    """The shape of one plan. All lists are indexed by place and must not be changed."""

    ids: tuple[str, ...]
    index: dict[str, int]
    dependencies: list[tuple[int, ...]]
    implied: list[bool]
    """Whether the task's dependencies come from `flow: sequential`."""
    soft: list[tuple[int, ...]]
    dependents: list[list[int]]
    soft_dependents: list[list[int]]
    on_success: list[int]
    on_failure: list[int]
    success_back: list[bool]
    failure_back: list[bool]
    joins: list[JoinRule]
    decisions: list[bool]
    branch_sources: list[list[int]]
    """Sources of the forward branch edges into a task, one entry an edge; not empty for a branch target."""
    successors: list[list[int]]
    """Along dependencies, soft ones, and forward branch edges."""
    component_of: list[int]
    components: list[list[int]]
    """Largest sets of tasks that can each be reached from every other; most have one task."""
    order: list[int]
    """Places in an order in which forward edges point ahead; short where there is a cycle."""
    cycle: tuple[Edge, ...] = ()
    """A cycle of forward edges, or nothing."""
    both_jump: tuple[int, ...] = ()
    """Tasks whose on_success and on_failure both jump back."""
    no_exit: tuple[tuple[Edge, ...], ...] = ()
    """Loops that nothing can end, each as a path of edges."""
    finalizers: tuple[int, ...] = ()
    """Clean-up tasks, in the plan's order but after the finalizers that they depend on."""
    jumpers: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """For each component that is a loop: its tasks with a back edge."""
    counts: list[tuple[int, int, int, int]] = field(default_factory=list)
    """For each task: its place, and how many dependencies, soft ones and forward branch edges lead to it."""
    starts: list[int] = field(default_factory=list)
    """Tasks that have no dependency of either kind."""
    ranks: list[int] = field(default_factory=list)
    """Whose turn comes first among ready tasks: by priority, then by place. `rank % size` is the place."""
    locks: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The locks of the tasks that have any."""
    _reach: dict[int, frozenset[int]] = field(default_factory=dict)

    @staticmethod
    def of(plan: Plan, decisions: Sequence[bool] | None = None) -> Graph:
        """The shape of a plan. `decisions` tells which tasks nobody does, where a catalog of skills had a say in it."""
        return _Builder(plan, decisions).build()

    def is_target(self, place: int) -> bool:
        """Whether some forward branch edge leads to it; every other task is an entry task."""
        return bool(self.branch_sources[place])

    def in_loop(self, place: int) -> bool:
        """Whether it lies on a loop."""
        return self.component_of[place] in self.jumpers

    def reachable(self, place: int) -> frozenset[int]:
        """The task and all that can be reached from it by dependencies and forward edges."""
        found = self._reach.get(place)
        if found is None:
            found = self._reach[place] = frozenset(reach([place], self.successors))
        return found

    def edges(self) -> list[Edge]:
        """Every edge, task by task."""
        found: list[Edge] = []
        for place in range(len(self.ids)):
            kind: EdgeKind = "implied" if self.implied[place] else "dependency"
            found.extend(Edge(source, place, kind) for source in self.dependencies[place])
            found.extend(Edge(source, place, "soft") for source in self.soft[place])
            if (target := self.on_success[place]) != NONE:
                found.append(Edge(place, target, "on_success", self.success_back[place]))
            if (target := self.on_failure[place]) != NONE:
                found.append(Edge(place, target, "on_failure", self.failure_back[place]))
        return found


class _Builder:
    """Builds a Graph step by step; each step needs those before it."""

    def __init__(self, plan: Plan, decisions: Sequence[bool] | None) -> None:
        self.plan = plan
        self.decisions = list(decisions) if decisions is not None else [is_decision(task, plan) for task in plan.tasks]
        self.tasks = plan.tasks
        self.size = len(plan.tasks)
        self.points_ahead = True
        """Whether every edge leads further down the plan, as in most plans: then nothing can be reached from itself."""
        self.index: dict[str, int] = {}
        for place, task in enumerate(plan.tasks):
            self.index.setdefault(task.id, place)

    def build(self) -> Graph:
        index, size = self.index, self.size
        on_success = [index.get(task.on_success, NONE) if task.on_success else NONE for task in self.tasks]
        on_failure = [index.get(task.on_failure, NONE) if task.on_failure else NONE for task in self.tasks]
        dependencies = [self._places(task.dependencies) for task in self.tasks]
        implied = [False] * size
        if self.plan.flow == "sequential":
            self._imply(dependencies, implied, on_success, on_failure)
        graph = Graph(
            ids=tuple(task.id for task in self.tasks),
            index=index,
            dependencies=dependencies,
            implied=implied,
            soft=[self._places(task.soft_dependencies) for task in self.tasks],
            dependents=[[] for _ in range(size)],
            soft_dependents=[[] for _ in range(size)],
            on_success=on_success,
            on_failure=on_failure,
            success_back=[False] * size,
            failure_back=[False] * size,
            joins=[_join(task, place_implied) for task, place_implied in zip(self.tasks, implied, strict=True)],
            decisions=self.decisions,
            branch_sources=[[] for _ in range(size)],
            successors=[[] for _ in range(size)],
            component_of=[],
            components=[],
            order=[],
        )
        self._find_loops(graph)
        self._link(graph)
        self._prepare_runs(graph)
        if self.points_ahead:
            graph.order.extend(range(size))
        else:
            _find_order(graph)
        _find_no_exit(graph, self.tasks)
        if not graph.cycle:
            graph.finalizers = _finalizers(graph)
        return graph

    def _places(self, ids: list[str]) -> tuple[int, ...]:
        if not ids:
            return ()
        if len(ids) == 1:
            place = self.index.get(ids[0])
            return () if place is None else (place,)
        return tuple(dict.fromkeys(self.index[name] for name in ids if name in self.index))

    def _imply(
        self, dependencies: list[tuple[int, ...]], implied: list[bool], on_success: list[int], on_failure: list[int]
    ) -> None:
        """`flow: sequential`: a task without dependencies depends on what is listed before it."""
        led_to = [False] * self.size
        for edges in (on_success, on_failure):
            for source, target in enumerate(edges):
                if target > source:
                    led_to[target] = True
        nearest = NONE
        for place in range(self.size):
            if led_to[place]:
                continue
            if nearest != NONE and not dependencies[place]:
                dependencies[place] = tuple(range(nearest, place))
                implied[place] = True
            nearest = place

    def _find_loops(self, graph: Graph) -> None:
        follows = self._follows(graph)
        if self.points_ahead:
            graph.components = [[place] for place in range(self.size)]
            graph.component_of = list(range(self.size))
            return
        graph.components = components(follows)
        graph.component_of = [0] * self.size
        for number, members in enumerate(graph.components):
            for place in members:
                graph.component_of[place] = number
        jumpers: dict[int, list[int]] = {}
        for place in range(self.size):
            graph.success_back[place] = _jumps(graph, place, graph.on_success[place])
            graph.failure_back[place] = _jumps(graph, place, graph.on_failure[place])
            if graph.success_back[place] or graph.failure_back[place]:
                jumpers.setdefault(graph.component_of[place], []).append(place)
        graph.jumpers.update((loop, tuple(places)) for loop, places in jumpers.items())

    def _follows(self, graph: Graph) -> list[list[int]]:
        """Where every edge leads, jumps back included, task by task."""
        follows: list[list[int]] = [[] for _ in range(self.size)]
        for place in range(self.size):
            for source in (*graph.dependencies[place], *graph.soft[place]):
                follows[source].append(place)
                self.points_ahead &= source < place
            for target in (graph.on_success[place], graph.on_failure[place]):
                if target != NONE:
                    follows[place].append(target)
                    self.points_ahead &= place < target
        return follows

    def _link(self, graph: Graph) -> None:
        successors = graph.successors
        for place in range(self.size):
            for source in graph.dependencies[place]:
                graph.dependents[source].append(place)
                successors[source].append(place)
            for source in graph.soft[place]:
                graph.soft_dependents[source].append(place)
                successors[source].append(place)
            for target, back in (
                (graph.on_success[place], graph.success_back[place]),
                (graph.on_failure[place], graph.failure_back[place]),
            ):
                if target != NONE and not back:
                    graph.branch_sources[target].append(place)
                    successors[place].append(target)

    def _prepare_runs(self, graph: Graph) -> None:
        """What each run needs at its start, and is the same for all of them."""
        edges = zip(range(self.size), graph.dependencies, graph.soft, graph.branch_sources, strict=True)
        graph.counts = [(place, len(hard), len(soft), len(ways)) for place, hard, soft, ways in edges]
        graph.starts = [place for place, dependencies, soft, _ in graph.counts if not (dependencies or soft)]
        graph.ranks = [RANKS[task.priority] * self.size + place for place, task in enumerate(self.tasks)]
        graph.locks = {place: tuple(dict.fromkeys(task.locks)) for place, task in enumerate(self.tasks) if task.locks}


def is_decision(task: Task, plan: Plan) -> bool:
    """Whether nobody does the task: its verification is judged and that is all."""
    if task.subplan is not None or task.subgoal is not None or task.skill is not None or task.worker is not None:
        return False
    if task.type == "action" and plan.default_skill is not None:
        return False
    return task.verification is not None


def _join(task: Task, implied: bool) -> JoinRule:
    if task.join is not None:
        return task.join
    return "sequential" if implied else "all"


def _jumps(graph: Graph, place: int, target: int) -> bool:
    return target != NONE and target <= place and graph.component_of[place] == graph.component_of[target]


def _find_order(graph: Graph) -> None:
    """The topological order of the forward edges, as near to the plan's order as it goes; or a cycle among them."""
    size = len(graph.ids)
    waiting = [0] * size
    for targets in graph.successors:
        for target in targets:
            waiting[target] += 1
    free = [place for place in range(size) if not waiting[place]]
    heapify(free)
    while free:
        place = heappop(free)
        graph.order.append(place)
        for target in graph.successors[place]:
            waiting[target] -= 1
            if not waiting[target]:
                heappush(free, target)
    if len(graph.order) < size:
        left = {place for place in range(size) if waiting[place]}
        graph.cycle = _a_cycle([edge for edge in graph.edges() if not edge.back], left)


def _a_cycle(edges: list[Edge], within: set[int]) -> tuple[Edge, ...]:
    """A shortest-looking cycle among `edges` between places `within`, begun at its first place in the plan."""
    inside = [edge for edge in edges if edge.source in within and edge.target in within]
    follows: dict[int, list[Edge]] = {}
    for edge in inside:
        follows.setdefault(edge.source, []).append(edge)
    size = max(within) + 1
    groups = components([[edge.target for edge in follows.get(place, ())] for place in range(size)])
    for members in sorted(groups, key=min):
        start = min(members)
        loop = [edge for edge in follows.get(start, ()) if edge.target == start]
        if loop:
            return (loop[0],)
        if len(members) > 1:
            return tuple(path_between(start, start, follows, set(members)))
    return ()


def _find_no_exit(graph: Graph, tasks: list[Task]) -> None:
    """Loops that cannot end: both edges jump, or success alone goes round with no condition, handler or decision."""
    graph.both_jump = tuple(
        place for place in range(len(tasks)) if graph.success_back[place] and graph.failure_back[place]
    )
    if not any(graph.success_back):
        return

    def ends(edge: Edge) -> bool:
        task = tasks[edge.source]
        way_out = task.condition is not None or graph.on_failure[edge.source] != NONE or graph.decisions[edge.source]
        return edge.back and way_out

    edges = [edge for edge in graph.edges() if edge.kind != "on_failure" and not ends(edge)]
    follows: list[list[int]] = [[] for _ in tasks]
    for edge in edges:
        follows[edge.source].append(edge.target)
    found = []
    for members in components(follows):
        inside = set(members)
        if any(edge.back and edge.source in inside and edge.target in inside for edge in edges):
            found.append(_a_cycle(edges, inside))
    graph.no_exit = tuple(found)


def _finalizers(graph: Graph) -> tuple[int, ...]:
    """Tasks with `join: all_done` and dependencies, after which nothing but finalizers follows."""
    chosen: set[int] = set()
    if "all_done" not in graph.joins:
        return ()
    for place in reversed(graph.order):
        if graph.joins[place] != "all_done" or not graph.dependencies[place]:
            continue
        after = list(graph.dependents[place])
        if graph.on_success[place] != NONE and not graph.success_back[place]:
            after.append(graph.on_success[place])
        if all(target in chosen for target in after):
            chosen.add(place)
    return tuple(in_turn(graph, chosen))


def in_turn(graph: Graph, chosen: set[int]) -> list[int]:
    """The plan's order of the chosen tasks, but one comes after those among them that it depends on, directly or not.

    Tasks that are not chosen are passed through as if they took no time.
    """
    waits = [len(graph.dependencies[place]) + len(graph.soft[place]) for place in range(len(graph.ids))]
    passed = [place for place, count in enumerate(waits) if not count and place not in chosen]
    free = [place for place, count in enumerate(waits) if not count and place in chosen]
    heapify(free)
    turn: list[int] = []
    while passed or free:
        place = passed.pop() if passed else heappop(free)
        if place in chosen:
            turn.append(place)
        for follower in (*graph.dependents[place], *graph.soft_dependents[place]):
            waits[follower] -= 1
            if waits[follower]:
                continue
            if follower in chosen:
                heappush(free, follower)
            else:
                passed.append(follower)
    return turn
