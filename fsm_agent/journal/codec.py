"""Events as text, and back: what a store keeps of an event, and the checksum that runs through a journal.

A body is the JSON of an event's own fields, without defaults. Phases change more often than anything else happens, so
that their events are shorter: the array `[trigger, source, dest, guard]`, and of two that each task takes, one word.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any, Final, get_args

import msgspec
from msgspec.structs import force_setattr, replace

from fsm_agent.core.events import AnyEvent, Event, Phase, PhaseChanged, Trigger
from fsm_agent.errors import JournalBroken
from fsm_agent.journal.records import StoredEvent, stored_event

_Change = tuple[Trigger, Phase, Phase, str | None]

_USUAL: Final[dict[str, _Change]] = {
    "settled": ("settled", "executing", "evaluating", "something_to_judge"),
    "evaluated": ("evaluated", "evaluating", "executing", None),
}
"""The words, and what they stand for. Written journals speak of it: an entry may be added, none may be changed."""

_WORDS: Final = {change: json.dumps(word) for word, change in _USUAL.items()}
_CHANGES: Final = {json.dumps(word): change for word, change in _USUAL.items()}
_PHASE_CHANGED: Final = "phase_changed"

_NO_PLACE: Final[dict[str, Any]] = {
    field.name: field.default for field in msgspec.structs.fields(Event)
}  # the very objects: by them the encoder knows a default

_TAGS: Final = {kind: str(kind.__struct_config__.tag) for kind in get_args(AnyEvent)}
_PREFIXES: Final = {kind: len(f'{{"type":"{kind.__struct_config__.tag}"') for kind in get_args(AnyEvent)}
_DECODERS: Final = {str(kind.__struct_config__.tag): msgspec.json.Decoder(kind) for kind in get_args(AnyEvent)}
_change_decoder: Final = msgspec.json.Decoder(_Change)
_encoder: Final = msgspec.json.Encoder()
_place_bytes: Final = struct.Struct("<qd").pack


def encode(event: Event) -> StoredEvent:
    """An event as it is kept."""
    kind = type(event)
    body = _change_text(event) if type(event) is PhaseChanged else _body(event, _PREFIXES[kind])
    return stored_event((event.seq, float(event.at), _TAGS[kind], body))


def decode(stored: StoredEvent, run_id: str) -> Event:
    """The event that `encode` made this of. Raises JournalBroken for a type or a body that this program cannot read."""
    seq, at, kind, body = stored
    try:
        event = _decoded(kind, body)
    except (msgspec.MsgspecError, UnicodeError) as error:
        where = str(error).rpartition(" - at ")[2] if " - at " in str(error) else "its JSON"
        raise JournalBroken(run_id, f"what it holds does not fit the type {kind!r} ({where})", seq=seq) from None
    if event is None:
        hint = "a newer version of this package may have written it"
        raise JournalBroken(run_id, f"its type {kind[:100]!r} is not known", seq=seq, hint=hint)
    # Nobody else has the new event yet, frozen as it is.
    force_setattr(event, "seq", seq)
    force_setattr(event, "at", at)
    force_setattr(event, "run_id", run_id)
    return event


def checksum(previous: int, event: StoredEvent) -> int:
    """The checksum of a journal up to this event, given that of the events before it (0 for none).

    It tells that a journal was cut off or edited by hand. It is no signature.
    """
    seq, at, kind, body = event
    return zlib.crc32(_place_bytes(seq, at) + f"{kind}{body}".encode(), previous)


def _body(event: Event, prefix: int) -> str:
    bare = replace(event, **_NO_PLACE)
    try:
        text = _encoder.encode(bare).decode()
    except OverflowError:  # msgspec stops at 64 bits, JSON and Python do not
        fields = msgspec.to_builtins(bare)
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "{" + text[prefix + 1 :] if text[prefix] == "," else "{}"


def _change_text(event: PhaseChanged) -> str:
    change = (event.trigger, event.source, event.dest, event.guard)
    return _WORDS.get(change) or _encoder.encode(change).decode()


def _decoded(kind: str, body: str) -> Event | None:
    if kind == _PHASE_CHANGED:
        trigger, source, dest, guard = _CHANGES.get(body) or _change_decoder.decode(body)
        return PhaseChanged(trigger=trigger, source=source, dest=dest, guard=guard)
    decoder = _DECODERS.get(kind)
    return decoder.decode(body) if decoder is not None else None
