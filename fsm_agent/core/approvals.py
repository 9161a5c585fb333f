"""What waits for a person, and what people decided."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fsm_agent.core.events import ApprovalAsked, ApprovalDecided, ApprovalKind, PlanRejected, TaskError, Verdict
from fsm_agent.errors import DecisionRefused
from fsm_agent.jsonable import encode

ALLOWED: dict[ApprovalKind, tuple[Verdict, ...]] = {
    "task": ("approved", "rejected", "expired", "skip"),
    "plan": ("approved", "rejected"),
    "failed": ("rerun", "done", "skip", "fail"),
    "interrupted": ("rerun", "done", "skip", "fail"),
    "compensation": ("rerun", "done"),
}
"""What may be decided about each kind of question."""

_WORDS = {"approved": "approve", "rejected": "reject"}
"""How people say it."""


def digest_of(parameters: Any) -> str:
    """A short stable digest of rendered parameters."""
    return hashlib.sha256(encode(parameters)).hexdigest()[:16]


def approval_id(run_id: str, task: str | None, visit: int, item: int | None, digest: str) -> str:
    """The id of one approval: it changes whenever what is approved does."""
    return hashlib.sha256(encode([run_id, task, visit, item, digest])).hexdigest()[:12]


def has_expired(asked: ApprovalAsked, at: float) -> bool:
    """Whether a decision made at this time of day comes too late."""
    return asked.expires_at is not None and at > asked.expires_at


def decision_on(
    asked: ApprovalAsked, verdict: Verdict, *, by: str | None = None, why: str | None = None, result: Any = None
) -> ApprovalDecided:
    """The record of a decision. `result` is plain data."""
    return ApprovalDecided(
        approval=asked.approval,
        decision=verdict,
        task=asked.task,
        visit=asked.visit,
        by=by,
        why=why,
        result=result,
    )


def refusal(event: ApprovalDecided) -> TaskError:
    """What a task shows that nobody agreed to."""
    late = event.decision == "expired"
    message = "nobody decided in time" if late else f"rejected by {event.by or 'someone'}"
    return TaskError(event.decision, message)


def refused_plan(event: ApprovalDecided) -> PlanRejected:
    """A person's no to a plan, in the words of any plan that is rejected."""
    message = f"the plan was rejected by {event.by or 'someone'}"
    return PlanRejected(message=message, seq=event.seq, at=event.at, run_id=event.run_id)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def decided_already(name: str, decision: str, by: str | None, at: float) -> DecisionRefused:
    """The answer to a second decision: who made the first one, and when, in seconds since 1970."""
    return DecisionRefused(
        f"{name} was decided already: {decision} by {by or 'someone'} at {_moment(at)}",
        hint="the first decision is final",
    )


@dataclass(slots=True)
class Approvals:
    """The open and the decided approvals of one run."""

    open: dict[str, ApprovalAsked] = field(default_factory=dict)
    decided: dict[str, ApprovalDecided] = field(default_factory=dict)
    handed_on: dict[str, None] = field(default_factory=dict)
    """Open ones that the approver callable left to a person."""

    def ask(self, event: ApprovalAsked) -> None:
        """A question was put."""
        self.open[event.approval] = event
        self.handed_on.pop(event.approval, None)

    def decide(self, event: ApprovalDecided) -> ApprovalAsked:
        """A question was answered; returns the question."""
        asked = self.open.pop(event.approval)
        self.handed_on.pop(event.approval, None)
        self.decided[event.approval] = event
        return asked

    def withdraw(self, tasks: set[str]) -> None:
        """What was asked about these tasks is no longer wanted."""
        for key in [key for key, asked in self.open.items() if asked.task in tasks]:
            del self.open[key]
            self.handed_on.pop(key, None)

    def withdraw_all(self) -> list[str]:
        """Nothing is wanted any more. Returns the tasks that waited (not those whose undoing did)."""
        waited = (asked for asked in self.open.values() if asked.kind != "compensation")
        tasks = [asked.task for asked in waited if asked.task is not None]
        self.open.clear()
        self.handed_on.clear()
        return tasks

    @property
    def with_approver(self) -> bool:
        """Whether a callable in this process is being asked at the moment."""
        return any(asked.approver and key not in self.handed_on for key, asked in self.open.items())

    @property
    def with_person(self) -> bool:
        """Whether a question is open that nobody in this process answers."""
        return any(not asked.approver or key in self.handed_on for key, asked in self.open.items())

    def find(self, which: str | None, decision: Verdict) -> ApprovalAsked:
        """The open approval that a decision is for, by its id or by its task's. None is the plan, and nothing else.

        Raises DecisionRefused if there is none, several, it was decided already, or it cannot be decided like this.
        """
        asked = self.open.get(which) if which is not None else None
        if asked is None:
            asked = self._about(which)
        if decision not in ALLOWED[asked.kind]:
            allowed = ", ".join(_WORDS.get(word, word) for word in ALLOWED[asked.kind] if word != "expired")
            raise DecisionRefused(
                f"{decision!r} cannot be decided about {asked.task or 'the plan'!r}, which waits as {asked.kind!r}",
                hint=f"one of: {allowed}",
            )
        return asked

    def _about(self, task: str | None) -> ApprovalAsked:
        found = [asked for asked in self.open.values() if asked.task == task]
        if len(found) == 1:
            return found[0]
        name = "the plan" if task is None else repr(task)
        if found:
            ids = ", ".join(asked.approval for asked in found)
            raise DecisionRefused(f"{len(found)} approvals wait for {name}", hint=f"name one of them: {ids}")
        before = self.decided.get(task or "") or next(
            (d for d in reversed(self.decided.values()) if d.task == task), None
        )
        if before is not None:
            raise decided_already(name, before.decision, before.by, before.at)
        raise DecisionRefused(f"nothing waits for a decision about {name}", hint=self._hint())

    def _hint(self) -> str:
        waiting = dict.fromkeys("the plan" if asked.task is None else repr(asked.task) for asked in self.open.values())
        return f"what waits: {', '.join(waiting)}" if waiting else ""
