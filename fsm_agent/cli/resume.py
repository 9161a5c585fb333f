"""`resume` and `recover`: going on with runs of the store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from fsm_agent.cli.data_files import assignments, read_object
from fsm_agent.cli.encoding import as_utf8
from fsm_agent.cli.execution import Execution
from fsm_agent.cli.exits import FAILED, OK
from fsm_agent.cli.inputs import secrets_in
from fsm_agent.cli.loop import run_in_loop
from fsm_agent.cli.options import command, new_app
from fsm_agent.cli.session import Session
from fsm_agent.cli.tables import table
from fsm_agent.core.machine import FINAL
from fsm_agent.engine.recovering import Recovery
from fsm_agent.errors import RunNotActive
from fsm_agent.plan.model import Plan

resume_app = new_app()
recover_app = new_app()

RunId = Annotated[str, typer.Argument(metavar="ID", help="The run.")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A secret input, given again; repeatable.")
]
InputFile = Annotated[
    str | None, typer.Option("--input", metavar="FILE", help="Secret inputs, given again, from a JSON or YAML file.")
]


@command(resume_app)
def resume(
    session: Session,
    run_id: RunId,
    *,
    sets: Sets = None,
    input_file: InputFile = None,
    approve: Annotated[
        list[str] | None, typer.Option(metavar="TASK", help="Approve this task's first visit; repeatable.")
    ] = None,
    approve_all: Annotated[bool, typer.Option("--approve-all", help="Approve whatever is asked.")] = False,
) -> int:
    """Go on with a run that is paused, or whose process has died.

    Secret inputs are given again: by their variables, --set or --input. Exits as `run` does.
    """
    run_id = as_utf8(run_id)
    store = session.run_store(run_id)
    engine = session.engine(store=store)
    phase = store.head(run_id).phase
    compiled = run_in_loop(engine.plan_of(run_id)) if phase not in FINAL else None
    if compiled is None:
        raise RunNotActive(f"run {run_id!r} is over: its phase is {phase}", hint="see runs show")
    given = _given(sets, input_file)
    inputs = {**secrets_in(os.environ, compiled.plan), **given}
    secrets = tuple(value for name, value in inputs.items() if _is_secret(compiled.plan, name))
    approved = frozenset(map(as_utf8, approve or ()))
    execution = Execution(session, engine, compiled, run_id, secrets, approved, approve_all)
    return execution.run(lambda approver: engine.resume(run_id, inputs=inputs, approver=approver))


@command(recover_app)
def recover(session: Session, *, sets: Sets = None, input_file: InputFile = None) -> int:
    """Go on with every run whose process has died.

    Exits 0 if each came to its end or a pause, 1 if one failed or could not be taken up.
    """
    store = session.known_store()
    if store is None:
        return _tell(session, Recovery())
    engine = session.engine(store=store)
    given = _given(sets, input_file)

    def inputs(plan: Plan) -> Mapping[str, Any]:
        own = {name: value for name, value in given.items() if name in plan.inputs}
        return {**secrets_in(os.environ, plan), **own}

    return _tell(session, run_in_loop(engine.recover(inputs=inputs)))


def _given(sets: list[str] | None, input_file: str | None) -> dict[str, Any]:
    given = read_object(input_file) if input_file is not None else {}
    return {**given, **assignments(sets or (), "--set")}


def _is_secret(plan: Plan, name: str) -> bool:
    return name in plan.inputs and plan.inputs[name].secret


def _tell(session: Session, recovery: Recovery) -> int:
    results = [
        {"run_id": result.run_id, "phase": result.phase, "outcome": result.outcome, "reason": result.reason}
        for result in recovery.results
    ]
    failed = [
        {"run_id": run_id, "error": {"code": error.code, "message": error.message, "hint": error.hint}}
        for run_id, error in recovery.failed.items()
    ]
    if session.json:
        session.output.document({"recovered": results, "failed": failed, "elsewhere": recovery.elsewhere})
    else:
        rows = [[str(each["run_id"]), str(each["outcome"]), _why(each["reason"])] for each in results]
        rows += [[run_id, "not taken up", error.message] for run_id, error in recovery.failed.items()]
        rows += [[run_id, "elsewhere", "another process took it up"] for run_id in recovery.elsewhere]
        text = table(["run", "outcome", "why"], rows, bounded=session.output.is_terminal) if rows else ""
        session.output.text(text or "no run was left behind")
        for result in recovery.results:
            if result.outcome == "paused" and result.resumable:
                session.output.note(f"run {result.run_id} is {session.follow_up.going_on(result)}")
    is_bad = recovery.failed or any(result.outcome == "failed" for result in recovery.results)
    return FAILED if is_bad else OK


def _why(reason: Any) -> str:
    return "" if reason is None else str(reason["message"])
