"""A question to the person at the terminal. Waiting for the answer holds up nothing else."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import suppress
from typing import Final

from fsm_agent.cli.output import Output, to_json
from fsm_agent.cli.screen import Screen
from fsm_agent.cli.tables import facts, indented
from fsm_agent.engine.approving import ApprovalRequest
from fsm_agent.redaction import Redactor
from fsm_agent.views.text import one_line

if sys.platform == "win32":
    import msvcrt

    def discard_typed(_source: int) -> None:
        """Forget the keys that were pressed up to now: they answer a question that nobody has seen."""
        while msvcrt.kbhit():
            msvcrt.getwch()
else:
    import termios

    def discard_typed(source: int) -> None:
        """Forget the keys that were pressed up to now: they answer a question that nobody has seen."""
        with suppress(termios.error):
            termios.tcflush(source, termios.TCIFLUSH)


YES: Final = frozenset({"y", "yes"})
NO: Final = frozenset({"n", "no"})
_MOST_BYTES: Final = 4096


class Terminal:
    """Asks one question at a time. `source` is the descriptor that answers are read from."""

    def __init__(self, output: Output, screen: Screen, source: int, redactor: Redactor) -> None:
        self._output = output
        self._screen = screen
        self._source = source
        self._redactor = redactor
        self._turn = asyncio.Lock()
        self._line: asyncio.Future[str | None] | None = None
        self._given_up = False
        self._reading = False

    async def ask(self, request: ApprovalRequest) -> bool | None:
        """Whether the person agrees; None where there is no answer, now or later."""
        async with self._turn:
            if self._given_up:
                return None
            self._screen.hold()
            try:
                self._output.text(question_text(request, self._redactor))
                return await self._answer()
            finally:
                self._screen.release()

    def give_up(self) -> None:
        """Leave the question that is open, and all that come, to someone else."""
        self._given_up = True
        self._tell(None)

    async def _answer(self) -> bool | None:
        while True:
            discard_typed(self._source)
            self._output.write(self._output.out, "Approve? [y/n] ")
            line = await self._next_line()
            if line is None:
                self._output.write(self._output.out, "\n")
                return None
            word = line.strip().lower()
            if word in YES | NO:
                return word in YES

    async def _next_line(self) -> str | None:
        loop = asyncio.get_running_loop()
        self._line = loop.create_future()
        if not self._reading:
            self._reading = True
            threading.Thread(target=self._read, args=(loop,), name="answer", daemon=True).start()
        return await self._line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for one line, on a thread of its own. The descriptor is read itself: a daemon thread in a buffered
        read would stop the interpreter from ending in good order.
        """
        try:
            content = os.read(self._source, _MOST_BYTES)
        except OSError:
            content = b""
        line = content.decode(errors="replace") if content else None
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._got, line)

    def _got(self, line: str | None) -> None:
        self._reading = False
        self._tell(line)

    def _tell(self, line: str | None) -> None:
        if self._line is not None and not self._line.done():
            self._line.set_result(line)


def question_text(request: ApprovalRequest, redactor: Redactor) -> str:
    """What is to be approved: who does it, how risky it is, and exactly what it is called with."""
    about = {
        "task": request.task or "",
        "visit": str(request.visit) if request.visit > 1 else "",
        "does": request.name or "",
        "description": request.description or "",
        "skill": request.skill or "",
        "risk": request.risk or "",
        "approval": request.approval,
    }
    lines = facts({name: one_line(value) for name, value in about.items()})
    if request.kind == "plan":
        return f"\nThe plan must be approved before anything runs.\n{lines}"
    parameters = indented(to_json(redactor.value(request.parameters)))
    return f"\nThis task must be approved.\n{lines}\nparameters\n{parameters}"
