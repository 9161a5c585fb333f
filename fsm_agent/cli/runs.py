"""`runs`, `fork` and `replay`: what is in the store."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fsm_agent.cli.data_files import labels_of
from fsm_agent.cli.encoding import as_utf8
from fsm_agent.cli.exits import OK
from fsm_agent.cli.options import command, new_app, remember
from fsm_agent.cli.output import to_json
from fsm_agent.cli.results import shown
from fsm_agent.cli.session import Session
from fsm_agent.cli.summary import summary_text
from fsm_agent.cli.tables import facts, table
from fsm_agent.core.events import Event
from fsm_agent.core.machine import PHASES
from fsm_agent.engine.options import check_options
from fsm_agent.errors import UsageError
from fsm_agent.journal.archive import Archive, Listed
from fsm_agent.journal.export import bring_in, export
from fsm_agent.redaction import Redactor
from fsm_agent.views.explain import explain, explanation_text
from fsm_agent.views.text import one_line

app = new_app(help="Look at the runs that are kept, and clear them away.")
app.callback()(remember)
fork_app = new_app()
replay_app = new_app()

RunId = Annotated[str, typer.Argument(metavar="ID", help="The run.")]
NewId = Annotated[str | None, typer.Option("--run-id", metavar="ID", help="The new run's id.")]

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@command(app, "list")
def list_runs(
    session: Session,
    *,
    phase: Annotated[str | None, typer.Option(metavar="PHASE", help="Only those in this phase.")] = None,
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only those with this label.")] = None,
    most: Annotated[int, typer.Option("--most", metavar="N", min=1, help="At most so many.")] = 50,
) -> int:
    """List the runs, the latest first."""
    wanted = labels_of(label or ())
    if phase is not None and phase not in PHASES:
        raise UsageError(f"there is no phase {phase!r}", hint=f"one of: {', '.join(PHASES)}")
    store = session.known_store()
    found = iter(()) if store is None else Archive(store).runs(phase)
    fitting = (run for run in found if all(run.labels.get(key) == value for key, value in wanted.items()))
    chosen = list(islice(fitting, most))
    if session.json:
        session.output.document({"runs": [run.to_json() for run in chosen]})
        return OK
    rows = [[run.run_id, _state(run), _moment(run.created), str(run.events), run.goal or ""] for run in chosen]
    head = ["run", "phase", "created", "events", "goal"]
    session.output.text(table(head, rows, bounded=session.output.is_terminal) if rows else "no runs")
    return OK


def _under_way(session: Session, run: Listed) -> str | None:
    """How a run stands that does not rest: who drives it, or what may be done since nobody does."""
    if run.driver is not None:
        return f"{run.phase}, driven by {run.driver}"
    if run.left_behind:
        return f"{run.phase}, and nobody drives it: {session.follow_up.command('resume', run.run_id)}"
    return None


def _state(run: Listed) -> str:
    if run.broken:
        return f"{run.phase}, broken"
    if run.left_behind:
        return f"{run.phase}, left behind"
    return f"{run.phase}, driven" if run.driver else run.phase


@command(app, "show")
def show_run(
    session: Session,
    run_id: RunId,
    *,
    at: Annotated[int | None, typer.Option("--at", metavar="SEQ", help="As it was after this event.")] = None,
) -> int:
    """Show a run: now, or as it was after one of its events."""
    archive = _archive(session, run_id)
    document = shown(archive.show(as_utf8(run_id), at), Redactor())
    if session.json:
        session.output.document(document)
        return OK
    listed = archive.listed(as_utf8(run_id))
    state = _under_way(session, listed) if at is None else None
    session.output.text(summary_text(document, bounded=session.output.is_terminal, state=state))
    return OK


@command(app, "events")
def run_events(
    session: Session,
    run_id: RunId,
    *,
    after: Annotated[int, typer.Option(metavar="SEQ", help="Only those after this one.")] = 0,
) -> int:
    """List the events of a run."""
    events = _archive(session, run_id).events(as_utf8(run_id), after)
    redactor = Redactor()
    if session.json:
        session.output.document({"events": [redactor.value(event.to_json()) for event in events]})
        return OK
    rows = [
        [str(event.seq), _moment(event.at), event.type, event.task or "", _rest(event, redactor)] for event in events
    ]
    session.output.text(table(["seq", "at", "type", "task", "what"], rows, bounded=session.output.is_terminal))
    return OK


def _rest(event: Event, redactor: Redactor) -> str:
    known = event.to_json()
    rest = {key: value for key, value in known.items() if key not in ("type", "seq", "at", "run_id", "task")}
    return one_line(" ".join(f"{key}={_short(value)}" for key, value in redactor.value(rest).items()))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else to_json(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


@command(app, "explain")
def explain_task(
    session: Session, run_id: RunId, task: Annotated[str, typer.Argument(metavar="TASK", help="The task.")]
) -> int:
    """Explain why a task ran, waits, or was not taken: by which guard or join, and which values."""
    archive, run_id = _archive(session, run_id), as_utf8(run_id)
    events = list(archive.events(run_id))
    found = explain(events, archive.moments(run_id, events), as_utf8(task), redactor=Redactor())
    if session.json:
        session.output.document(found.to_json())
    else:
        session.output.text(explanation_text(found))
    return OK


@command(app, "prune")
def prune_runs(
    session: Session,
    *,
    older_than: Annotated[
        str, typer.Option(metavar="TIME", help="Only runs that ended so long ago: 30d, 12h, 90m, 0s.")
    ] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell which.")] = False,
) -> int:
    """Remove runs that are over. What is not over stays."""
    seconds = _seconds(older_than)
    store = session.known_store()
    gone = [] if store is None else Archive(store).prune(time.time() - seconds, dry=dry_run)
    if session.json:
        session.output.document({"removed": [] if dry_run else gone, "would_remove": gone if dry_run else []})
        return OK
    word = "would be removed" if dry_run else "removed"
    session.output.text("\n".join([*gone, f"{len(gone)} {'run' if len(gone) == 1 else 'runs'} {word}"]))
    return OK


def _seconds(text: str) -> float:
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.isdecimal():
        return int(number) * _UNITS[unit]
    raise UsageError("--older-than takes a number with s, m, h or d", hint="such as --older-than 30d")


@command(app, "export")
def export_run(
    session: Session,
    run_id: RunId,
    *,
    target: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here.")] = None,
) -> int:
    """Write a run as JSON Lines: its plans and its events, to be imported elsewhere."""
    lines = list(export(_archive(session, run_id), as_utf8(run_id)))
    content = "".join(f"{line}\n" for line in lines).encode()
    if target is None:
        session.output.raw(content)
        return OK
    try:
        target.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}", hint="check the path") from None
    return _told(session, {"run_id": as_utf8(run_id), "file": str(target)}, f"{len(lines)} lines written to {target}")


@command(app, "import")
def import_run(
    session: Session,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An exported run.")],
    *,
    run_id: NewId = None,
) -> int:
    """Bring in a run that was exported elsewhere. All of it is checked first."""
    try:
        lines: Iterable[str] = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise UsageError(f"{file} cannot be read: {why}", hint="check the path") from None
    found = bring_in(Archive(session.store()), lines, _new_id(run_id))
    return _told(session, {"run_id": found}, f"run {found} is here")


@command(fork_app)
def fork(
    session: Session,
    run_id: RunId,
    *,
    at: Annotated[int, typer.Option("--at", metavar="SEQ", help="The last event that the new run has of this one.")],
    new_id: NewId = None,
) -> int:
    """Make a new run out of a run's past. Resume it to go on from there."""
    new = _new_id(new_id) or uuid.uuid4().hex
    _archive(session, run_id).fork(as_utf8(run_id), at, new)
    return _told(
        session,
        {"run_id": new, "source": as_utf8(run_id), "at": at},
        f"run {new}; {session.follow_up.command('resume', new)}",
    )


@command(replay_app)
def replay(session: Session, run_id: RunId) -> int:
    """Fold a run's whole journal through the machine again, and say whether it holds."""
    found = _archive(session, run_id).replay(as_utf8(run_id))
    known = {"run_id": found.run_id, "holds": True, "events": found.events, "transitions": found.transitions}
    text = {"run": found.run_id, "events": str(found.events), "transitions": str(found.transitions)}
    return _told(session, {**known, "phase": found.result.phase}, f"the journal holds\n{facts(text)}")


def _archive(session: Session, run_id: str) -> Archive:
    return Archive(session.run_store(as_utf8(run_id)))


def _new_id(text: str | None) -> str | None:
    return check_options({"run_id": as_utf8(text)}).run_id if text is not None else None


def _told(session: Session, document: dict[str, Any], text: str) -> int:
    if session.json:
        session.output.document(document)
    else:
        session.output.text(text)
    return OK


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
