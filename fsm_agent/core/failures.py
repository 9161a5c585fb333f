"""What a failure means for the run: handled by an edge, skipped, asked about, or the end. And who cleans up then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fsm_agent.core.events import TaskError, VisitRefused
from fsm_agent.core.schedule import Schedule
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.plan.graph import NONE, in_turn
from fsm_agent.plan.model import Recovery
from fsm_agent.plan.walks import reach


@dataclass(frozen=True, slots=True)
class Ending:
    """Why the run is ending: an unhandled failure (`abort`) or a passed limit."""

    kind: Literal["abort", "limit"]
    error_kind: str
    task: str | None
    message: str
    setting: str | None = None
    count: int | float | None = None


def limit_error(event: VisitRefused) -> TaskError:
    """What a task shows whose visit was refused."""
    what = "visit" if event.setting == "max_visits" else "task run"
    message = f"task {event.task!r} was due for {what} {event.count + 1}; {event.setting} allows {event.count}"
    return TaskError("limit", message)


class Failures:
    """The rules of recovery over one run's schedule."""

    __slots__ = ("_compiled", "_graph", "_needed_by_high", "_schedule")

    def __init__(self, compiled: CompiledPlan, schedule: Schedule) -> None:
        self._compiled = compiled
        self._graph = compiled.graph
        self._schedule = schedule
        self._needed_by_high: set[int] | None = None

    def jump_target(self, place: int) -> int | None:
        """Where the failed task's `on_failure` jumps back to; None if not, or its visits are used up."""
        target = self._back_target(place)
        if target is None:
            return None
        used_up = self._schedule.nodes[target].visits >= self._compiled.tasks[target].task.max_visits
        return None if used_up else target

    def error_of(self, place: int) -> TaskError:
        """The failure of a task, and where a jump back was not taken because its target is used up, that as well."""
        node, graph = self._schedule.nodes[place], self._graph
        error = node.error or TaskError("verification", "the decision is false, and no branch is there for that")
        target = self._back_target(place)
        if target is None:
            return error
        used, most = self._schedule.nodes[target].visits, self._compiled.tasks[target].task.max_visits
        return error.with_words(
            f"it does not jump back to {graph.ids[target]!r}, which has had {used} visits (max_visits: {most})"
        )

    def is_handled(self, place: int) -> bool:
        """Whether an edge of the plan takes the failure up (jumps aside)."""
        if self._erred_decision(place):
            return False
        if self._graph.on_failure[place] != NONE:
            return not self._graph.failure_back[place]
        return self._schedule.nodes[place].false_decision and self._graph.on_success[place] != NONE

    def recovery(self, place: int) -> Recovery:
        """What the plan says about a failure that no edge takes up."""
        task = self._compiled.tasks[place].task
        if task.recovery is not None:
            return task.recovery
        default = self._compiled.plan.recovery
        if default == "by_priority":
            droppable = task.priority == "medium" and place not in self._high_needs()
            return "skip" if task.priority == "low" or droppable else "abort"
        if default is not None:
            return default
        return "skip" if task.priority == "low" else "abort"

    def unhandled(self) -> int | None:
        """With all settled: the first failed task whose failure nothing took up in the end."""
        for node in self._schedule.nodes:
            if node.status == "FAILED" and not node.false_decision:
                target = self._graph.on_failure[node.place]
                if target == NONE or self._schedule.nodes[target].reason in ("not_taken", "upstream_failed"):
                    return node.place
        return None

    def finalizers(self) -> tuple[list[int], list[str]]:
        """When a run is ending: the finalizers that still run, in turn, and the ids of those that cannot."""
        graph, nodes = self._graph, self._schedule.nodes
        if not graph.finalizers:
            return [], []
        follows = [self._forward(node.place) for node in nodes]
        below = reach((after for node in nodes if node.visits for after in follows[node.place]), follows)
        chosen: set[int] = set()
        cannot: list[str] = []
        for place in graph.finalizers:
            if nodes[place].status != "PENDING" or place not in below or not self._counts_as_active(place):
                continue
            compiled = self._compiled.tasks[place]
            if compiled.needs_approval or nodes[place].visits >= compiled.task.max_visits:
                cannot.append(graph.ids[place])
            else:
                chosen.add(place)
        return in_turn(graph, chosen), cannot

    def _counts_as_active(self, place: int) -> bool:
        sources = self._graph.branch_sources[place]
        return self._schedule.is_active(place) or all(source in self._graph.finalizers for source in sources)

    def _forward(self, place: int) -> list[int]:
        """Along dependencies and forward branch edges, soft ones left out."""
        graph = self._graph
        after = list(graph.dependents[place])
        for target, back in (
            (graph.on_success[place], graph.success_back[place]),
            (graph.on_failure[place], graph.failure_back[place]),
        ):
            if target != NONE and not back:
                after.append(target)
        return after

    def _back_target(self, place: int) -> int | None:
        """Where the back edge of the task's failure leads, if it has one and the failure takes branches at all."""
        if not self._graph.failure_back[place] or self._erred_decision(place):
            return None
        return self._graph.on_failure[place]

    def _erred_decision(self, place: int) -> bool:
        return self._graph.decisions[place] and self._schedule.nodes[place].error is not None

    def _high_needs(self) -> set[int]:
        """Tasks that a high-priority task depends on, directly or not."""
        if self._needed_by_high is None:
            graph = self._graph
            high = [place for place, task in enumerate(self._compiled.tasks) if task.task.priority == "high"]
            self._needed_by_high = reach((d for place in high for d in graph.dependencies[place]), graph.dependencies)
        return self._needed_by_high
