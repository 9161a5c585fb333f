"""`eval`: the value of an expression."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fsm_agent.cli.data_files import read_object
from fsm_agent.cli.exits import BAD, OK
from fsm_agent.cli.options import command, new_app
from fsm_agent.cli.output import to_json
from fsm_agent.cli.session import Session
from fsm_agent.errors import ConditionError, UsageError
from fsm_agent.plan.expressions import Names, compile_expression
from fsm_agent.plan.json_reader import read_json
from fsm_agent.views.text import one_line, width

app = new_app()


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
    data = _names(names)
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
    if not given.lstrip().startswith("{"):
        return read_object(given)
    parsed = read_json(given)
    if parsed.findings or parsed.is_odd or parsed.has_duplicates or not isinstance(parsed.data, dict):
        why = parsed.findings[0].message if parsed.findings else "a key stands there twice, or a number is not finite"
        raise UsageError(f"--names: {why}", hint="""give JSON such as '{"context": {"budget": 3000}}', or a file""")
    return parsed.data


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
