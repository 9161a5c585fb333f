"""`sleep`: wait."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fsm_agent.clock import Clock
from fsm_agent.skills.declaration import skill

LONGEST = 1_000_000
"""The longest wait in one call, in seconds (over eleven days)."""


class Pause:
    """The skill `sleep`, by a clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @skill(idempotent=True, timeout=LONGEST + 60)
    async def sleep(self, seconds: Annotated[float, Field(ge=0, le=LONGEST, description="How long")]) -> float:
        """Wait so many seconds, and return how many they were."""
        await self._clock.sleep(seconds)
        return seconds
