"""`schema`: the JSON Schema of plans."""

from __future__ import annotations

from fsm_agent.cli.exits import OK
from fsm_agent.cli.options import command, new_app
from fsm_agent.cli.session import Session
from fsm_agent.plan.published import plan_schema

app = new_app()


@command(app)
def schema(session: Session) -> int:
    """Print the JSON Schema of plans.

    It is that of their normal form, and it stands alone, also with --json.
    """
    session.output.json(plan_schema())
    return OK
