"""What came of a run: its outcome, its reason, and every task's last state, as people and programs read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fsm_agent.core.rollback import reports
from fsm_agent.jsonable import copy_plain

if TYPE_CHECKING:
    from fsm_agent.core.events import ApprovalAsked
    from fsm_agent.core.run import Run

_NOT_IN_JSON = ("not_run_finalizers", "rollbacks")
"""Finalizers that were not run are named in the reason's message; rollbacks are there where there were any."""

FORMAT = 1
"""The version of the JSON documents."""


class TaskResult(msgspec.Struct, frozen=True, gc=False):
    """One task at the end (or so far). `attempts` counts all visits; `data` and `error` are the last visit's."""

    status: str
    reason: str | None
    visits: int
    attempts: int
    data: Any
    error: dict[str, Any] | None
    fallback_used: bool
    verified: bool | None

    def to_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class RunVerdict(msgspec.Struct, frozen=True):
    """How a run ended: its outcome in one word, and why it did not complete."""

    outcome: str
    reason: dict[str, Any] | None


class RunResult(msgspec.Struct, frozen=True):
    """What came of a run.

    `outcome` is one of clean, handled_failures, failed, paused, cancelled. `reason` says why a run failed or was
    cancelled: kind, task, message (and setting and count for a limit). `trace` holds the evaluated visits in order,
    as (task, ok | fail | skip). `resumable` says whether another process can go on with it. `coverage` and
    `invalid_actions` are shares from 0 to 1. `elapsed_s` is in seconds.
    """

    run_id: str
    phase: str
    outcome: str
    reason: dict[str, Any] | None
    goal: str | None
    plan_version: int
    output: Any
    context: dict[str, Any]
    tasks: dict[str, TaskResult]
    trace: list[tuple[str, str]]
    waiting: list[dict[str, Any]]
    criteria: list[dict[str, Any]]
    approvals: list[dict[str, Any]]
    resumable: bool
    labels: dict[str, str]
    coverage: float
    invalid_actions: float
    elapsed_s: float
    rollbacks: list[dict[str, Any]] = []
    """What was rolled back: the task that failed, where to, what was compensated, and which writes were undone."""
    not_run_finalizers: list[str] = []
    """Clean-up tasks that were left out: they need approval, or their visits are used up."""

    @property
    def completed(self) -> bool:
        """Whether the run reached its end with all criteria met."""
        return self.phase == "completed"

    def to_json(self) -> dict[str, Any]:
        """The document that the command line prints."""
        document: dict[str, Any] = {"format": FORMAT}
        document.update({name: getattr(self, name) for name in self.__struct_fields__ if name not in _NOT_IN_JSON})
        document["tasks"] = {task: result.to_json() for task, result in self.tasks.items()}
        document["trace"] = [list(entry) for entry in self.trace]
        if self.rollbacks:
            document["rollbacks"] = self.rollbacks
        return document


def result_of(run: Run, *, resumable: bool = False, elapsed: float = 0.0) -> RunResult:
    """The result of a run in its present state. `elapsed` is in seconds."""
    verdict = verdict_of(run)
    has_plan = run.plan_version > 0
    return RunResult(
        run_id=run.run_id,
        phase=run.phase,
        outcome=verdict.outcome,
        reason=verdict.reason,
        goal=run.goal,
        plan_version=run.plan_version,
        output=run.judged.output if run.judged else None,
        context=_own(run, run.context.values) if has_plan else {},
        tasks=_tasks(run) if has_plan else {},
        trace=list(run.trace),
        waiting=_waiting(run),
        criteria=_criteria(run) if has_plan else [],
        approvals=_approvals(run),
        resumable=resumable and not run.final,
        labels=dict(run.started.labels) if run.started else {},
        coverage=_coverage(run) if has_plan else 1.0,
        invalid_actions=_invalid_actions(run) if has_plan else 0.0,
        elapsed_s=elapsed,
        rollbacks=reports(run),
        not_run_finalizers=list(run.unrun_finalizers),
    )


def _own(run: Run, data: Any) -> Any:
    """Data for a result: a run that goes on keeps its own."""
    return data if run.final else copy_plain(data)


def verdict_of(run: Run) -> RunVerdict:
    """The outcome and the reason of a run in its present state."""
    if run.phase == "completed":
        return RunVerdict("handled_failures" if _had_trouble(run) else "clean", None)
    if run.phase == "cancelled":
        return RunVerdict("cancelled", _with_left_out(run, _reason("cancelled", None, _cancelled(run))))
    if run.phase == "failed":
        return RunVerdict("failed", _with_left_out(run, _failure(run)))
    return RunVerdict("paused", None)


def _cancelled(run: Run) -> str:
    asked = run.cancelled
    by = f" by {asked.by}" if asked is not None and asked.by else ""
    why = f": {asked.why}" if asked is not None and asked.why else ""
    return f"the run was cancelled{by}{why}"


def _with_left_out(run: Run, reason: dict[str, Any]) -> dict[str, Any]:
    if run.unrun_finalizers:
        names = ", ".join(run.unrun_finalizers)
        reason["message"] += f" (clean-up not run, for want of approval or visits: {names})"
    return reason


def _failure(run: Run) -> dict[str, Any]:
    if run.rejection is not None:
        kind = "rejected" if run.plan_version else "planning"
        return _reason(kind, None, run.rejection.message)
    if run.ending is not None:
        reason = _reason(run.ending.error_kind, run.ending.task, run.ending.message)
        if run.ending.kind == "limit":
            reason.update(setting=run.ending.setting, count=run.ending.count)
        return reason
    if run.all_settled:
        return _failure_at_end(run)
    stuck = [run.compiled.graph.ids[node.place] for node in run.schedule.nodes if not node.settled]
    return _reason("stalled", stuck[0] if stuck else None, f"no task can go on: {', '.join(stuck[:20])}")


def _failure_at_end(run: Run) -> dict[str, Any]:
    place = run.failures.unhandled()
    if place is not None:
        node, task = run.schedule.nodes[place], run.compiled.graph.ids[place]
        kind = node.error.kind if node.error else "verification"
        message = node.error.message if node.error else "the decision is false"
        return _reason(kind, task, f"{message} (its handler was not run)")
    judged = run.judged
    verdicts = judged.verdicts if judged else ()
    if judged is not None and judged.error is not None and "not_met" not in verdicts:
        return _reason(judged.error.kind, None, judged.error.message)
    failed = next((place for place, verdict in enumerate(verdicts) if verdict == "not_met"), 0)
    criterion = run.compiled.criteria[failed]
    check = criterion.check.text if criterion.check else None
    return _reason("criterion", None, f"completion criterion not met: {criterion.text or check}")


def _reason(kind: str, task: str | None, message: str) -> dict[str, Any]:
    return {"kind": kind, "task": task, "message": message}


def _had_trouble(run: Run) -> bool:
    return any(
        (node.status == "FAILED" and not node.false_decision)
        or node.reason == "optional"
        or (node.status == "SUCCEEDED" and (node.fallback_used or node.verified is False))
        for node in run.schedule.nodes
    )


def _tasks(run: Run) -> dict[str, TaskResult]:
    results = {}
    for node, task in zip(run.schedule.nodes, run.compiled.graph.ids, strict=True):
        results[task] = TaskResult(
            status="PENDING" if node.status == "READY" and run.final else node.status,
            reason=node.reason,
            visits=node.visits,
            attempts=node.attempts,
            data=_own(run, node.data),
            error=node.error.to_json() if node.error else None,
            fallback_used=node.fallback_used,
            verified=node.verified,
        )
    return results


def _waiting(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "approval": asked.approval,
            "kind": asked.kind,
            "task": asked.task,
            "visit": asked.visit,
            "item": asked.item,
            "risk": asked.risk,
            "parameters": _own(run, _asked_about(run, asked)),
            "expires_at": asked.expires_at,
        }
        for asked in run.approvals.open.values()
    ]


def _asked_about(run: Run, asked: ApprovalAsked) -> dict[str, Any] | None:
    """The parameters of a call that a person is asked about; the plan's own, where no record was needed of them."""
    if asked.parameters is None and asked.kind == "interrupted" and asked.task is not None:
        return run.task(run.compiled.graph.index[asked.task]).task.parameters
    return asked.parameters


def _approvals(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "approval": decided.approval,
            "task": decided.task,
            "visit": decided.visit,
            "decision": decided.decision,
            "by": decided.by,
            "why": decided.why,
            "at": decided.at,
        }
        for decided in run.approvals.decided.values()
    ]


def _criteria(run: Run) -> list[dict[str, Any]]:
    verdicts = run.judged.verdicts if run.judged else ()
    return [
        {
            "text": criterion.text,
            "check": criterion.check.text if criterion.check else None,
            "verdict": verdicts[place] if place < len(verdicts) else "not_judged",
        }
        for place, criterion in enumerate(run.compiled.criteria)
    ]


def _coverage(run: Run) -> float:
    """Tasks SUCCEEDED, and verified where they have a verification, of those that were not `not_taken`."""
    counted = [node for node in run.schedule.nodes if node.reason != "not_taken"]
    if not counted:
        return 1.0
    good = sum(node.status == "SUCCEEDED" and node.verified is not False for node in counted)
    return good / len(counted)


def _invalid_actions(run: Run) -> float:
    """Calls that were retried or discarded, of all calls."""
    calls = sum(node.attempts for node in run.schedule.nodes)
    if not calls:
        return 0.0
    retried = sum(node.retried for node in run.schedule.nodes)
    return (retried + run.discarded_calls) / calls
