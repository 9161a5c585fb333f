"""Up a plan's forward edges: what lies before a task."""

from __future__ import annotations

from fsm_agent.plan.graph import Graph


def above(graph: Graph, place: int, *, soft: bool = True) -> set[int]:
    """The task and all from which it can be reached, by dependencies and forward branch edges (`soft` ones too)."""
    found = {place}
    todo = [place]
    while todo:
        here = todo.pop()
        for before in (*graph.dependencies[here], *graph.branch_sources[here], *(graph.soft[here] if soft else ())):
            if before not in found:
                found.add(before)
                todo.append(before)
    return found
