"""SIGINT and SIGTERM, from the first moment of the process to its last: one handler, whose meaning changes.

This is loaded before anything else, so it imports next to nothing.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final

from fsm_agent.cli.exits import CANCELLED, INTERRUPTED

_CODES: Final = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: CANCELLED}
_WORDS: Final = {signal.SIGINT: ("interrupted", "interrupted"), signal.SIGTERM: ("cancelled", "ended by SIGTERM")}
"""The code and the message of the error."""


class Signals:
    """The handler of both signals. It ends the process, unless `target` says otherwise."""

    def __init__(self, *, json: bool = False) -> None:
        """`json`: a program reads standard output, and gets a document also when the process is ended."""
        self.target: Callable[[signal.Signals], None] | None = None
        """What a signal means now. It is called in the handler, in which next to nothing is safe to do."""
        self.has_output: Callable[[], bool] = lambda: False
        """Whether the document has begun: then there is no second one."""
        self._document_to = _second_name_of_stdout() if json else None
        self._is_installed = False
        self._is_leaving = False

    def install(self) -> None:
        """Handle the signals from now on, until the interpreter has nothing left to do but to end."""
        self._is_installed = True
        atexit.register(_ignore)  # the first one that is registered is the last one that is called
        self.renew()

    def renew(self) -> None:
        """Take the signals back from a skill's module that has put its own handler there."""
        if self._is_installed:
            for number in _CODES:
                signal.signal(number, self._receive)

    def end(self, number: signal.Signals) -> None:
        """End the process where it stands. Nothing is raised: some code would swallow that."""
        if not self._is_leaving:  # else: also what is told last is held up, by a reader who does not read
            self._is_leaving = True
            code, message = _WORDS[number]
            if self._document_to is None or self.has_output():
                write_now(f"error: {message}\n")
            else:
                error = f'{{"code": "{code}", "message": "{message}", "hint": ""}}'
                _write(self._document_to, f'{{"format": 1, "error": {error}}}\n')
        os._exit(_CODES[number])

    def _receive(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's parameters
        meaning = self.end if self.target is None or self._is_leaving else self.target
        meaning(signal.Signals(number))


def write_now(text: str) -> None:
    """Write to standard error past all buffers: one of them may be in use at the moment of a signal."""
    if sys.__stderr__ is not None:  # else its number may be that of any file
        _write(2, text)


def _write(descriptor: int, text: str) -> None:
    with suppress(OSError):
        os.write(descriptor, text.encode("ascii", "backslashreplace"))


def _second_name_of_stdout() -> int | None:
    """Another descriptor of standard output, which stays what it is when the first one is led elsewhere."""
    if sys.__stdout__ is None:
        return None
    with suppress(OSError):
        return os.dup(1)
    return None


def _ignore() -> None:
    for number in _CODES:
        signal.signal(number, signal.SIG_IGN)
