"""The picture of a plan: its tasks and how they hang together, as the engine understands it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsm_agent.plan.catalog import ANY_SKILL, Catalog
from fsm_agent.plan.graph import Edge as PlanEdge
from fsm_agent.plan.graph import Graph
from fsm_agent.plan.model import Plan, Risk, Task
from fsm_agent.plan.ways_back import recovers_by_rollback
from fsm_agent.views.diagram.model import Caption, Cluster, Diagram, Edge, EdgeKind, Node, NodeKind, Tone
from fsm_agent.views.text import clip, one_line, wrap

_COLUMNS = 32
_ID_LINES = 8
_RISKS: tuple[Risk, ...] = ("low", "medium", "high")
_EDGES = {
    "dependency": EdgeKind.DEPENDENCY,
    "implied": EdgeKind.IMPLIED,
    "soft": EdgeKind.SOFT,
    "on_success": EdgeKind.SUCCESS,
    "on_failure": EdgeKind.FAILURE,
}
_TONES = {NodeKind.DECISION: Tone.WORK, NodeKind.FINALIZER: Tone.MUTED}
_CAPTIONS = {
    EdgeKind.SUCCESS: (Caption("success"),),
    EdgeKind.FAILURE: (Caption("failure"),),
}


def of_plan(plan: Plan, catalog: Catalog = ANY_SKILL, graph: Graph | None = None) -> Diagram:
    """The picture of a plan, problems and all: references to tasks that do not exist are noted at the task.

    The catalog tells the risk of skills; `graph` is the plan's, where it is known already.
    """
    shape = graph or Graph.of(plan)
    keys = _keys(shape)
    finalizers = frozenset(shape.finalizers)
    return Diagram(
        title=clip(one_line(plan.name or plan.goal or "Plan"), 80),
        nodes=tuple(
            _node(key, task, _kind(place, shape, finalizers), plan, catalog, shape)
            for place, (key, task) in enumerate(zip(keys, plan.tasks, strict=True))
        ),
        edges=(*(_edge(edge, keys) for edge in _edges_to_draw(shape)), *_rollbacks(plan, shape, keys)),
        clusters=_layers(plan, keys),
    )


def _keys(graph: Graph) -> Sequence[str]:
    """The ids; one that comes twice gets its place in the plan added (the engine refuses such a plan)."""
    if len(graph.index) == len(graph.ids):
        return graph.ids
    return [name if graph.index[name] == place else f"{name}\n{place}" for place, name in enumerate(graph.ids)]


def _kind(place: int, graph: Graph, finalizers: frozenset[int]) -> NodeKind:
    if place in finalizers:
        return NodeKind.FINALIZER
    return NodeKind.DECISION if graph.decisions[place] else NodeKind.TASK


def _edges_to_draw(graph: Graph) -> Iterator[PlanEdge]:
    """All edges but dependencies that say no more than the only branch into a task from the same place."""
    for edge in graph.edges():
        waits = edge.kind in ("dependency", "implied")
        if not (waits and graph.branch_sources[edge.target] == [edge.source]):
            yield edge


def _edge(edge: PlanEdge, keys: Sequence[str]) -> Edge:
    kind = _EDGES[edge.kind]
    return Edge(keys[edge.source], keys[edge.target], kind, _CAPTIONS.get(kind, ()), back=edge.back)


def _rollbacks(plan: Plan, graph: Graph, keys: Sequence[str]) -> Iterator[Edge]:
    """Where rollbacks to a task lead; one to a layer is noted at the task that goes back."""
    for place, task in enumerate(plan.tasks):
        target = graph.index.get(task.rollback_to) if task.rollback_to is not None else None
        if target is not None and recovers_by_rollback(task, plan):
            yield Edge(keys[place], keys[target], EdgeKind.ROLLBACK, (Caption("rollback"),), back=True)


def _layers(plan: Plan, keys: Sequence[str]) -> tuple[Cluster, ...]:
    members: dict[str, list[str]] = {}
    for key, task in zip(keys, plan.tasks, strict=True):
        if task.layer:
            members.setdefault(task.layer, []).append(key)
    return tuple(Cluster(clip(one_line(layer), 60), tuple(inside)) for layer, inside in members.items())


def _node(key: str, task: Task, kind: NodeKind, plan: Plan, catalog: Catalog, graph: Graph) -> Node:
    skill = _skill(task, plan, catalog)
    spec = catalog.skills.get(skill) if skill else None
    risk = max(task.risk_level or "low", spec.risk if spec else "low", key=_RISKS.index)
    notes = [*_words(task), *_rules(task, kind), *_undoing(task, plan, graph), *_marks(task, kind, risk)]
    tone = _TONES.get(kind, Tone.PLAIN)
    if risk == "high" or task.approval == "required":
        tone = Tone.CAUTION
    if missing := _missing(task, graph):
        notes.append(clip("no such task: " + one_line(", ".join(missing)), _COLUMNS))
        tone = Tone.BAD
    title = wrap(one_line(task.id), _COLUMNS, _ID_LINES)
    return Node(key, title, _doer(task, kind, skill), tuple(notes), kind, tone)


def _skill(task: Task, plan: Plan, catalog: Catalog) -> str | None:
    """The skill that does the task, as far as plan and catalog tell."""
    if task.subplan is not None or task.subgoal is not None or task.skill is not None:
        return task.skill
    if task.worker is not None:
        own = plan.workers.get(task.worker)
        return (own.skill if own else None) or catalog.workers.get(task.worker)
    return plan.default_skill or catalog.default_skill


def _words(task: Task) -> Sequence[str]:
    words = one_line(task.name or task.description or "")
    return wrap(words, _COLUMNS, 2) if words and words != task.id else ()


def _doer(task: Task, kind: NodeKind, skill: str | None) -> str:
    if kind is NodeKind.DECISION:
        who = ""
    elif task.subplan is not None:
        who = f"sub-plan {task.subplan}" if isinstance(task.subplan, str) else "sub-plan"
    elif task.subgoal is not None:
        who = f"sub-goal {task.subgoal}"
    else:
        who = ": ".join(name for name in (task.worker, skill) if name)
    return clip(one_line(who), _COLUMNS)


def _rules(task: Task, kind: NodeKind) -> Iterator[str]:
    if kind is NodeKind.DECISION and task.verification:
        # A diamond is twice as wide as its text.
        yield from wrap(one_line(task.verification), _COLUMNS * 2 // 3, 2)
    rules = (("if", task.condition), ("for each of", task.foreach), ("again while", task.repeat_while))
    for words, expression in rules:
        if expression is not None:
            yield from wrap(one_line(f"{words} {expression}"), _COLUMNS, 2)
    if task.join == "any" or (task.join == "all_done" and kind is not NodeKind.FINALIZER):
        yield f"join: {task.join}"


def _undoing(task: Task, plan: Plan, graph: Graph) -> Iterator[str]:
    if task.compensation is not None:
        yield clip(one_line(f"undone by {task.compensation.skill}"), _COLUMNS)
    if recovers_by_rollback(task, plan) and task.recovery is not None and task.rollback_to not in graph.index:
        yield clip(one_line(f"rolls back to {task.rollback_to or 'the start'}"), _COLUMNS)


def _marks(task: Task, kind: NodeKind, risk: Risk) -> Iterator[str]:
    marks = ["finalizer"] if kind is NodeKind.FINALIZER else []
    if task.priority != "medium":
        marks.append(f"{task.priority} priority")
    if risk != "low":
        marks.append(f"{risk} risk")
    if task.approval == "required":
        marks.append("approval")
    if marks:
        yield " · ".join(marks)


def _missing(task: Task, graph: Graph) -> list[str]:
    named = [*task.dependencies, *task.soft_dependencies, task.on_success, task.on_failure]
    return [name for name in named if name and name not in graph.index]
