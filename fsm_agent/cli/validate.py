"""`validate`: every problem of plan files, each with its place."""

from __future__ import annotations

from typing import Annotated

import typer

from fsm_agent.cli.exits import BAD, OK
from fsm_agent.cli.options import command, new_app
from fsm_agent.cli.problems import count_of, is_valid, problems_document, problems_text
from fsm_agent.cli.session import Session
from fsm_agent.errors import Problem, UsageError
from fsm_agent.plan.catalog import Catalog
from fsm_agent.plan.loader import check_plan

app = new_app()


@command(app)
def validate(
    session: Session,
    plans: Annotated[list[str], typer.Argument(metavar="PLAN...", help="Plan files, JSON or YAML.")],
    any_skill: Annotated[
        bool, typer.Option("--any-skill", help="Leave names of skills, workers and parameters unchecked.")
    ] = False,
) -> int:
    """Check plan files, and tell every problem.

    Each with its file and line. Exits 2 where there is an error; warnings are none.
    """
    problems = _problems(session, plans, any_skill=any_skill)
    if session.json:
        session.output.document(problems_document(problems))
    else:
        _tell(session, plans, problems)
    return OK if is_valid(problems) else BAD


def _problems(session: Session, plans: list[str], *, any_skill: bool) -> tuple[Problem, ...]:
    if any_skill:
        return _problems_of(plans, session.any_skill)
    engine = session.engine()
    return session.explained(_problems_of(plans, engine.catalog), engine.skills.errors)


def _problems_of(plans: list[str], catalog: Catalog) -> tuple[Problem, ...]:
    """Of all plans. Where there are several, one that cannot be read hides nothing of the others."""
    problems: list[Problem] = []
    for plan in plans:
        try:
            problems.extend(check_plan(plan, catalog).problems)
        except UsageError as error:
            if len(plans) == 1:
                raise
            problems.append(Problem("bad_syntax", error.message, hint=error.hint, file=plan))
    return tuple(problems)


def _tell(session: Session, plans: list[str], problems: tuple[Problem, ...]) -> None:
    if problems:
        session.output.text(problems_text(problems))
    count = f"{len(plans)} plan{'' if len(plans) == 1 else 's'}"
    verdict = "valid" if is_valid(problems) else "not valid"
    session.output.text(f"{count} checked: {verdict}" + (f", {count_of(problems)}" if problems else ""))
