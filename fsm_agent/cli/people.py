"""What people tell runs of the store: pause, cancel, approve, reject, decide."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any, Final

import typer

from fsm_agent.cli.consent import user
from fsm_agent.cli.data_files import json_or_text
from fsm_agent.cli.encoding import as_utf8
from fsm_agent.cli.exits import BY_OUTCOME, CANCELLED, OK
from fsm_agent.cli.inputs import secrets_of_any_plan
from fsm_agent.cli.loop import run_in_loop
from fsm_agent.cli.options import command, new_app
from fsm_agent.cli.session import Session
from fsm_agent.core.approvals import ALLOWED
from fsm_agent.core.machine import FINAL
from fsm_agent.core.result import RunResult
from fsm_agent.errors import UsageError
from fsm_agent.journal.store import Store

pause_app = new_app()
cancel_app = new_app()
approve_app = new_app()
reject_app = new_app()
decide_app = new_app()

RunId = Annotated[str, typer.Argument(metavar="ID", help="The run.")]
By = Annotated[str | None, typer.Option(metavar="NAME", help="Who says so. [you]")]
Why = Annotated[str | None, typer.Option(metavar="TEXT", help="Why.")]
Which = Annotated[
    str | None, typer.Argument(metavar="TASK|APPROVAL", help="The task, or the approval's id where several wait.")
]
OfPlan = Annotated[bool, typer.Option("--plan", help="The plan itself.")]

PATIENCE: Final = 3.0
"""How long a run that another process drives may take to hear of its end, in seconds."""
_LOOK: Final = 0.05


@command(pause_app)
def pause(session: Session, run_id: RunId, *, by: By = None, why: Why = None) -> int:
    """Ask the process that drives a run to pause it. What runs may finish first."""
    run_id = as_utf8(run_id)
    store = session.run_store(run_id)
    rests = store.head(run_id).phase == "paused"
    engine = session.engine(store=store)
    run_in_loop(engine.pause(run_id, by=_who(by), why=_text(why), inputs=secrets_of_any_plan(os.environ)))
    return _said(session, run_id, "the run is paused already" if rests else "a pause was asked for")


@command(cancel_app)
def cancel(session: Session, run_id: RunId, *, by: By = None, why: Why = None) -> int:
    """End a run: here and now, or by the process that drives it.

    Its clean-up tasks still run. Exits 4 once it is cancelled, 0 if it was asked for and takes longer.
    """
    run_id = as_utf8(run_id)
    store = session.run_store(run_id)
    engine = session.engine(store=store)
    ending = engine.cancel(run_id, by=_who(by), why=_text(why), inputs=secrets_of_any_plan(os.environ))
    result: RunResult | None = run_in_loop(ending)
    if result is not None:
        _said(session, run_id, f"the run is {result.phase}")
        return BY_OUTCOME[result.outcome]
    phase = _wait_for_its_end(store, run_id)
    if phase is None:
        return _said(session, run_id, "its end was asked for; calls that are under way still take their time")
    _said(session, run_id, f"the run has {'been ' if phase == 'cancelled' else ''}{phase}")
    return CANCELLED if phase == "cancelled" else OK


def _wait_for_its_end(store: Store, run_id: str) -> str | None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        phase = store.head(run_id).phase
        if phase in FINAL:
            return phase
        time.sleep(_LOOK)
    return None


@command(approve_app)
def approve(
    session: Session, run_id: RunId, which: Which = None, *, plan: OfPlan = False, by: By = None, why: Why = None
) -> int:
    """Approve what a run waits for. Whoever drives it goes on; else `resume` does."""
    return _decide(session, run_id, which, plan, "approve", by, why, None)


@command(reject_app)
def reject(
    session: Session, run_id: RunId, which: Which = None, *, plan: OfPlan = False, by: By = None, why: Why = None
) -> int:
    """Reject what a run waits for: the task fails, or the plan."""
    return _decide(session, run_id, which, plan, "reject", by, why, None)


@command(decide_app)
def decide(
    session: Session,
    run_id: RunId,
    which: Annotated[str, typer.Argument(metavar="TASK|APPROVAL", help="The task, or the approval's id.")],
    decision: Annotated[str, typer.Argument(metavar="rerun|done|skip|fail", help="What is to become of it.")],
    *,
    by: By = None,
    why: Why = None,
    result: Annotated[
        str | None, typer.Option(metavar="JSON", help="With `done`: the data of the task, JSON, else text.")
    ] = None,
) -> int:
    """Decide about a task that failed, or whose call was interrupted."""
    words = ALLOWED["failed"]
    if decision not in words:
        raise UsageError(f"{decision!r} is no decision about a task", hint=f"one of: {', '.join(words)}")
    if result is not None and decision != "done":
        raise UsageError("--result goes with `done`")
    data = _data(as_utf8(result)) if result is not None else None
    return _decide(session, run_id, which, False, decision, by, why, data)


def _data(text: str) -> Any:
    """JSON, else text. What begins as JSON and is none is a slip of the keyboard: a decision is final."""
    data = json_or_text(text)
    if isinstance(data, str) and text.lstrip()[:1] in ("{", "[", '"') and data == text:
        raise UsageError("--result begins as JSON, and is none", hint="""such as --result '{"paid": 120}'""")
    return data


def _decide(
    session: Session,
    run_id: str,
    which: str | None,
    plan: bool,
    decision: str,
    by: str | None,
    why: str | None,
    result: Any,
) -> int:
    run_id, which = as_utf8(run_id), _text(which)
    if plan == (which is not None):
        raise UsageError("name one: a task, an approval, or --plan")
    engine = session.engine(store=session.run_store(run_id))
    known = secrets_of_any_plan(os.environ)
    run_in_loop(engine.decide(run_id, which, decision, by=_who(by), why=_text(why), result=result, inputs=known))
    return _said(session, run_id, f"{'the plan' if plan else which}: {decision}, recorded", how=decision)


def _who(by: str | None) -> str:
    return as_utf8(by) if by is not None else user()


def _text(text: str | None) -> str | None:
    return as_utf8(text) if text is not None else None


def _said(session: Session, run_id: str, text: str, *, how: str | None = None) -> int:
    if session.json:
        session.output.document({"run_id": run_id, "message": text, **({"decision": how} if how else {})})
    else:
        session.output.text(text)
    return OK
