"""The simplest planner: it has a plan already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsm_agent.plan.model import Plan
from fsm_agent.planner.protocol import PlanRequest, Proposal


class StaticPlanner:
    """Proposes the plan that it was given, whatever the goal."""

    def __init__(self, plan: Plan | Mapping[str, Any]) -> None:
        self._plan = plan

    async def propose(self, request: PlanRequest) -> Proposal:  # noqa: ARG002 - the protocol's parameter
        """The plan."""
        return Proposal(self._plan)
