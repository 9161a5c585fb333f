"""The program: finds the command, and turns whatever happens into a message and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import typer

from fsm_agent.cli.exits import BAD, FAILED, JSON, OK
from fsm_agent.cli.options import Call, Group, HelpAsked, Stopped, VersionAsked, new_app, remember
from fsm_agent.cli.output import Output
from fsm_agent.cli.signals import Signals
from fsm_agent.cli.teller import Teller
from fsm_agent.errors import FsmAgentError, LeaseLost

NAME: Final = "fsm-agent"

COMMANDS: Final = {
    "run": "run",
    "resume": "resume:resume_app",
    "approve": "people:approve_app",
    "reject": "people:reject_app",
    "decide": "people:decide_app",
    "pause": "people:pause_app",
    "cancel": "people:cancel_app",
    "recover": "resume:recover_app",
    "runs": "runs:app",
    "fork": "runs:fork_app",
    "replay": "runs:replay_app",
    "validate": "validate",
    "simulate": "simulate",
    "diagram": "diagram",
    "skills": "skills",
    "schema": "schema",
    "eval": "evaluate",
}
"""Each command, and the module here that has it as `app`, or under the name after the colon."""

_BadUsage: Final[type[Exception]] = typer.BadParameter.__bases__[0]
"""What the parser raises. Typer used to take it from click and now has its own, and names neither."""


class Commands(Group):
    """The commands. A module is imported only when its command is called, or help is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the parser's signature
        """All names, in the order in which one needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the parser's signature
        """The command of that name, if there is one."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        file, _, name = module.partition(":")
        found = typer.main.get_command(getattr(import_module(f"fsm_agent.cli.{file}"), name or "app"))
        found.name = cmd_name
        return found


app = new_app(cls=Commands)
app.callback()(remember)


@dataclass(frozen=True, slots=True)
class Program:
    """The command line, with the streams and the signals of its process."""

    output: Output
    signals: Signals

    def execute(self, arguments: Sequence[str]) -> int:
        """Do what the arguments say. Returns the exit code."""
        with redirect_stdout(self.output.err) if JSON in arguments else nullcontext():
            code = self._attempt(arguments)
        self.output.flush()
        if self.output.lost is None:
            return code
        self.output.note(f"error: not all of the output could be written: {self.output.lost}")
        return code or FAILED

    def _attempt(self, arguments: Sequence[str]) -> int:
        teller = Teller(self.output, arguments)
        try:
            return self._dispatch(arguments or ["--help"], teller)
        except VersionAsked:
            return teller.version()
        except HelpAsked as asked:
            return teller.help(asked.text) or (OK if arguments else BAD)
        except _BadUsage as error:
            return teller.bad_usage(error)
        except LeaseLost as error:
            return teller.error(error.code, error.message, error.hint, exit_code=FAILED)  # some of it was run
        except FsmAgentError as error:
            return teller.error(error.code, error.message, error.hint)
        except (KeyboardInterrupt, Stopped, typer.Abort):
            return teller.interrupted()
        except Exception as error:  # noqa: BLE001 - nobody gets to see a traceback who did not ask for it
            return teller.internal(error)

    def _dispatch(self, arguments: Sequence[str], teller: Teller) -> int:
        parser = typer.main.get_command(app)
        call = Call(self.output, teller, self.signals)
        code = parser.main(list(arguments), NAME, standalone_mode=False, obj=call)
        return code if isinstance(code, int) else OK
