"""What a finished visit counts for: conflicts of its writes, and the events that record the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from fsm_agent.core.events import Compensated, ContextChanged, Event, TaskError, TaskEvaluated, VisitDiscarded
from fsm_agent.core.run import Run


class Outcome(msgspec.Struct):
    """What a visit came to, before it is judged. No `error` means success."""

    place: int
    visit: int
    attempts: int = 0
    retried: int = 0
    data: Any = None
    error: TaskError | None = None
    writes: Mapping[str, Any] = {}
    fallback_used: bool = False
    verified: bool | None = None


def judge(run: Run, outcome: Outcome) -> list[Event]:
    """The events that record a visit's outcome, in their order."""
    if run.going_back is not None and run.going_back.calling == outcome.place:
        return [judge_compensation(run, outcome)]
    task = run.compiled.graph.ids[outcome.place]
    failed_as = None if outcome.fallback_used else outcome.error
    if run.schedule.nodes[outcome.place].status != "RUNNING":
        return [_discarded(task, outcome, "FAILED" if failed_as else "SUCCEEDED")]
    if failed_as is None and outcome.writes:
        failed_as = _broken_write(run, outcome)
        if failed_as is not None:
            outcome.fallback_used = False
    evaluated = TaskEvaluated(
        task=task,
        visit=outcome.visit,
        status="FAILED" if failed_as else "SUCCEEDED",
        attempts=outcome.attempts,
        retried=outcome.retried,
        data=outcome.data,
        error=failed_as or outcome.error,
        fallback_used=outcome.fallback_used,
        verified=outcome.verified,
    )
    if failed_as is None and outcome.writes:
        return [ContextChanged(task=task, visit=outcome.visit, changes=dict(outcome.writes)), evaluated]
    return [evaluated]


def judge_compensation(run: Run, outcome: Outcome) -> Compensated:
    """The event that records what a compensation came to."""
    failed_as = None if outcome.fallback_used else outcome.error
    if failed_as is None and (broken := run.context.unmergeable(outcome.writes)):
        failed_as = TaskError("write_conflict", broken, attempt=outcome.attempts)
    return Compensated(
        task=run.compiled.graph.ids[outcome.place],
        visit=outcome.visit,
        status="FAILED" if failed_as else "SUCCEEDED",
        attempts=outcome.attempts,
        retried=outcome.retried,
        data=outcome.data,
        error=failed_as or outcome.error,
        changes={} if failed_as else dict(outcome.writes),
    )


def _broken_write(run: Run, outcome: Outcome) -> TaskError | None:
    conflict = run.context.conflict(outcome.place, outcome.writes)
    if conflict is not None:
        key, other = conflict
        ids = run.compiled.graph.ids
        message = (
            f"tasks {ids[other]!r} and {ids[outcome.place]!r} ran at once and wrote different values to context key "
            f"{key!r}: make one depend on the other, or give the key a merge rule"
        )
        return TaskError("write_conflict", message, attempt=outcome.attempts)
    broken = run.context.unmergeable(outcome.writes)
    return TaskError("write_conflict", broken, attempt=outcome.attempts) if broken else None


def _discarded(task: str, outcome: Outcome, status: Literal["SUCCEEDED", "FAILED"]) -> VisitDiscarded:
    return VisitDiscarded(
        task=task,
        visit=outcome.visit,
        status=status,
        attempts=outcome.attempts,
        retried=outcome.retried,
        data=outcome.data,
        error=outcome.error,
    )
