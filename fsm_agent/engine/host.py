"""What the parts of a run under way need of the driver that they work for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from fsm_agent.clock import Clock
from fsm_agent.core.events import Event
from fsm_agent.core.run import Run
from fsm_agent.engine.secrets import Secrets
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.skills.context import TaskInfo


class RunHost(Protocol):
    """The driver of one run, as its parts see it."""

    run: Run
    clock: Clock
    secrets: Secrets
    cancel_grace: float
    loop: asyncio.AbstractEventLoop | None

    def record(self, event: Event) -> None:
        """Append an event to the run's journal."""

    def tell(self, event: Event) -> None:
        """Record what came from outside of the driver's own commands, and go on."""

    def when_durable(self, step: Callable[[], None]) -> None:
        """Do this once all that is recorded so far is durable."""

    def wake(self) -> None:
        """Something happened: go on."""

    def task_info(self, task: CompiledTask) -> TaskInfo:
        """What a skill may know of its task."""
