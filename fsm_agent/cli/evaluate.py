"""`eval`: the value of an expression."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from fsm_agent.cli.data_files import json_or_text, read_object
from fsm_agent.cli.encoding import as_utf8
from fsm_agent.cli.exits import BAD, OK
from fsm_agent.cli.options import command, new_app
from fsm_agent.cli.output import to_json
from fsm_agent.cli.session import Session
from fsm_agent.errors import ConditionError, UsageError
from fsm_agent.plan.expressions import Names, compile_expression
from fsm_agent.plan.json_reader import read_json
from fsm_agent.views.text import one_line, width

app = new_app()

_NAMES_HINT: Final = """give JSON such as '{"context": {"budget": 3000}}', or a file"""


@command(app, "eval", context_settings={"ignore_unknown_options": True})  # `-1 < 0` is an expression
def evaluate(
    session: Session,
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="The expression.", show_default=False)],
    names: Annotated[
        str | None,
        typer.Option(metavar="FILE|JSON", help="""The names it may use: a file, or '{"context": {...}}'."""),
    ] = None,
) -> int:
    """Evaluate an expression.

    As conditions are evaluated: an error is never false, it exits 2.
    """
    data, expression = _names(names), as_utf8(expression)
    try:
        value = compile_expression(expression, Names(frozenset(data))).value(data)
    except ConditionError as error:
        return _refuse(session, expression, error)
    if session.json:
        session.output.document({"value": value})
    else:
        session.output.text(to_json(value))
    return OK


def _names(given: str | None) -> dict[str, Any]:
    if given is None:
        return {}
    given = as_utf8(given)
    if not given.lstrip().startswith("{"):
        return _names_of_file(given)
    parsed = read_json(given)
    if parsed.findings or parsed.is_odd or parsed.has_duplicates or not isinstance(parsed.data, dict):
        why = parsed.findings[0].message if parsed.findings else "a key stands there twice, or a number is not finite"
        raise UsageError(f"--names: {why}", hint=_NAMES_HINT)
    return parsed.data


def _names_of_file(path: str) -> dict[str, Any]:
    try:
        return read_object(path)
    except UsageError:
        if isinstance(json_or_text(path), str) and not set(path) & set('{}[]"'):
            raise
        raise UsageError("--names must be a JSON object, or a file that holds one", hint=_NAMES_HINT) from None


def _refuse(session: Session, expression: str, error: ConditionError) -> int:
    if session.json:
        told = {
            "code": error.code,
            "message": error.message,
            "column": error.column,
            "name": error.name,
            "suggestions": list(error.suggestions),
        }
        session.output.document({"error": told})
        return BAD
    near = f"did you mean {' or '.join(map(repr, error.suggestions))}?" if error.suggestions else error.hint
    session.output.note(f"error: {error.code}: {one_line(error.message)}" + (f" ({one_line(near)})" if near else ""))
    if error.column is not None and expression.isprintable():
        session.output.note(f"  {expression}\n  {' ' * width(expression[: error.column - 1])}^")
    return BAD
