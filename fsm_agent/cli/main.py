"""The entry point. Before it loads the rest, which takes a while, a signal has a meaning already."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from fsm_agent.cli.exits import JSON
from fsm_agent.cli.signals import Signals


def main() -> NoReturn:
    """The program `fsm-agent`."""
    arguments = sys.argv[1:]
    signals = Signals(json=JSON in arguments)
    signals.install()
    sys.exit(_perform(arguments, signals))


def execute(arguments: Sequence[str]) -> int:
    """Do what the arguments say, within a process that is not the command line's own. Returns the exit code."""
    from fsm_agent.cli.output import output_of_process  # noqa: PLC0415 - as below
    from fsm_agent.cli.program import Program  # noqa: PLC0415 - as below

    return Program(output_of_process(), Signals()).execute(arguments)


def _perform(arguments: Sequence[str], signals: Signals) -> int:
    from fsm_agent.cli.output import output_of_process, reserved_output  # noqa: PLC0415 - the handlers come first
    from fsm_agent.cli.program import Program  # noqa: PLC0415 - the handlers come first

    output = reserved_output() if JSON in arguments else output_of_process()
    signals.has_output = lambda: output.has_begun
    code = Program(output, signals).execute(arguments)
    output.close()
    return code
