"""The entry point: finds the command, and turns whatever happens into a message and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from fsm_agent.cli.exits import BAD, OK
from fsm_agent.cli.options import Stopped, VersionAsked, remember
from fsm_agent.cli.output import output_of_process
from fsm_agent.cli.teller import Teller
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


app = typer.Typer(cls=Commands, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.callback()(remember)


def main() -> NoReturn:
    """The program `fsm-agent`."""
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Do what the arguments say. Returns the exit code."""
    output = output_of_process()
    teller = Teller(output, arguments)
    try:
        return _dispatch(arguments) if arguments else _dispatch(["--help"]) or BAD
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
    finally:
        output.flush()


def _dispatch(arguments: Sequence[str]) -> int:
    code = typer.main.get_command(app).main(list(arguments), PROGRAM, standalone_mode=False)
    return code if isinstance(code, int) else OK
