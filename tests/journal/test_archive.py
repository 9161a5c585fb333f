"""Stored runs that are copied: by export and import, and by a fork. On both databases."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fsm_agent.errors import RunExists, UnknownRun, UsageError
from fsm_agent.journal.archive import Archive
from fsm_agent.journal.export import bring_in, export
from fsm_agent.journal.sql_store import SqlStore
from tests.journal.conftest import Open
from tests.journal.runs import LOOPING, driven, engine, shown


@pytest.fixture
def elsewhere(tmp_path: Path, opened: Open) -> SqlStore:
    """Another empty store."""
    return opened(f"sqlite:///{tmp_path}/elsewhere.db")


def through_export(source: SqlStore, target: SqlStore, new_id: str | None = None) -> str:
    return bring_in(Archive(target), list(export(Archive(source), "r")), new_id)


def test_what_was_exported_and_brought_in_is_exported_byte_for_byte_the_same(
    store: SqlStore, elsewhere: SqlStore
) -> None:
    driven(store)
    lines = list(export(Archive(store), "r"))
    bring_in(Archive(elsewhere), lines)
    assert list(export(Archive(elsewhere), "r")) == lines
    bring_in(Archive(store), export(Archive(elsewhere), "r"), "copy")
    again = list(export(Archive(store), "copy"))
    assert again[1:] == lines[1:]
    assert again[0] == lines[0].replace('"r"', '"copy"')


@pytest.mark.parametrize("approves", [True, False])
def test_people_see_of_a_run_that_was_brought_in_what_they_see_of_the_one_that_was_driven(
    store: SqlStore, elsewhere: SqlStore, approves: bool
) -> None:
    result, _ = driven(store, approver=(lambda _: True) if approves else None)
    assert result.phase == ("completed" if approves else "paused")
    through_export(store, elsewhere)
    through_export(store, store, "copy")
    assert shown(elsewhere, "r") == shown(store, "copy") == shown(store, "r")


def test_at_any_moment_people_see_of_a_copy_what_they_saw_of_the_run_itself(
    store: SqlStore, elsewhere: SqlStore
) -> None:
    """Also of tasks that a jump has reset, and of those under way."""
    seen = {}

    def look(event: object) -> None:
        seen[store.head("r").seq] = shown(store, "r")

    made = engine(store, listeners=[look])

    async def main() -> None:
        async for _ in made.stream(LOOPING, run_id="r", labels={"team": "一"}, approver=lambda _: True):
            pass

    asyncio.run(main())
    archive = Archive(store)
    stored = list(store.events("r"))
    assert len(seen) > 20
    for at, (run, tasks) in seen.items():
        if run["version"]:
            Archive(elsewhere).bring_in(str(at), stored[:at], archive.plans_of(stored[:at]))
            assert shown(elsewhere, str(at)) == ({**run, "changed": stored[at - 1].at}, tasks), f"after event {at}"


def test_people_see_of_a_fork_what_they_saw_of_the_run_then(store: SqlStore) -> None:
    paused, _ = driven(store)
    assert paused.phase == "paused"
    upto = store.head("r").seq
    then = shown(store, "r")
    made = engine(store, approver=lambda _: True)
    assert asyncio.run(made.resume("r")).completed
    forked = Archive(store).fork("r", upto, "f")
    assert forked.phase == "paused"
    assert shown(store, "f") == then
    assert shown(store, "r") != then


def test_a_fork_that_goes_on_shows_what_the_run_itself_came_to(store: SqlStore) -> None:
    driven(store)
    Archive(store).fork("r", store.head("r").seq, "f")
    made = engine(store, approver=lambda _: True)
    timeless = []
    for run_id in ("r", "f"):
        assert asyncio.run(made.resume(run_id)).completed
        run, tasks = shown(store, run_id)
        moments = ("started", "finished", "changed")
        timeless.append(
            (
                {key: run[key] for key in run if key not in moments},
                [{key: task[key] for key in task if key not in moments} for task in tasks],
            )
        )
    assert timeless[0] == timeless[1]


def test_a_fork_is_exported_and_brought_in_as_any_run(store: SqlStore, elsewhere: SqlStore) -> None:
    driven(store)
    Archive(store).fork("r", store.head("r").seq, "f")
    lines = list(export(Archive(store), "f"))
    assert bring_in(Archive(elsewhere), lines) == "f"
    assert list(export(Archive(elsewhere), "f")) == lines
    assert Archive(elsewhere).replay("f").result == Archive(store).replay("f").result


def test_a_copy_does_not_write_over_a_run_that_is_there(store: SqlStore) -> None:
    driven(store)
    before = shown(store, "r")
    archive = Archive(store)
    lines = list(export(archive, "r"))
    for copy in (lambda: bring_in(archive, lines), lambda: archive.fork("r", store.head("r").seq, "r")):
        with pytest.raises(RunExists):
            copy()
    assert shown(store, "r") == before


def test_what_is_not_there_is_not_copied(store: SqlStore) -> None:
    driven(store)
    archive = Archive(store)
    with pytest.raises(UnknownRun):
        list(export(archive, "nobody"))
    with pytest.raises(UnknownRun):
        archive.fork("nobody", 1, "f")
    with pytest.raises(UsageError):
        archive.fork("r", 99_999, "f")
    with pytest.raises(UsageError, match="no plan yet"):
        archive.fork("r", 1, "f")
    assert [head.run_id for head in store.heads()] == ["r"]
