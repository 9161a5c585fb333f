"""`simulate`: a plan with scripted outcomes, without skills and at once."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from fsm_agent.cli.data_files import read_object
from fsm_agent.cli.encoding import as_utf8
from fsm_agent.cli.exits import BY_PHASE
from fsm_agent.cli.inputs import gather_inputs
from fsm_agent.cli.options import command, new_app
from fsm_agent.cli.results import shown
from fsm_agent.cli.session import Session
from fsm_agent.cli.summary import simulation_text
from fsm_agent.engine.simulation import simulate as simulate_plan
from fsm_agent.plan.loader import check_plan

app = new_app()


@command(app)
def simulate(
    session: Session,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file, JSON or YAML.")],
    outcomes: Annotated[
        str | None,
        typer.Option(metavar="FILE", help='What tasks come to: {"task": ["ok", "fail", {"data": ...}]}.'),
    ] = None,
    goal: Annotated[str | None, typer.Option(metavar="TEXT", help="What for, instead of the plan's goal.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="An input: JSON, else text; repeatable.")
    ] = None,
) -> int:
    """Run a plan with scripted outcomes.

    No skill is called or needs to be there, no time passes, and approvals count as given.
    """
    goal = as_utf8(goal) if goal is not None else None
    checked = check_plan(plan, session.any_skill)
    if checked.compiled is None:
        return session.refuse(checked.problems)
    inputs = gather_inputs(checked.compiled.plan, plan, sets or (), None, os.environ)
    if inputs.problems:
        return session.refuse(inputs.problems)
    script = read_object(outcomes) if outcomes is not None else {}
    result = simulate_plan(checked.compiled, script, goal=goal, inputs=inputs.values)
    document = shown(result, inputs.redactor)
    if session.json:
        session.output.document(document)
    else:
        session.output.text(simulation_text(document, bounded=session.output.is_terminal))
    return BY_PHASE[result.phase]
