"""What all runs of one engine share: skills, time, chance and interpreters."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field

from fsm_agent.clock import Clock, RandomSource
from fsm_agent.engine.evaluators import Evaluators
from fsm_agent.engine.policies import Policies
from fsm_agent.skills.registry import SkillRegistry


@dataclass(frozen=True, slots=True)
class Services:
    """An engine's own things, as its drivers need them."""

    registry: SkillRegistry
    clock: Clock
    random: RandomSource
    evaluators: Evaluators = field(default_factory=Evaluators)
    policies: Policies = field(default_factory=Policies)
    executor: Executor | None = None
    """Makes the commits of a store that is not quick enough for the event loop."""
