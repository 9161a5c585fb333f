"""One task within one run: its status, its counters, and what its last visit came to."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, Literal

import msgspec

from fsm_agent.core.events import TaskError

Status = Literal["PENDING", "READY", "RUNNING", "WAITING_APPROVAL", "SUCCEEDED", "FAILED", "SKIPPED"]
SkipReason = Literal["condition", "optional", "person", "not_taken", "upstream_failed"]

SETTLED: Final = frozenset({"SUCCEEDED", "FAILED", "SKIPPED"})
PASSES: Final = frozenset({"condition", "optional", "person"})
"""Reasons of a skip with which the flow goes on."""


class EdgeState(IntEnum):
    """What has become of a branch edge."""

    UNDECIDED = 0
    FIRED = 1
    DEAD = 2


class Node(msgspec.Struct, gc=False):
    """The state of one task in one run. The first block is the schedule's, the second is what people ask for."""

    place: int
    pending: int
    """Dependencies that are not settled; of those that are, how many were good, bad, or not taken:"""
    soft_pending: int
    live_in: int
    """Forward branch edges into it that are not dead."""
    status: Status = "PENDING"
    reason: SkipReason | None = None
    success_edge: EdgeState = EdgeState.UNDECIDED
    failure_edge: EdgeState = EdgeState.UNDECIDED
    forced: bool = False
    """A back edge jumped here: the task is active whatever its own edges say."""
    fired_in: int = 0
    """Forward branch edges into it that have fired."""
    succeeded: int = 0
    passed: int = 0
    bad: int = 0
    not_taken: int = 0

    visits: int = 0
    attempts: int = 0
    retried: int = 0
    data: Any = None
    error: TaskError | None = None
    fallback_used: bool = False
    verified: bool | None = None
    false_decision: bool = False

    @property
    def settled(self) -> bool:
        """SUCCEEDED, FAILED or SKIPPED."""
        return self.status in SETTLED

    @property
    def is_pass(self) -> bool:
        """SKIPPED for a reason with which the flow goes on."""
        return self.reason in PASSES

    @property
    def goes_on(self) -> bool:
        """SUCCEEDED, or a pass."""
        return self.status == "SUCCEEDED" or self.reason in PASSES

    def forget(self) -> None:
        """Back to PENDING, as if it had not run. What its last visit came to stays on record, with its counters."""
        self.status = "PENDING"
        self.reason = None
        self.success_edge = EdgeState.UNDECIDED
        self.failure_edge = EdgeState.UNDECIDED
        self.forced = False
        self.false_decision = False

    def result(self) -> dict[str, Any]:
        """What expressions and later tasks see of it: of a task that is reset, as if it had not run."""
        ran = self.status in ("SUCCEEDED", "FAILED")
        told = ran or self.reason == "optional"
        return {
            "status": self.status,
            "success": self.status == "SUCCEEDED",
            "data": self.data if ran else None,
            "error": self.error.to_json() if self.error and told else None,
            "fallback_used": ran and self.fallback_used,
            "verified": self.verified if ran else None,
        }
