"""Ids and references, cycles, and loops that cannot end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsm_agent.plan.findings import Finding, shown
from fsm_agent.plan.graph import Edge, Graph
from fsm_agent.plan.rules.subject import Subject
from fsm_agent.plan.walks import components, path_between

_ROUTES = {
    "soft": "by soft_dependencies",
    "on_success": "by on_success",
    "on_failure": "by on_failure",
    "implied": "implied by flow: sequential",
}

_MAX_STEPS = 40
"""A longer path is cut in the middle."""


def duplicate_ids(subject: Subject) -> Iterator[Finding]:
    """Two tasks have one id."""
    index = subject.graph.index
    if len(index) == len(subject.plan.tasks):
        return
    for place, task in enumerate(subject.plan.tasks):
        if index[task.id] != place:
            message = f"the id {shown(task.id)} is taken: the task at tasks[{index[task.id]}] has it"
            yield Finding("duplicate_id", ("tasks", place, "id"), message, hint="give one of the two another id")


def unknown_dependencies(subject: Subject) -> Iterator[Finding]:
    """A dependency names no task."""
    index = subject.graph.index
    for place, task in enumerate(subject.plan.tasks):
        for field, ids in (("dependencies", task.dependencies), ("soft_dependencies", task.soft_dependencies)):
            for number, name in enumerate(ids):
                if name not in index:
                    path = ("tasks", place, field, number)
                    yield Finding("unknown_dependency", path, _no_task(name), hint=_near(subject, name))


def unknown_targets(subject: Subject) -> Iterator[Finding]:
    """A branch leads to no task."""
    index = subject.graph.index
    for place, task in enumerate(subject.plan.tasks):
        for field, name in (("on_success", task.on_success), ("on_failure", task.on_failure)):
            if name is not None and name not in index:
                yield Finding("unknown_target", ("tasks", place, field), _no_task(name), hint=_near(subject, name))


def cycles(subject: Subject) -> Iterator[Finding]:
    """Tasks wait for each other: without its back edges a plan must be free of cycles."""
    graph = subject.graph
    if not graph.cycle:
        return
    follows: dict[int, list[Edge]] = {place: [] for place in range(len(graph.ids))}
    for edge in graph.edges():
        if not edge.back:
            follows[edge.source].append(edge)
    for members in components([[edge.target for edge in edges] for edges in follows.values()]):
        start = members[0]
        path = path_between(start, start, follows, set(members))
        if path:
            what = "this task waits for itself" if len(path) == 1 else "these tasks wait for each other"
            message = f"{what}: {_as_path(path, graph)}{_remarks(path, graph)}"
            yield Finding("cycle", _edge_field(path[-1]), message, hint="take one of these edges away")


def loops_without_exit(subject: Subject) -> Iterator[Finding]:
    """A loop that goes on whatever happens."""
    graph = subject.graph
    for place in graph.both_jump:
        message = "on_success and on_failure both jump back, so that the loop cannot end"
        yield Finding("no_exit_loop", ("tasks", place, "on_failure"), message, hint="let one of them lead on")
    for path in graph.no_exit:
        back = next((edge for edge in path if edge.back), path[-1])  # none in a shorter cycle within the loop
        message = f"this loop has no exit: {_as_path(path, graph)}{_remarks(path, graph)}"
        hint = f"give {shown(graph.ids[back.source])} a condition or an on_failure, or make it a decision"
        yield Finding("no_exit_loop", _edge_field(back), message, hint=hint)


def _no_task(name: str) -> str:
    return f"there is no task {shown(name)}"


def _near(subject: Subject, name: str) -> str:
    return subject.suggestions.hint(name, subject.graph.index, "task", otherwise="name a task of this plan")


def _as_path(path: Sequence[Edge], graph: Graph) -> str:
    steps = [graph.ids[path[0].source], *(graph.ids[edge.target] for edge in path)]
    if len(steps) > _MAX_STEPS:
        steps[_MAX_STEPS // 2 : -_MAX_STEPS // 2] = [f"… {len(steps) - _MAX_STEPS} more …"]
    return " -> ".join(steps)


def _remarks(path: Sequence[Edge], graph: Graph) -> str:
    """Which of the edges are no plain dependencies."""
    remarks = [
        f"{graph.ids[edge.source]} -> {graph.ids[edge.target]} {_ROUTES[edge.kind]}"
        for edge in path[:_MAX_STEPS]
        if edge.kind in _ROUTES
    ]
    return f" ({'; '.join(remarks)})" if remarks else ""


def _edge_field(edge: Edge) -> tuple[str | int, ...]:
    """Where an edge is written, as near as it can be told."""
    if edge.kind in ("on_success", "on_failure"):
        return ("tasks", edge.source, edge.kind)
    return ("tasks", edge.target, "soft_dependencies" if edge.kind == "soft" else "dependencies")
