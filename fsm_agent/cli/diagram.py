"""`diagram`: the picture of the machine, or of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsm_agent.cli.encoding import as_utf8
from fsm_agent.cli.exits import BAD, OK
from fsm_agent.cli.options import command, new_app
from fsm_agent.cli.problems import is_valid, problems_text
from fsm_agent.cli.session import Session
from fsm_agent.errors import Problem, UsageError
from fsm_agent.journal.archive import Archive
from fsm_agent.plan.loader import check_plan
from fsm_agent.views.diagram import FORMATS, Diagram, Format, format_of, of_machine, of_plan, of_run, render

app = new_app()

MACHINE = "machine"


@command(app)
def diagram(
    session: Session,
    subject: Annotated[
        str | None, typer.Argument(metavar="machine|PLAN", help="The machine of phases, or a plan file.")
    ] = None,
    run_id: Annotated[str | None, typer.Option("--run", metavar="ID", help="A run of the store, as it stands.")] = None,
    form: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}. [dot]")
    ] = None,
    target: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here; its ending tells the format.")
    ] = None,
) -> int:
    """Draw the machine, a plan, or a run with what became of its tasks.

    SVG and PNG need Graphviz; DOT and Mermaid need nothing.
    """
    chosen = _format(form, target)
    if target is None and chosen == "png" and (session.json or session.output.is_terminal):
        raise UsageError("a PNG picture needs a file", hint="give -o FILE")
    if run_id is not None and subject is None:
        return _put(session, _of_run(session, as_utf8(run_id)), chosen, target, ())
    if subject is None or run_id is not None:
        raise UsageError(
            "name one: the machine, a plan, or a run", hint="diagram machine, diagram PLAN, diagram --run ID"
        )
    if subject == MACHINE:
        return _put(session, of_machine(), chosen, target, ())
    checked = check_plan(subject, session.any_skill)
    if checked.plan is None:
        return session.refuse(checked.problems)
    picture = of_plan(checked.plan, session.engine().catalog, checked.graph)
    return _put(session, picture, chosen, target, checked.problems)


def _of_run(session: Session, run_id: str) -> Diagram:
    loaded = Archive(session.run_store(run_id)).load(run_id)
    if not loaded.run.plan_version:
        raise UsageError(f"run {run_id!r} has no plan that could be drawn", hint="see runs show")
    return of_run(loaded.run.compiled, loaded.result(), session.engine().catalog)


def _format(form: str | None, target: Path | None) -> Format:
    if form is None:
        return format_of(target) if target is not None else "dot"
    if form not in FORMATS:
        raise UsageError(f"there is no format {form!r}", hint=f"one of {', '.join(FORMATS)}")
    return form


def _put(session: Session, picture: Diagram, form: Format, target: Path | None, problems: tuple[Problem, ...]) -> int:
    """Write the picture. A plan that is not valid is drawn all the same: the picture helps to mend it."""
    content = render(picture, form)
    if target is not None:
        _write(target, content)
    if session.json:
        place = {"file": str(target)} if target is not None else {"text": content.decode()}
        session.output.document({"diagram": {"format": form, **place}})
    elif target is None:
        session.output.raw(content)
    valid = is_valid(problems)
    if not valid:
        session.output.note(problems_text([problem for problem in problems if problem.severity == "error"]))
    return OK if valid else BAD


def _write(target: Path, content: bytes) -> None:
    try:
        target.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}", hint="check the path") from None
