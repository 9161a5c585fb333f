"""One task within one run: its status, its counters, and what its last visit came to."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, Literal

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


class Node:
    """The state of one task in one run. The first block is the schedule's, the second is what people ask for."""

    __slots__ = (
        "attempts",
        "bad",
        "data",
        "error",
        "failure_edge",
        "fallback_used",
        "false_decision",
        "fired_in",
        "forced",
        "live_in",
        "not_taken",
        "passed",
        "pending",
        "place",
        "reason",
        "retried",
        "soft_pending",
        "status",
        "succeeded",
        "success_edge",
        "verified",
        "visits",
    )

    def __init__(self, place: int, dependencies: int, soft: int, branch_edges: int) -> None:
        self.place = place
        self.status: Status = "PENDING"
        self.reason: SkipReason | None = None
        self.success_edge = EdgeState.UNDECIDED
        self.failure_edge = EdgeState.UNDECIDED
        self.forced = False
        """A back edge jumped here: the task is active whatever its own edges say."""
        self.fired_in = 0
        """Forward branch edges into it that have fired."""
        self.live_in = branch_edges
        """Forward branch edges into it that are not dead."""
        self.pending = dependencies
        """Dependencies that are not settled, and of those that are: how many were good, bad, or not taken."""
        self.succeeded = 0
        self.passed = 0
        self.bad = 0
        self.not_taken = 0
        self.soft_pending = soft

        self.visits = 0
        self.attempts = 0
        self.retried = 0
        self.data: Any = None
        self.error: TaskError | None = None
        self.fallback_used = False
        self.verified: bool | None = None
        self.false_decision = False

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
        """Back to PENDING, as if it had not run. Its counters of visits and calls stay."""
        self.status = "PENDING"
        self.reason = None
        self.success_edge = EdgeState.UNDECIDED
        self.failure_edge = EdgeState.UNDECIDED
        self.forced = False
        self.data = None
        self.error = None
        self.fallback_used = False
        self.verified = None
        self.false_decision = False

    def result(self) -> dict[str, Any]:
        """What expressions and later tasks see of it."""
        done = self.status == "SUCCEEDED"
        return {
            "status": self.status,
            "success": done,
            "data": self.data if self.status in ("SUCCEEDED", "FAILED") else None,
            "error": self.error.to_json() if self.error else None,
            "fallback_used": self.fallback_used,
            "verified": self.verified,
        }
