"""One run as JSON Lines: a header, its plans, its events, and a trailer by which one sees that nothing is missing.

{"fsm_agent_run": 1, "schema_version": 1, "run_id": "…", "events": 37}
{"plan": {…}, "digest": "…"}
{"type": "run_started", "seq": 1, "at": …, …}
…
{"end": 37, "checksum": …}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from fsm_agent.core.events import SCHEMA_VERSION, AnyEvent
from fsm_agent.errors import JournalBroken, StoreTooNew, UsageError
from fsm_agent.journal import codec
from fsm_agent.journal.archive import Archive
from fsm_agent.journal.loading import digest_of_plan
from fsm_agent.journal.records import StoredEvent, StoredPlan
from fsm_agent.jsonable import encode

FORM: Final = 1
"""The version of the lines' form."""
_decoder = msgspec.json.Decoder(AnyEvent)


def export(archive: Archive, run_id: str) -> Iterator[str]:
    """The lines of a run, without line breaks. Raises UnknownRun, JournalBroken: a broken journal is not passed on."""
    loaded = archive.load(run_id, None)
    stored = loaded.stored
    header = {"fsm_agent_run": FORM, "schema_version": SCHEMA_VERSION, "run_id": run_id, "events": len(stored)}
    yield encode(header).decode()
    for plan in archive.plans_of(stored):
        yield f'{{"plan":{plan.body},"digest":{encode(plan.digest).decode()}}}'
    for event in stored:
        named = codec.decode(event, run_id).to_json()
        del named["run_id"]
        yield encode(named).decode()
    yield encode({"end": len(stored), "checksum": loaded.checksum}).decode()


def bring_in(archive: Archive, lines: Iterable[str], new_id: str | None = None) -> str:
    """Write an exported run into a store, under its own id or another. Returns the id.

    Nothing is written unless all of it is there, is what was exported, and folds. Raises UsageError for what is no
    export, JournalBroken, StoreTooNew, RunExists.
    """
    rows = _parsed(lines)
    header = rows[0] if rows else {}
    run_id = header.get("run_id")
    forms = (header.get("fsm_agent_run"), header.get("schema_version", 0))
    if not isinstance(run_id, str) or not all(type(form) is int for form in forms):
        raise UsageError("this is no exported run", hint="it is written by `runs export`")
    if header["fsm_agent_run"] > FORM or header.get("schema_version", 0) > SCHEMA_VERSION:
        raise StoreTooNew("the run was exported by a newer version of fsm-agent", hint="use that version to import it")
    end = rows[-1]
    plans = [row for row in rows[1:-1] if "plan" in row]
    named = [row for row in rows[1:-1] if "plan" not in row]
    if "end" not in end or end["end"] != header.get("events") or len(named) != end["end"]:
        raise JournalBroken(run_id, f"it has {len(named)} events where its header says {header.get('events')}")
    stored = [_stored(run_id, row, place) for place, row in enumerate(named, 1)]
    total = 0
    for event in stored:
        total = codec.checksum(total, event)
    if total != end.get("checksum"):
        raise JournalBroken(run_id, "its events are not those that were exported")
    archive.bring_in(new_id or run_id, stored, [_plan(run_id, row) for row in plans])
    return new_id or run_id


def _parsed(lines: Iterable[str]) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise UsageError(f"line {number} is no JSON object", hint="the file was cut off, or is no exported run")
        rows.append(row)
    return rows


def _stored(run_id: str, row: dict[str, Any], place: int) -> StoredEvent:
    if row.get("seq") != place:
        raise JournalBroken(run_id, f"event {place} is missing", seq=place)
    try:
        return codec.encode(_decoder.decode(encode(row)))
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise JournalBroken(run_id, f"it is no event ({type(error).__name__})", seq=place) from error


def _plan(run_id: str, row: dict[str, Any]) -> StoredPlan:
    plan, digest = row["plan"], row.get("digest")
    if not isinstance(plan, dict) or digest_of_plan(plan) != digest:
        raise JournalBroken(run_id, "its plan is not the one that was exported")
    return StoredPlan(digest, encode(plan).decode())
