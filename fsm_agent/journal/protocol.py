"""What the engine asks of a journal. It is the truth about a run: state is what folding its events gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fsm_agent.core.events import Event


class Journal(Protocol):
    """The events of one run, in their order."""

    @property
    def durable(self) -> bool:
        """Whether it survives the process, so that another can go on with the run."""

    @property
    def append(self) -> Callable[[Event], None]:
        """Adds what happened. In a durable journal it is kept by the next commit."""
