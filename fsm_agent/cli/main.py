"""The entry point: finds the command, and turns whatever happens into a message and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from importlib import import_module
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from fsm_agent.cli.exits import BAD, OK
from fsm_agent.cli.options import Call, Stopped, VersionAsked, new_app, remember
from fsm_agent.cli.output import Output, output_of_process, reserved_output
from fsm_agent.cli.teller import JSON, Teller
from fsm_agent.errors import FsmAgentError

PROGRAM: Final = "fsm-agent"

COMMANDS: Final = {
    "run": "run",
    "validate": "validate",
    "simulate": "simulate",
    "diagram": "diagram",
    "skills": "skills",
    "schema": "schema",
    "eval": "evaluate",
}
"""Each command, and the module here that has it as `app`."""

_BadUsage: Final[type[Exception]] = typer.BadParameter.__bases__[0]
"""What the parser raises. Typer used to take it from click and now has its own, and names neither."""


class Commands(TyperGroup):
    """The commands. A module is imported only when its command is called, or help is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the parser's signature
        """All names, in the order in which one needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the parser's signature
        """The command of that name, if there is one."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        found = typer.main.get_command(import_module(f"fsm_agent.cli.{module}").app)
        found.name = cmd_name
        return found


app = new_app(cls=Commands)
app.callback()(remember)


def main() -> NoReturn:
    """The program `fsm-agent`."""
    arguments = sys.argv[1:]
    sys.exit(execute(arguments, reserved_output() if JSON in arguments else output_of_process()))


def execute(arguments: Sequence[str], output: Output | None = None) -> int:
    """Do what the arguments say. Returns the exit code."""
    output = output or output_of_process()
    with redirect_stdout(output.err) if JSON in arguments else nullcontext():
        code = _attempt(arguments, output)
    output.flush()
    if output.lost is None:
        return code
    output.note(f"error: not all of the output could be written: {output.lost}")
    return BAD


def _attempt(arguments: Sequence[str], output: Output) -> int:
    teller = Teller(output, arguments)
    call = Call(output, teller)
    try:
        return _dispatch(arguments, call) if arguments else _dispatch(["--help"], call) or BAD
    except VersionAsked:
        return teller.version()
    except _BadUsage as error:
        return teller.bad_usage(error)
    except FsmAgentError as error:
        return teller.error(error.code, error.message, error.hint)
    except (KeyboardInterrupt, Stopped, typer.Abort):
        return teller.interrupted()
    except Exception as error:  # noqa: BLE001 - nobody gets to see a traceback who did not ask for it
        return teller.internal(error)


def _dispatch(arguments: Sequence[str], call: Call) -> int:
    parser = typer.main.get_command(app)
    code = parser.main(list(arguments), PROGRAM, standalone_mode=False, obj=call)
    return code if isinstance(code, int) else OK
