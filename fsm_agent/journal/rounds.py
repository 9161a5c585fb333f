"""One row for two events: after each verdict the run goes to *evaluating* and back, and most of a journal is that.

Nobody but a store knows of it: what it is given and what it gives are single events. The views show single events too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fsm_agent.journal.records import StoredEvent, stored_event

_TYPE: Final = "phase_changed"
_THERE: Final = '"settled"'
_BACK: Final = '"evaluated"'
_ROUND: Final = '"round"'
"""The body of such a row, which has the `seq` of the first of the two. The views speak of it, and written stores."""


def packed(events: Sequence[StoredEvent]) -> list[StoredEvent]:
    """The rows that keep these events."""
    rows: list[StoredEvent] = []
    for event in events:
        if event.body == _BACK and event.type == _TYPE and rows:
            before = rows[-1]
            if before.body == _THERE and before.type == _TYPE and before.at == event.at:
                rows[-1] = stored_event((before.seq, before.at, _TYPE, _ROUND))
                continue
        rows.append(event)
    return rows


def unpacked(rows: Iterable[tuple[int, float, str, str]]) -> list[StoredEvent]:
    """The events that these rows keep."""
    events: list[StoredEvent] = []
    add = events.append
    for row in rows:
        if row[3] == _ROUND and row[2] == _TYPE:
            seq, at, _, _ = row
            add(stored_event((seq, at, _TYPE, _THERE)))
            add(stored_event((seq + 1, at, _TYPE, _BACK)))
        else:
            add(stored_event(row))
    return events
