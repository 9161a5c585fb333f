"""What Ctrl-C and SIGTERM mean for a run: pause, then cancel, then leave."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Final, Self

from fsm_agent.api import PlannerEngine
from fsm_agent.cli.exits import INTERRUPTED
from fsm_agent.cli.question import Terminal
from fsm_agent.errors import UnknownRun

_MOST_NAMES: Final = 5


class Interrupts:
    """Signal handlers for the time of one run. A context manager, within the event loop that drives the run.

    The first Ctrl-C asks for a pause, and what runs may finish; the second cancels the run, which still cleans up; the
    third ends the process where it stands. SIGTERM cancels.
    """

    def __init__(
        self, engine: PlannerEngine, run_id: str, tell: Callable[[str], None], terminal: Terminal | None = None
    ) -> None:
        self.count = 0
        """How often Ctrl-C was pressed."""
        self._engine = engine
        self._run_id = run_id
        self._tell = tell
        self._terminal = terminal
        self._loop = asyncio.get_running_loop()
        self._before: dict[signal.Signals, Any] = {}
        self._asked: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        for number, handler in ((signal.SIGINT, self._interrupt), (signal.SIGTERM, self._terminate)):
            self._before[number] = signal.signal(number, handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if self.count else handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's parameters
        """In the handler itself next to nothing is safe to do; the event loop does the rest."""
        self.count += 1
        if self.count > 2:
            os._exit(INTERRUPTED)
        self._loop.call_soon_threadsafe(self._pause if self.count == 1 else self._cancel)

    def _terminate(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's parameters
        self._loop.call_soon_threadsafe(self._cancel)

    def _pause(self) -> None:
        self._tell(f"\npausing: {self._waits_for()}; press Ctrl-C again to cancel the run")
        if self._terminal is not None:
            self._terminal.give_up()
        self._ask(self._engine.pause(self._run_id, why="Ctrl-C"))

    def _cancel(self) -> None:
        more = "; press Ctrl-C again to end it where it stands" if self.count else ""
        self._tell(f"\ncancelling: calls are told to stop, and what cleans up still runs{more}")
        if self._terminal is not None:
            self._terminal.give_up()
        self._ask(self._engine.cancel(self._run_id, why="Ctrl-C" if self.count else "SIGTERM"))

    def _waits_for(self) -> str:
        with suppress(UnknownRun):
            tasks = self._engine.status(self._run_id).tasks
            running = [task for task, state in tasks.items() if state.status == "RUNNING"]
            if running:
                more = f" and {len(running) - _MOST_NAMES} more" if len(running) > _MOST_NAMES else ""
                return f"waiting for {', '.join(running[:_MOST_NAMES])}{more} to finish"
        return "nothing is running"

    def _ask(self, wish: Any) -> None:
        task = self._loop.create_task(self._quietly(wish))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)

    async def _quietly(self, wish: Any) -> None:
        with suppress(UnknownRun):  # it has just ended
            await wish
