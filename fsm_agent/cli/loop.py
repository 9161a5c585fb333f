"""An event loop for one run, which ends whatever a skill has left in it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

GRACE: Final = 0.5
"""How long what is left may take to end, in seconds. A task that a skill began and forgot may swallow its cancellation,
and would keep `asyncio.run` waiting for ever."""


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, and give what it leaves behind no more than the grace time."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        _leave(loop)


def _leave(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=GRACE))
    loop.run_until_complete(asyncio.wait([loop.create_task(loop.shutdown_asyncgens())], timeout=GRACE))
    loop.set_exception_handler(lambda _loop, _context: None)  # nobody is there to mend what is left behind
    loop.close()
