"""`run`: a plan to its end, or to a pause."""

from __future__ import annotations

import os
import uuid
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from fsm_agent.cli.data_files import labels_of
from fsm_agent.cli.encoding import as_utf8
from fsm_agent.cli.execution import Execution
from fsm_agent.cli.inputs import gather_inputs
from fsm_agent.cli.options import command, new_app
from fsm_agent.cli.problems import problems_text
from fsm_agent.cli.session import DEFAULT_PLANS, Session
from fsm_agent.cli.templates import find_plan
from fsm_agent.core.result import RunResult
from fsm_agent.engine.approving import Approver
from fsm_agent.engine.options import RunOptions
from fsm_agent.errors import UsageError
from fsm_agent.plan.loader import check_plan
from fsm_agent.plan.model import Plan
from fsm_agent.plan.nearness import near

app = new_app()


@command(app)
def run(  # noqa: PLR0913 - an option each
    session: Session,
    *,
    plan: Annotated[
        str | None, typer.Argument(metavar="PLAN", help="A plan file, or a template's name.", show_default=False)
    ] = None,
    goal: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What for. Without PLAN it chooses the template that fits.")
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="An input: JSON, else text; repeatable.")
    ] = None,
    input_file: Annotated[
        str | None, typer.Option("--input", metavar="FILE", help="Inputs from a JSON or YAML file.")
    ] = None,
    plans: Annotated[str | None, typer.Option(metavar="PATH", help="The folder of templates. [./plans]")] = None,
    approve: Annotated[
        list[str] | None, typer.Option(metavar="TASK", help="Approve this task's first visit; repeatable.")
    ] = None,
    approve_all: Annotated[bool, typer.Option("--approve-all", help="Approve whatever is asked.")] = False,
    grant: Annotated[
        list[str] | None, typer.Option(metavar="PERMISSION", help="Grant the run a permission; repeatable.")
    ] = None,
    max_parallel: Annotated[int | None, typer.Option(metavar="N", help="How many tasks may run at once.")] = None,
    deadline: Annotated[float | None, typer.Option(metavar="S", help="How many seconds the run may take.")] = None,
    require_plan_approval: Annotated[
        bool, typer.Option("--require-plan-approval", help="Wait for a person to approve the plan first.")
    ] = False,
    no_store: Annotated[bool, typer.Option("--no-store", help="Keep the run in this process only.")] = False,
    run_id: Annotated[str | None, typer.Option(metavar="ID", help="An id of your choice for the run.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A label of the run; repeatable.")
    ] = None,
) -> int:
    """Run a plan to its end, or to a pause.

    Exits 0 completed, 1 failed, 2 not run, 3 paused for a person, 4 cancelled, 130 by Ctrl-C.
    """
    goal, run_id = (as_utf8(text) if text is not None else None for text in (goal, run_id))
    approved, grants = frozenset(map(as_utf8, approve or ())), tuple(map(as_utf8, grant or ()))
    labels = labels_of(label or ())
    file = find_plan(plan, goal, Path(plans or session.settings.plans or DEFAULT_PLANS))
    engine = session.engine()
    checked = check_plan(file, engine.catalog)
    if checked.plan is None or checked.compiled is None:
        return session.refuse(checked.problems, engine.skills.errors)
    inputs = gather_inputs(checked.plan, str(file), sets or (), input_file, os.environ)
    if inputs.problems:
        return session.refuse(inputs.problems)
    _check_tasks(approved, checked.plan)
    if checked.problems:
        session.output.note(problems_text(checked.problems))
    if not no_store:
        engine = session.engine(engine.skills, store=session.store())
    run_id = uuid.uuid4().hex if run_id is None else run_id
    options: RunOptions = {
        "goal": goal, "inputs": inputs.given, "run_id": run_id, "grants": grants,
        "deadline": deadline, "max_parallel": max_parallel, "labels": labels,
        "require_plan_approval": require_plan_approval,
    }  # fmt: skip
    execution = Execution(session, engine, checked.compiled, run_id, inputs.secrets, approved, approve_all)
    plan_to_run = checked.plan

    def drive(approver: Approver | None) -> Awaitable[RunResult]:
        options["approver"] = approver
        return engine.run(plan_to_run, **options)

    return execution.run(drive)


def _check_tasks(named: Iterable[str], plan: Plan) -> None:
    """A consent for a task that is not there would go unnoticed until the run waits for it."""
    ids = {task.id for task in plan.tasks}
    for name in named:
        if name not in ids:
            nearest = near(name, ids)
            hint = f"did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""
            raise UsageError(f"--approve names task {name!r}, which the plan does not have", hint=hint)
