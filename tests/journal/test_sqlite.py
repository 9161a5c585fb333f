"""A store in SQLite: what can go wrong with a file."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fsm_agent.clock import SystemClock
from fsm_agent.core import events as ev
from fsm_agent.errors import NotAStore, StoreBusy, StoreTooNew, StoreUnavailable
from fsm_agent.journal import schema
from fsm_agent.journal.opening import open_store
from fsm_agent.journal.records import TaskRow
from fsm_agent.journal.sql_store import SqlStore
from fsm_agent.journal.sqlite import APPLICATION_ID, SqliteDatabase
from tests.journal import processes
from tests.journal.conftest import Open
from tests.journal.writing import LONG, ME, STARTED, YOU, Pen, logged, plan_of, query


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def store(url: str, opened: Open) -> SqlStore:
    return opened(url, busy_timeout=0.3)


def plain(path: Path) -> sqlite3.Connection:
    """Somebody else's connection."""
    return sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)


def ask_in_vain(store: SqlStore) -> None:
    with pytest.raises(StoreBusy):
        store.ask("r", "pause", "{}", at=1.0)


# Others who write ---------------------------------------------------------------------------------------------------


def test_a_commit_waits_for_no_lock_and_may_be_made_again(store: SqlStore, path: Path) -> None:
    pen = Pen()
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    batch = pen.batch(logged())
    other = plain(path)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(StoreBusy, match=r"runs\.db"):
        store.commit(lease, batch)
    assert time.monotonic() - began < 0.2
    other.execute("ROLLBACK")
    assert store.head("r").seq == 1
    store.commit(lease, batch)
    assert store.events("r") == pen.written
    other.close()


def test_a_commit_does_not_wait_for_a_call_of_another_thread_that_waits(store: SqlStore, path: Path) -> None:
    pen = Pen()
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    other = plain(path)
    other.execute("BEGIN IMMEDIATE")
    waiting = threading.Thread(target=ask_in_vain, args=(store,))
    waiting.start()
    began = time.monotonic()
    with pytest.raises(StoreBusy):
        store.commit(lease, pen.batch(logged()))
    assert time.monotonic() - began < 0.2
    waiting.join()
    other.close()


WAITING: list[Callable[[SqlStore], Any]] = [
    lambda store: store.create("new", ME, LONG, Pen("new").batch(STARTED)),
    lambda store: store.acquire("free", YOU, LONG),
    lambda store: store.ask("r", "pause", "{}", at=1.0),
    lambda store: store.remove(["free"]),
]


@pytest.mark.parametrize("call", WAITING)
def test_other_calls_wait_for_the_lock_as_long_as_they_are_to(store: SqlStore, path: Path, call: Any) -> None:
    store.create("r", ME, LONG, Pen().batch(STARTED))
    store.bring_in("free", Pen("free").batch(STARTED), 1.0)
    other = plain(path)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(StoreBusy):
        call(store)
    assert 0.25 <= time.monotonic() - began < 5
    timer = threading.Timer(0.1, lambda: other.execute("COMMIT"))
    timer.start()
    call(store)
    timer.join()
    other.close()


def test_readers_wait_for_nobody(store: SqlStore, path: Path, opened: Open, url: str) -> None:
    pen = Pen()
    store.create("r", ME, LONG, pen.batch(STARTED))
    other = plain(path)
    other.execute("BEGIN EXCLUSIVE")
    assert opened(url).events("r") == pen.written
    assert [head.run_id for head in store.heads()] == ["r"]
    other.close()


def test_many_processes_write_to_one_file_while_others_read(store: SqlStore, path: Path) -> None:
    url = f"sqlite:///{path}?busy_timeout=60"
    others = [processes.begin("drive", url, f"p{number}", "50") for number in range(8)]
    seen: dict[str, int] = {}
    last = -1
    while any(process.poll() is None for process in others):
        news = store.news()
        if news == last:
            time.sleep(0.005)
            continue
        last = news
        for head in store.heads():
            assert head.seq >= seen.get(head.run_id, 0)
            seen[head.run_id] = head.seq
        some = max(seen, default="")
        if some:
            assert [event.seq for event in store.events(some)] == list(range(1, len(list(store.events(some))) + 1))
    for process in others:
        processes.end(process)
    heads = store.heads()
    assert len(heads) == 400
    assert {(head.seq, head.phase, head.driver) for head in heads} == {(12, "completed", None)}
    assert query(store, "SELECT count(*) FROM journal") == [(4800,)]
    assert query(store, "PRAGMA integrity_check") == [("ok",)]


def test_processes_may_open_a_new_store_at_once(path: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a/b/new.db?busy_timeout=60"
    others = [processes.launched("drive", url, f"p{number}", "1") for number in range(6)]
    for process in others:
        processes.end(process)
    store = open_store(tmp_path / "a/b/new.db")
    assert len(store.heads()) == 6
    store.close()


def test_of_a_process_that_is_killed_while_it_writes_whole_batches_are_left(store: SqlStore, url: str) -> None:
    for number in range(3):
        process = processes.begin("hold", url, f"r{number}")
        processes.line_of(process)
        time.sleep(0.1 + number / 30)
        processes.kill(process)
        head = store.head(f"r{number}")
        assert [event.seq for event in store.events(f"r{number}")] == list(range(1, head.seq + 1))
        assert head.seq > 1
        processes.bury(process)
    assert query(store, "PRAGMA integrity_check") == [("ok",)]


# Disks --------------------------------------------------------------------------------------------------------------


def test_a_full_disk_loses_nothing_and_when_there_is_room_again_the_store_goes_on(store: SqlStore) -> None:
    pen = Pen()
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    pages = query(store, "PRAGMA page_count")[0][0]
    query(store, f"PRAGMA max_page_count = {pages + 5}")
    batch = pen.batch(logged(), logged("much " * 20_000))
    with pytest.raises(StoreUnavailable, match="full") as refused:
        store.commit(lease, batch)
    assert "room" in refused.value.hint
    with pytest.raises(StoreUnavailable, match="full"):
        store.create("s", ME, LONG, Pen("s").batch(STARTED, logged("much " * 20_000)))
    assert [event.seq for event in store.events("r")] == [1]
    assert [head.run_id for head in store.heads()] == ["r"]
    query(store, "PRAGMA max_page_count = 100000")
    store.commit(lease, batch)
    assert store.events("r") == pen.written


def test_where_no_write_ahead_log_can_be_kept_one_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteDatabase, "_ask_for_wal", lambda self, con: "delete")
    with pytest.raises(StoreUnavailable, match="write-ahead log") as refused:
        open_store(path)
    assert "network filesystems" in refused.value.hint


# Files of others ----------------------------------------------------------------------------------------------------


def of_another_program(path: Path) -> None:
    con = plain(path)
    con.execute("CREATE TABLE runs (id)")
    con.close()


def of_another_application(path: Path) -> None:
    con = plain(path)
    con.execute("PRAGMA application_id = 77")
    con.execute("PRAGMA user_version = 1")
    con.close()


def a_text(path: Path) -> None:
    path.write_text("no database at all\n" * 1000, encoding="utf-8")


def a_damaged_one(path: Path) -> None:
    SqlStore(SqliteDatabase(path, SystemClock())).close()
    content = bytearray(path.read_bytes())
    content[100:4000] = b"\xff" * 3900
    path.write_bytes(content)


@pytest.mark.parametrize("made", [of_another_program, of_another_application, a_text, a_damaged_one])
def test_a_file_that_is_no_store_is_refused_and_not_changed(made: Callable[[Path], None], path: Path) -> None:
    made(path)
    before = path.read_bytes()
    with pytest.raises(NotAStore, match=r"runs\.db") as refused:
        open_store(path)
    assert "nothing in it was changed" in refused.value.hint
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["runs.db"]


def test_a_store_whose_tables_were_taken_away_is_none(store: SqlStore) -> None:
    query(store, "DROP TABLE request")
    with pytest.raises(NotAStore):
        store.requests(["r"])


# Versions -----------------------------------------------------------------------------------------------------------


MORE = """
CREATE TABLE note (run integer NOT NULL, text text NOT NULL);

CREATE TRIGGER note_is_kept BEFORE DELETE ON note
BEGIN
    SELECT RAISE(ABORT, 'notes are kept; always');
END;

INSERT INTO note SELECT number, 'from before; as it was' FROM run_state;
"""


def opened_with(path: Path, *more: str) -> SqlStore:
    """By a version of the package that knows more."""
    return SqlStore(SqliteDatabase(path, SystemClock(), steps=[*schema.scripts("sqlite"), *more]))


def test_a_store_says_in_its_file_what_it_is(store: SqlStore) -> None:
    assert query(store, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert query(store, "PRAGMA user_version") == [(1,)]
    assert query(store, "SELECT * FROM about") == [("fsm-agent", 1)]
    assert query(store, "PRAGMA journal_mode") == [("wal",)]
    assert query(store, "PRAGMA synchronous") == [(1,)]


def test_synchronous_full_is_asked_of_sqlite(url: str, opened: Open) -> None:
    assert query(opened(url, synchronous="full"), "PRAGMA synchronous") == [(2,)]


def test_an_older_store_is_brought_up_to_date(path: Path) -> None:
    pen = Pen()
    old = open_store(path)
    old.create("r", ME, LONG, pen.batch(STARTED, plans=(plan_of("d"),)))
    old.close()
    new = opened_with(path, MORE)
    assert query(new, "SELECT * FROM note") == [(1, "from before; as it was")]
    assert query(new, "SELECT * FROM about") == [("fsm-agent", 2)]
    assert query(new, "PRAGMA user_version") == [(2,)]
    assert new.events("r") == pen.written
    new.close()
    again = opened_with(path, MORE)
    assert query(again, "SELECT count(*) FROM note") == [(1,)]
    again.close()


def test_a_new_store_has_all_that_migrations_bring(path: Path) -> None:
    new = opened_with(path, MORE)
    assert query(new, "SELECT * FROM note") == []
    new.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(path: Path) -> None:
    open_store(path).close()
    with pytest.raises(NotAStore):
        opened_with(path, MORE, "CREATE TABLE note (again);")
    old = open_store(path)
    assert query(old, "SELECT count(*) FROM sqlite_master WHERE name = 'note'") == [(0,)]
    assert query(old, "PRAGMA user_version") == [(1,)]
    old.close()


def test_a_newer_store_is_left_alone(path: Path) -> None:
    opened_with(path, MORE).close()
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="version 2") as refused:
        open_store(path)
    assert "newer version of fsm-agent" in refused.value.hint
    assert path.read_bytes() == before


# Room ---------------------------------------------------------------------------------------------------------------


def test_a_task_of_a_chain_takes_at_most_300_bytes_besides_its_own_data(path: Path) -> None:
    tasks = 2_000
    plan = plan_of("d", *({"id": f"t{place:05d}"} for place in range(tasks)))
    open_store(path).close()
    empty = path.stat().st_size
    store, pen = open_store(path), Pen()
    used: dict[str, Any] = {"plan": "d", "plan_version": 1}
    lease = store.create("r", ME, LONG, pen.batch(STARTED, plans=(plan,), **used))
    pen.at = 1796078898.2922928
    for batch in chain(pen, tasks, used):
        store.commit(lease, batch)
    store.close()
    assert (path.stat().st_size - empty - len(plan.body)) / tasks <= 300


def chain(pen: Pen, tasks: int, used: dict[str, Any]) -> Any:
    """The commits of a chain of tasks: the end of one, and the start of the next."""
    settled = ev.PhaseChanged(trigger="settled", source="executing", dest="evaluating", guard="something_to_judge")
    evaluated = ev.PhaseChanged(trigger="evaluated", source="evaluating", dest="executing")
    for place in range(tasks):
        name, seq = f"t{place:05d}", pen.seq
        running = TaskRow(place, name, "RUNNING", None, 1, 0, 0, None, seq + 1, None)
        yield pen.batch(ev.TaskStarted(task=name, visit=1), tasks=(running,), **used)
        ended = ev.TaskEvaluated(task=name, visit=1, status="SUCCEEDED", attempts=1, data={})
        done = TaskRow(place, name, "SUCCEEDED", None, 1, 1, 0, None, None, seq + 2)
        yield pen.batch(ended, settled, evaluated, tasks=(done,), **used)
