"""The first part of every turn, whoever performs the task: its condition, its limits, and decisions."""

from __future__ import annotations

from fsm_agent.core.events import Event, TaskError, TaskEvaluated, TaskSkipped, VisitRefused
from fsm_agent.core.names import names_of
from fsm_agent.core.run import Run
from fsm_agent.errors import ConditionError
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.plan.expressions import Evaluator, Expression


def open_turn(run: Run, place: int, evaluator: Evaluator) -> Event | None:
    """What ends the turn at once: a false condition, a used-up limit, an error in the condition. None: go on."""
    task = run.task(place)
    failed: TaskError | None = None
    if task.condition is not None and run.approved(place) is None:
        try:
            if not _test(run, task.condition, evaluator):
                return TaskSkipped(task=task.task.id)
        except ConditionError as error:
            failed = TaskError("condition", f"condition: {error.message}", type(error).__name__)
    refused = _refused(run, place, task)
    if refused is not None:
        return refused
    return evaluated_at_turn(run, place, failed) if failed is not None else None


def decide_at_turn(run: Run, place: int, expression: Expression, evaluator: Evaluator) -> TaskEvaluated:
    """A decision: its verification is judged, and that is all."""
    try:
        return evaluated_at_turn(run, place, None, holds=_test(run, expression, evaluator))
    except ConditionError as error:
        return evaluated_at_turn(
            run, place, TaskError("condition", f"verification: {error.message}", type(error).__name__)
        )


def evaluated_at_turn(run: Run, place: int, error: TaskError | None, *, holds: bool = False) -> TaskEvaluated:
    """A visit that ends at its turn, without a call."""
    visit = run.schedule.nodes[place].visits + 1
    task = run.compiled.graph.ids[place]
    return TaskEvaluated(task=task, visit=visit, status="SUCCEEDED" if holds else "FAILED", error=error)


def _test(run: Run, expression: Expression, evaluator: Evaluator) -> bool:
    return expression.test(names_of(run, expression), evaluator)


def _refused(run: Run, place: int, task: CompiledTask) -> VisitRefused | None:
    """The visit that would be one too many. Finalizers do not count for the run's limit."""
    if run.schedule.nodes[place].visits >= task.task.max_visits:
        return VisitRefused(task=task.task.id, setting="max_visits", count=task.task.max_visits)
    if run.total_visits >= run.max_task_runs and not run.is_ending:
        return VisitRefused(task=task.task.id, setting="limits.max_task_runs", count=run.max_task_runs)
    return None
