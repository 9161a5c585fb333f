"""One task within one run: its status, its counters, and what its last visit came to."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, Literal, NamedTuple

import msgspec

from fsm_agent.core.events import TaskError, TaskEvaluated

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


class NodeSnapshot(NamedTuple):
    """What a snapshot keeps of a task: all but what its last visit came to, which the journal has.

    Counters are kept beside what the plan gives them at first, so that tasks which stand alike are equal here however
    many edges they have.
    """

    status: Status
    reason: SkipReason | None
    success_edge: EdgeState
    failure_edge: EdgeState
    visits: int
    attempts: int
    retried: int
    pending: int
    """-1: all of its dependencies, and it has some. The same for the soft ones."""
    soft_pending: int
    dead_in: int
    fired_in: int
    not_passed: int
    """Settled dependencies that were not good; and good ones that did not succeed."""
    not_succeeded: int
    bad: int
    not_taken: int
    forced: bool
    false_decision: bool
    touched: bool
    """It is among those that a jump has to look at."""


Counts = tuple[int, int, int, int]
"""A task's place, and how many dependencies, soft ones and forward branch edges lead to it."""


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

    def learn(self, event: TaskEvaluated) -> None:
        """What its visit came to."""
        self.data = event.data
        self.error = event.error
        self.fallback_used = event.fallback_used
        self.verified = event.verified

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

    def dump(self, counts: Counts, *, touched: bool) -> NodeSnapshot:
        """How it stands, for a snapshot. `counts` are the plan's, `touched` is the schedule's."""
        _, pending, soft, live = counts
        return NodeSnapshot(
            self.status, self.reason, self.success_edge, self.failure_edge, self.visits, self.attempts, self.retried,
            -1 if pending and self.pending == pending else self.pending,
            -1 if soft and self.soft_pending == soft else self.soft_pending,
            live - self.live_in, self.fired_in,
            pending - self.pending - self.passed, self.passed - self.succeeded,
            self.bad, self.not_taken, self.forced, self.false_decision, touched,
        )  # fmt: skip

    def restore(self, kept: NodeSnapshot, counts: Counts) -> None:
        """Stand as the snapshot says."""
        _, pending, soft, live = counts
        self.status = kept.status
        self.reason = kept.reason
        self.success_edge = kept.success_edge
        self.failure_edge = kept.failure_edge
        self.visits = kept.visits
        self.attempts = kept.attempts
        self.retried = kept.retried
        self.pending = pending if kept.pending < 0 else kept.pending
        self.soft_pending = soft if kept.soft_pending < 0 else kept.soft_pending
        self.live_in = live - kept.dead_in
        self.fired_in = kept.fired_in
        self.passed = pending - self.pending - kept.not_passed
        self.succeeded = self.passed - kept.not_succeeded
        self.bad = kept.bad
        self.not_taken = kept.not_taken
        self.forced = kept.forced
        self.false_decision = kept.false_decision
