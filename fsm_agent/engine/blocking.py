"""A run for programs without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from fsm_agent.core.result import RunResult
from fsm_agent.errors import UsageError


def run_sync(work: Coroutine[Any, Any, RunResult]) -> RunResult:
    """Run a coroutine to its end from a program without an event loop. Raises UsageError inside of one."""
    if _in_event_loop():
        work.close()
        raise UsageError("run_sync was called inside an event loop", hint="there, await engine.run(…)")
    return asyncio.run(work)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
