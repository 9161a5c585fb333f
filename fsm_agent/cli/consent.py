"""Who approves in a run from the command line: --approve, --approve-all, the person at the terminal, or nobody."""

from __future__ import annotations

import getpass
from collections.abc import Collection
from dataclasses import dataclass

from fsm_agent.cli.question import Terminal
from fsm_agent.engine.approving import Answer, ApprovalRequest, Approver


@dataclass(frozen=True, slots=True)
class Consent:
    """The approver of a run."""

    tasks: Collection[str] = ()
    """Tasks whose first visit is approved beforehand: with whatever parameters it will have."""
    everything: bool = False
    terminal: Terminal | None = None

    @property
    def approver(self) -> Approver | None:
        """This as an approver; None where nobody would answer, so that nobody is asked."""
        return self if self.tasks or self.everything or self.terminal is not None else None

    async def __call__(self, request: ApprovalRequest) -> Answer | None:
        """Answer, or leave it to someone else."""
        if self.everything:
            return Answer(True, by=user(), why="--approve-all")
        if request.task in self.tasks and request.visit == 1:
            return Answer(True, by=user(), why="--approve")
        if self.terminal is None:
            return None
        agreed = await self.terminal.ask(request)
        return None if agreed is None else Answer(agreed, by=user(), why="asked on the terminal")


def user() -> str:
    """The name of the person whose process this is, as far as the system knows it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # which of them depends on the version of Python and the system
        return "command line"
