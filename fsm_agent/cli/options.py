"""The options that hold for all commands, before the command's name as well as after it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, NoReturn, ParamSpec

import typer
from typer.core import TyperCommand, TyperGroup

from fsm_agent.cli.encoding import as_utf8
from fsm_agent.cli.output import Output
from fsm_agent.cli.settings import Settings, load_settings, log_format, log_level, workers_of
from fsm_agent.cli.signals import Signals
from fsm_agent.cli.teller import Teller

if TYPE_CHECKING:
    from fsm_agent.cli.session import Session

P = ParamSpec("P")

PYPROJECT: Final = Path("pyproject.toml")


class VersionAsked(Exception):
    """Someone wants to know the version, and nothing else."""


class HelpAsked(Exception):
    """Someone wants to read the help, and nothing else."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Stopped(Exception):
    """Ctrl-C came where no run was there to pause. The parser would end without a word."""


def _version(wanted: bool) -> None:
    if wanted:
        raise VersionAsked


class Command(TyperCommand):
    """A command whose help goes where output goes: the parser would print it wherever `print` leads."""

    def get_help(self, ctx: Any) -> NoReturn:
        """Raise the help: it is made only where it was asked for."""
        raise HelpAsked(super().get_help(ctx))


class Group(TyperGroup):
    """Commands under one name, and their help likewise."""

    def get_help(self, ctx: Any) -> NoReturn:
        """Raise the help: it is made only where it was asked for."""
        raise HelpAsked(super().get_help(ctx))


@dataclass(frozen=True, slots=True)
class Given:
    """The shared options as they were given in one place."""

    skills: list[str] | None = None
    default_skill: str | None = None
    worker: list[str] | None = None
    store: str | None = None
    log_level: str | None = None
    log_format: str | None = None
    json: bool = False
    debug: bool = False

    def then(self, later: Given) -> Given:
        """These, and those that were given after them: lists grow, of other options the later one counts."""
        both: dict[str, Any] = {}
        for field in fields(self):
            mine, theirs = getattr(self, field.name), getattr(later, field.name)
            both[field.name] = mine + theirs if isinstance(mine, list) and theirs else theirs or mine
        return Given(**both)

    def settings(self) -> Settings:
        """The same as settings. Raises UsageError for what makes no sense."""
        return Settings(
            skills=tuple(self.skills) if self.skills else None,
            default_skill=as_utf8(self.default_skill) if self.default_skill is not None else None,
            workers=workers_of(map(as_utf8, self.worker), "--worker") if self.worker else None,
            store=as_utf8(self.store) if self.store is not None else None,
            log_level=log_level(self.log_level, "--log-level") if self.log_level is not None else None,
            log_format=log_format(self.log_format, "--log-format") if self.log_format is not None else None,
            debug=self.debug or None,
        )


@dataclass(frozen=True, slots=True)
class Call:
    """What the parser carries from the program's name to the command: where to tell things, and what was given."""

    output: Output
    teller: Teller
    signals: Signals
    given: Given = Given()

    def session(self) -> Session:
        """All that a command works with. Raises UsageError for settings that make no sense."""
        from fsm_agent.cli.follow_up import FollowUp  # noqa: PLC0415 - help and version do not wait for the engine
        from fsm_agent.cli.session import Session  # noqa: PLC0415

        options = self.given.settings()
        settings = load_settings(options, os.environ, PYPROJECT)
        self.teller.debug = bool(settings.debug)
        return Session(settings, self.output, self.given.json, self.signals, FollowUp(options))


def remember(  # noqa: PLR0913 - an option each
    ctx: typer.Context,
    *,
    skills: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Load skills from this file, folder or module; repeatable. [./skills]"),
    ] = None,
    default_skill: Annotated[
        str | None, typer.Option(metavar="NAME", help="The skill for tasks that name nobody.")
    ] = None,
    worker: Annotated[
        list[str] | None, typer.Option(metavar="TYPE=SKILL", help="The skill of a kind of worker; repeatable.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Where runs are kept: a path or a URL. [.fsm-agent/runs.db]")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="Log events from this level on: debug, info, warning, error.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(metavar="FORM", help="The form of logs: console, json.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[  # noqa: ARG001 - its callback sees to it
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Run plans for agents through an explicit state machine: Planning, Executing, Evaluating."""
    call: Call = ctx.obj
    given = Given(skills, default_skill, worker, store, log_level, log_format, json, debug)
    ctx.obj = replace(call, given=call.given.then(given))


_SHARED: Final = tuple(inspect.signature(remember, eval_str=True).parameters.values())[1:]


def new_app(*, cls: type[Group] = Group, **settings: Any) -> typer.Typer:
    """An app for commands, with plain help: it is quick, and any terminal can show it."""
    plain: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
    return typer.Typer(cls=cls, **plain, **settings)


def command(
    app: typer.Typer, name: str | None = None, **settings: Any
) -> Callable[[Callable[Concatenate[Session, P], int]], Callable[Concatenate[Session, P], int]]:
    """Make a function a command: it gets a session, has its own options and the shared ones, returns the exit code."""

    def register(function: Callable[Concatenate[Session, P], int]) -> Callable[Concatenate[Session, P], int]:
        own = tuple(inspect.signature(function, eval_str=True).parameters.values())[1:]

        def door(ctx: typer.Context, **values: Any) -> None:
            remember(ctx, **{option.name: values.pop(option.name) for option in _SHARED})
            try:
                code = function(ctx.obj.session(), **values)  # type: ignore[call-arg] # the parser has seen to it
            except KeyboardInterrupt:
                raise Stopped from None
            raise typer.Exit(code)

        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        parameters = [context, *own, *_SHARED]
        door.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # where inspect looks first
        door.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        door.__doc__ = function.__doc__
        app.command(name or function.__name__, cls=Command, **settings)(door)
        return function

    return register
