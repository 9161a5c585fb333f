"""`schema`: the JSON Schema of plans."""

from __future__ import annotations

import typer

from fsm_agent.cli.exits import OK
from fsm_agent.cli.options import command
from fsm_agent.cli.session import Session
from fsm_agent.plan.published import plan_schema

app = typer.Typer()


@command(app)
def schema(session: Session) -> int:
    """Print the JSON Schema of plans in their normal form, as it is: also with --json."""
    session.output.json(plan_schema())
    return OK
