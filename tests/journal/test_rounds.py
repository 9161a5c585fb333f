"""One row for two events, of which nobody but the store knows."""

from __future__ import annotations

import pytest
from msgspec import structs

from fsm_agent.core import events as ev
from fsm_agent.journal.codec import encode
from fsm_agent.journal.records import Batch, StoredEvent
from fsm_agent.journal.rounds import packed, unpacked
from fsm_agent.journal.sql_store import SqlStore
from tests.journal.writing import LONG, ME, STARTED, query

THERE = ev.PhaseChanged(trigger="settled", source="executing", dest="evaluating", guard="something_to_judge")
BACK = ev.PhaseChanged(trigger="evaluated", source="evaluating", dest="executing")
SKIPPED = ev.TaskSkipped(task="a")


def kept(*events: ev.Event, first: int = 1, at: float = 1000.0) -> tuple[StoredEvent, ...]:
    """These events, all at one moment."""
    return tuple(encode(structs.replace(event, seq=seq, at=at)) for seq, event in enumerate(events, first))


JOURNAL = kept(STARTED, SKIPPED, THERE, BACK, SKIPPED, THERE, BACK)


def test_there_and_back_is_one_row() -> None:
    assert [row.seq for row in packed(JOURNAL)] == [1, 2, 3, 5, 6]


def test_what_was_packed_comes_out_as_it_was() -> None:
    assert tuple(unpacked(packed(JOURNAL))) == JOURNAL


@pytest.mark.parametrize(
    "events",
    [
        (*kept(THERE), *kept(BACK, first=2, at=1001.0)),  # not at one moment
        kept(BACK, THERE),
        kept(THERE, SKIPPED, BACK),
        kept(THERE, structs.replace(BACK, dest="completed", guard="all_settled_and_criteria_hold")),
    ],
)
def test_anything_else_keeps_its_rows(events: tuple[StoredEvent, ...]) -> None:
    assert tuple(packed(events)) == events


@pytest.fixture
def written(store: SqlStore) -> SqlStore:
    """A store with that journal in it."""
    store.create("r", ME, LONG, Batch(JOURNAL, 1, "executing"))
    return store


def test_a_store_gives_any_part_of_a_journal(written: SqlStore) -> None:
    size = len(JOURNAL)
    for after in range(size + 2):
        for upto in range(size + 2):
            assert tuple(written.events("r", after, upto)) == JOURNAL[after:upto], (after, upto)
        assert tuple(written.events("r", after)) == JOURNAL[after:]


def test_the_view_shows_single_events(written: SqlStore) -> None:
    rows = query(written, "SELECT seq, at, type, body FROM events WHERE run_id = 'r' ORDER BY seq")
    assert [StoredEvent(seq, at, kind, body) for seq, at, kind, body in rows] == list(JOURNAL)
