"""Who gives a run its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fsm_agent.plan.model import Plan


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a planner is asked: a goal in words, and the inputs that were given (without their values)."""

    run_id: str
    goal: str | None = None
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan that a planner proposes: the program checks it before anything runs."""

    plan: Plan | Mapping[str, Any]
    author: str = "person"
    reason: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)


class Planner(Protocol):
    """Proposes plans. It authorises nothing: what it proposes passes every check, or the run fails."""

    async def propose(self, request: PlanRequest) -> Proposal:
        """A plan for the request. Raises FsmAgentError (or anything) where it has none: the run then fails."""
