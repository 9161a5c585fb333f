"""What Ctrl-C and SIGTERM mean for a run: pause, then cancel, then leave."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from fsm_agent.api import PlannerEngine
from fsm_agent.cli.output import Output
from fsm_agent.cli.question import Terminal
from fsm_agent.cli.signals import Signals, write_now
from fsm_agent.errors import RunError, UnknownRun

_MOST_NAMES: Final = 5


class Interrupts:
    """The meaning of signals for the time of one run. A context manager, within the event loop that drives the run.

    The first Ctrl-C asks for a pause, and what runs may finish; the next one cancels the run, which still cleans up;
    one more ends the process where it stands. SIGTERM cancels, a second one ends the process. Each is told by the
    handler itself, at once: a skill may hold up the event loop, which does the rest.
    """

    def __init__(
        self, engine: PlannerEngine, run_id: str, output: Output, signals: Signals, terminal: Terminal | None = None
    ) -> None:
        self.presses = 0
        """How often Ctrl-C was pressed."""
        self._engine = engine
        self._run_id = run_id
        self._output = output
        self._signals = signals
        self._terminal = terminal
        self._loop = asyncio.get_running_loop()
        self._is_terminated = False
        self._is_cancelling = False
        self._is_last_chance = False
        self._asked: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._signals.target = self._receive
        self._signals.renew()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_last_chance = self._is_terminated or self.presses > 1
        self._signals.target = self._receive_late

    # In the handler -------------------------------------------------------------------------------------------------

    def _receive(self, number: signal.Signals) -> None:
        if number == signal.SIGINT:
            self._interrupt()
        else:
            self._terminate()

    def _interrupt(self) -> None:
        self.presses += 1
        if self._is_cancelling:
            self._signals.end(signal.SIGINT)
        elif self.presses > 1:
            self._begin_to_cancel("Ctrl-C", "press Ctrl-C again to end it where it stands")
        else:
            write_now("\npausing: what runs may finish; press Ctrl-C again to cancel the run\n")
            self._soon(self._pause)

    def _terminate(self) -> None:
        if self._is_terminated:
            self._signals.end(signal.SIGTERM)
        self._is_terminated = True
        self._begin_to_cancel("SIGTERM", "a second SIGTERM ends it where it stands")

    def _begin_to_cancel(self, why: str, more: str) -> None:
        is_first, self._is_cancelling = not self._is_cancelling, True
        write_now(f"\ncancelling: calls are told to stop, and what cleans up still runs; {more}\n")
        if is_first:
            self._soon(lambda: self._cancel(why))

    def _receive_late(self, number: signal.Signals) -> None:
        """The run is over, and its result is not told yet. It is not lost to the first signal that comes now."""
        if self._is_last_chance:
            self._signals.end(number)
        self._is_last_chance = True
        write_now("\nthe run has ended, and its result follows; once more ends it at once\n")

    def _soon(self, step: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: the run is over
            self._loop.call_soon_threadsafe(step)

    # In the event loop ----------------------------------------------------------------------------------------------

    def _pause(self) -> None:
        self._output.note(self._waits_for())
        self._give_up_asking()
        self._ask(self._engine.pause(self._run_id, why="Ctrl-C"))

    def _cancel(self, why: str) -> None:
        self._give_up_asking()
        self._ask(self._engine.cancel(self._run_id, why=why))

    def _give_up_asking(self) -> None:
        if self._terminal is not None:
            self._terminal.give_up()

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
        with suppress(RunError):  # it has just ended
            await wish
