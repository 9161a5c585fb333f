"""Taking up all runs that were left behind: each on its own, and one that cannot be does not stop the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from fsm_agent.core.result import RunResult
from fsm_agent.errors import FsmAgentError, RunHeld, RunNotActive

RECOVERED_AT_ONCE: Final = 10
"""How many runs are taken up at once, unless told otherwise."""


@dataclass(slots=True)
class Recovery:
    """What became of the runs that were left behind."""

    results: list[RunResult] = field(default_factory=list)
    """Of those that went on, each to its end or a pause."""
    failed: dict[str, FsmAgentError] = field(default_factory=dict)
    """Those that could not be taken up, by id, and why. Nothing of them was run."""
    elsewhere: list[str] = field(default_factory=list)
    """Those that another process took up first."""


async def recover(run_ids: Iterable[str], go_on: Callable[[str], Awaitable[RunResult]], most: int) -> Recovery:
    """Go on with all of these, `most` at once."""
    recovery = Recovery()
    room = asyncio.Semaphore(most)

    async def one(run_id: str) -> None:
        async with room:
            try:
                recovery.results.append(await go_on(run_id))
            except (RunHeld, RunNotActive):
                recovery.elsewhere.append(run_id)
            except FsmAgentError as error:
                recovery.failed[run_id] = error

    async with asyncio.TaskGroup() as group:
        for run_id in run_ids:
            group.create_task(one(run_id))
    return recovery
