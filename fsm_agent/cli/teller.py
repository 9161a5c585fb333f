"""How errors are told: a message for people, a JSON document for programs, and an exit code for both."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fsm_agent._version import __version__
from fsm_agent.cli.exits import BAD, FAILED, INTERRUPTED, JSON, OK
from fsm_agent.cli.output import Output
from fsm_agent.views.text import one_line


class Teller:
    """Tells what went wrong, also when the command line itself was not understood."""

    def __init__(self, output: Output, arguments: Sequence[str]) -> None:
        self._output = output
        self._json = JSON in arguments
        self.debug = "--debug" in arguments
        """Whether tracebacks are shown; settings may switch it on later."""

    def version(self) -> int:
        """Tell the version."""
        if self._json:
            self._output.document({"version": __version__})
        else:
            self._output.text(f"fsm-agent {__version__}")
        return OK

    def help(self, text: str) -> int:
        """Show the help that was asked for: a text, and on standard output, also for a program."""
        self._output.text(text)
        return OK

    def error(self, code: str, message: str, hint: str = "", *, exit_code: int = BAD) -> int:
        """Tell of an error that is no problem of a plan."""
        if self.debug:
            self._output.note(traceback.format_exc().rstrip())
        if self._json:
            self._output.document({"error": {"code": code, "message": message, "hint": hint}})
        else:
            self._output.note(f"error: {one_line(message)}")
            if hint:
                self._output.note(f"  hint: {one_line(hint)}")
        return exit_code

    def bad_usage(self, error: Any) -> int:
        """Tell that the command line was not understood."""
        context = error.ctx
        if context is not None and not self._json:
            self._output.note(context.get_usage())
        hint = f"see {context.command_path} --help" if context is not None else ""
        return self.error("usage", error.format_message().rstrip(".").replace("\n", " "), hint)

    def interrupted(self) -> int:
        """Tell that Ctrl-C came before a run began."""
        return self.error("interrupted", "interrupted", exit_code=INTERRUPTED)

    def internal(self, error: Exception) -> int:
        """Tell of what should not have happened. The error's own text may hold data: it is for --debug."""
        message = f"internal error: {type(error).__name__}{_place(error)}"
        hint = "this is a fault of fsm-agent; please report it, with what --debug shows"
        return self.error("internal", message, hint, exit_code=FAILED)


def _place(error: Exception) -> str:
    """Where it came from, within this package."""
    package = Path(__file__).parents[1]
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if package in Path(frame.filename).parents]
    if not own:
        return ""
    return f" at {Path(own[-1].filename).relative_to(package.parent).as_posix()}:{own[-1].lineno}"
