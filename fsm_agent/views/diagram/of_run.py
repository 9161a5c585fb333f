"""The picture of a run: its plan, with what became of each task, and the branches that were not taken in pale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from fsm_agent.core.result import RunResult, TaskResult
from fsm_agent.plan.catalog import ANY_SKILL, Catalog
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.views.diagram.model import Diagram, Edge, EdgeKind, Node, Tone
from fsm_agent.views.diagram.of_plan import of_plan
from fsm_agent.views.text import clip, one_line

TONES: Final[Mapping[str, Tone]] = {
    "SUCCEEDED": Tone.GOOD,
    "FAILED": Tone.BAD,
    "RUNNING": Tone.WORK,
    "WAITING_APPROVAL": Tone.CAUTION,
    "SKIPPED": Tone.MUTED,
}
"""What a task's colour tells; others have not been reached."""

_COLUMNS: Final = 32
_CLOSED: Final[Mapping[EdgeKind, frozenset[str]]] = {
    EdgeKind.SUCCESS: frozenset({"FAILED", "SKIPPED"}),
    EdgeKind.FAILURE: frozenset({"SUCCEEDED", "SKIPPED"}),
}
"""Branches that are not taken, by what their task came to."""


def of_run(compiled: CompiledPlan, result: RunResult, catalog: Catalog = ANY_SKILL) -> Diagram:
    """The picture of a run as it stands. The result holds the tasks of this plan."""
    bare = of_plan(compiled.plan, catalog, compiled.graph)
    title = f"{bare.title} — {result.phase}, run {result.run_id}"
    return replace(
        bare,
        title=clip(one_line(title), 120),
        nodes=tuple(_told(node, result.tasks.get(node.key)) for node in bare.nodes),
        edges=tuple(_faded(edge, result.tasks.get(edge.source)) for edge in bare.edges),
    )


def _told(node: Node, task: TaskResult | None) -> Node:
    if task is None:
        return node
    return replace(
        node, notes=(clip(" · ".join(_news(task)), _COLUMNS), *node.notes), tone=TONES.get(task.status, Tone.PLAIN)
    )


def _news(task: TaskResult) -> Iterator[str]:
    yield task.status.lower().replace("_", " ")
    if task.reason is not None:
        yield task.reason.replace("_", " ")
    elif task.error is not None:
        yield str(task.error["kind"])
    if task.visits > 1:
        yield f"{task.visits} visits"
    if task.attempts > task.visits:
        yield f"{task.attempts} attempts"
    if task.fallback_used:
        yield "fallback"


def _faded(edge: Edge, source: TaskResult | None) -> Edge:
    """A jump back may have been taken on an earlier visit: it is never pale."""
    if source is None or edge.back or source.status not in _CLOSED.get(edge.kind, ()):
        return edge
    return replace(edge, faded=True)
