"""A store in PostgreSQL: what can go wrong with a server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import errors

from fsm_agent.errors import NotAStore, StoreBusy, StoreError, StoreTooNew, StoreUnavailable
from fsm_agent.journal import schema
from fsm_agent.journal.opening import open_store
from fsm_agent.journal.postgres import PostgresDatabase
from fsm_agent.journal.records import TaskRow
from fsm_agent.journal.sql_store import SqlStore
from tests.journal import processes
from tests.journal.conftest import Open
from tests.journal.proxy import Proxy
from tests.journal.writing import LONG, ME, STARTED, Pen, logged, plan_of, query


@pytest.fixture
def place(postgres_place: str) -> str:
    return postgres_place


@pytest.fixture
def store(place: str, opened: Open) -> SqlStore:
    return opened(place, busy_timeout=0.4)


@pytest.fixture
def other(postgres_url: str, place: str) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else's connection, in the store's schema."""
    with psycopg.connect(postgres_url, autocommit=True) as con:
        con.execute(f"SET search_path TO {name_of(place)}".encode())
        yield con


def name_of(place: str) -> str:
    """The schema of a store."""
    return place.rpartition("=")[2]


def end_of(store: SqlStore, other: psycopg.Connection[Any]) -> None:
    """The server ends the store's session."""
    pid = backend(store)
    other.execute("SELECT pg_terminate_backend(%s)", (pid,))
    while other.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone() != (0,):
        time.sleep(0.01)


def backend(store: SqlStore) -> int:
    """The number of the server's process for this store."""
    database: Any = store._db
    pid: int = database._con.info.backend_pid
    return pid


def waits(other: psycopg.Connection[Any], pid: int) -> None:
    """Returns once that process waits for a lock."""
    asked = "SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s"
    while other.execute(asked, (pid,)).fetchone() != ("Lock",):
        time.sleep(0.01)


# Lost connections ---------------------------------------------------------------------------------------------------


CALLS: list[Callable[[SqlStore], Any]] = [
    lambda store: store.head("r"),
    lambda store: store.now(),
    lambda store: store.news(),
    lambda store: store.ask("r", "pause", "{}", at=1.0),
    lambda store: store.create("s", ME, LONG, Pen("s").batch(STARTED)),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_on_a_lost_connection_fails_and_the_next_one_connects_anew(
    store: SqlStore, other: psycopg.Connection[Any], call: Callable[[SqlStore], Any]
) -> None:
    store.create("r", ME, LONG, Pen().batch(STARTED))
    end_of(store, other)
    with pytest.raises(StoreUnavailable):
        call(store)
    call(store)


def test_a_commit_on_a_lost_connection_is_made_whole_by_the_next_one(
    store: SqlStore, other: psycopg.Connection[Any]
) -> None:
    pen = Pen()
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    end_of(store, other)
    batch = pen.batch(logged(), logged())
    with pytest.raises(StoreUnavailable):
        store.commit(lease, batch)
    store.commit(lease, batch)
    assert store.events("r") == pen.written


def test_a_commit_that_is_cut_off_in_the_middle_leaves_nothing(
    place: str, opened: Open, other: psycopg.Connection[Any]
) -> None:
    store = opened(place, busy_timeout=30)
    pen = Pen()
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    other.execute("BEGIN")
    other.execute("LOCK TABLE task_state IN EXCLUSIVE MODE")
    batch = pen.batch(logged(), tasks=(TaskRow(0, "a", "RUNNING", None, 1, 0, 0, None, 2, None),))
    said: list[StoreError] = []

    def commit() -> None:
        try:
            store.commit(lease, batch)
        except StoreError as error:
            said.append(error)

    thread = threading.Thread(target=commit)
    pid = backend(store)
    thread.start()
    waits(other, pid)
    other.execute("SELECT pg_terminate_backend(%s)", (pid,))
    thread.join()
    other.execute("ROLLBACK")
    assert [type(error) for error in said] == [StoreUnavailable]
    assert store.head("r").seq == 1
    store.commit(lease, batch)
    assert store.events("r") == pen.written


def test_a_commit_whose_answer_was_lost_is_not_made_twice(place: str, opened: Open) -> None:
    direct = opened(place)
    port = urlsplit(place).port
    assert port is not None
    proxy = Proxy(port)
    store = open_store(place.replace(f":{port}/", f":{proxy.port}/"))
    try:
        pen = Pen()
        lease = store.create("r", ME, LONG, pen.batch(STARTED))
        batch = pen.batch(logged(), logged())
        proxy.cut_at = b"COMMIT"
        with pytest.raises(StoreUnavailable):
            store.commit(lease, batch)
        proxy.cut_at = None
        assert direct.events("r") == pen.written
        store.commit(lease, batch)
        assert direct.events("r") == pen.written
        proxy.cut_at = b"COMMIT"
        first = Pen("s").batch(STARTED)
        with pytest.raises(StoreUnavailable):
            store.create("s", ME, LONG, first)
        proxy.cut_at = None
        store.commit(store.create("s", ME, LONG, first), type(first)((first.events[0]._replace(seq=2),), 1, "idle"))
    finally:
        store.close()
        proxy.close()


# Others who write ---------------------------------------------------------------------------------------------------


def test_a_row_that_others_hold_is_waited_for_as_long_as_it_is_to_be(
    store: SqlStore, other: psycopg.Connection[Any]
) -> None:
    pen = Pen()
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    batch = pen.batch(logged())
    other.execute("BEGIN")
    other.execute("SELECT * FROM run_state FOR UPDATE")
    began = time.monotonic()
    with pytest.raises(StoreBusy):
        store.commit(lease, batch)
    assert 0.3 <= time.monotonic() - began < 5
    with pytest.raises(StoreBusy):
        store.release(lease)
    assert store.head("r").seq == 1
    timer = threading.Timer(0.1, lambda: other.execute("ROLLBACK"))
    timer.start()
    store.commit(lease, batch)
    timer.join()
    assert store.events("r") == pen.written


def test_there_is_news_of_a_transaction_that_ends_after_a_later_one(
    store: SqlStore, other: psycopg.Connection[Any], opened: Open, place: str
) -> None:
    store.create("r", ME, LONG, Pen().batch(STARTED))
    other.execute("BEGIN")
    other.execute("INSERT INTO request (run, at, kind, body) VALUES (1, 1, 'pause', '{}')")
    opened(place).ask("r", "cancel", "{}", at=2.0)
    last = store.news()
    assert store.news() == last
    other.execute("COMMIT")
    assert store.news() != last


def test_a_plan_that_is_removed_while_a_new_run_begins_to_use_it_is_there_for_the_run(
    place: str, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, remover = opened(place), opened(place)
    plan = plan_of("d", {"id": "a"})
    store.bring_in("old", Pen("old").batch(STARTED, plan="d", plans=(plan,)), 1.0)
    database: Any = store._db
    change = database.change

    def meanwhile(name: str, *rows: Any) -> int:
        if name == "use_plan":
            remover.remove(["old"])
        changed: int = change(name, *rows)
        return changed

    monkeypatch.setattr(database, "change", meanwhile)
    store.create("new", ME, LONG, Pen("new").batch(STARTED, plan="d", plans=(plan,)))
    assert remover.plan("d") == plan
    assert [head.run_id for head in remover.heads()] == ["new"]


# Schemas ------------------------------------------------------------------------------------------------------------


def test_two_stores_in_one_database_know_nothing_of_each_other(
    store: SqlStore, postgres_url: str, place: str, other: psycopg.Connection[Any]
) -> None:
    name = f"{name_of(place)}_2"
    second = open_store(f"{postgres_url}?schema={name}")
    second.create("r", ME, LONG, Pen().batch(STARTED))
    assert store.heads() == []
    assert second.url.endswith(f"schema={name}")
    second.close()
    other.execute(f"DROP SCHEMA {name} CASCADE".encode())


def test_processes_may_open_a_new_store_at_once(place: str) -> None:
    url = f"{place}&busy_timeout=60"
    others = [processes.launched("drive", url, f"p{number}", "2") for number in range(5)]
    for process in others:
        processes.end(process)
    store = open_store(url)
    assert len(store.heads()) == 10
    store.close()


@pytest.mark.parametrize("text", ["CREATE TABLE runs (id text)", "CREATE TABLE about (application text)"])
def test_a_schema_of_another_program_is_refused_and_not_changed(
    place: str, other: psycopg.Connection[Any], text: str
) -> None:
    other.execute(f"CREATE SCHEMA {name_of(place)}".encode())
    other.execute(text.encode())
    things = f"SELECT count(*) FROM pg_class WHERE relnamespace = '{name_of(place)}'::regnamespace".encode()
    before = other.execute(things).fetchone()
    with pytest.raises(NotAStore, match=name_of(place)):
        open_store(place)
    assert other.execute(things).fetchone() == before


def test_a_schema_that_is_empty_is_taken(place: str, other: psycopg.Connection[Any]) -> None:
    other.execute(f"CREATE SCHEMA {name_of(place)}".encode())
    open_store(place).close()
    assert other.execute("SELECT application, version FROM about").fetchall() == [("fsm-agent", 1)]


def opened_with(place: str, *more: str) -> SqlStore:
    """By a version of the package that knows more."""
    url, _, _ = place.partition("?")
    steps = [*schema.scripts("postgres"), *more]
    return SqlStore(PostgresDatabase(url, schema_name=name_of(place), steps=steps))


MORE = "CREATE TABLE note (text text); INSERT INTO note SELECT 'from before; ' || id FROM run_state"


def test_an_older_store_is_brought_up_to_date_and_a_newer_one_left_alone(place: str) -> None:
    pen = Pen()
    old = open_store(place)
    old.create("r", ME, LONG, pen.batch(STARTED, plans=(plan_of("d"),)))
    old.close()
    for _ in range(2):
        new = opened_with(place, MORE)
        assert query(new, "SELECT * FROM note") == [("from before; r",)]
        assert query(new, "SELECT * FROM about") == [("fsm-agent", 2)]
        assert new.events("r") == pen.written
        new.close()
    with pytest.raises(StoreTooNew, match="version 2"):
        open_store(place)


def test_a_migration_that_fails_leaves_the_store_as_it_was(store: SqlStore, place: str) -> None:
    with pytest.raises(StoreError):
        opened_with(place, MORE, "CREATE TABLE note (again text)")
    assert query(store, "SELECT to_regclass('note'), (SELECT version FROM about)") == [(None, 1)]


# Words --------------------------------------------------------------------------------------------------------------


ERRORS = [
    (errors.LockNotAvailable, StoreBusy), (errors.DeadlockDetected, StoreBusy),
    (errors.SerializationFailure, StoreBusy),
    (errors.DiskFull, StoreUnavailable), (errors.AdminShutdown, StoreUnavailable),
    (errors.InsufficientPrivilege, StoreUnavailable), (errors.ReadOnlySqlTransaction, StoreUnavailable),
    (errors.TooManyConnections, StoreUnavailable), (errors.QueryCanceled, StoreUnavailable),
    (errors.UndefinedTable, NotAStore), (errors.DataCorrupted, NotAStore), (psycopg.OperationalError, StoreUnavailable),
]  # fmt: skip


@pytest.mark.parametrize(("error", "kind"), ERRORS)
def test_errors_are_told_in_the_words_of_a_store(
    store: SqlStore, error: type[psycopg.Error], kind: type[StoreError]
) -> None:
    database: Any = store._db
    told = database._translated(error("it went wrong\nDETAIL: secret"))
    assert type(told) is kind
    assert store.url in str(told)
    assert "secret" not in str(told)
    assert told.hint


def test_the_url_keeps_what_is_no_secret(place: str) -> None:
    full = f"{place}&application_name=it%20is&connect_timeout=7&password=hidden&sslpassword=hidden2"
    store = open_store(full.replace("postgresql://fsm@", "postgres://fsm:hidden@"))
    assert store.url.startswith("postgresql://fsm@127.0.0.1:")
    assert f"schema={name_of(place)}" in store.url
    assert "application_name=it%20is" in store.url
    assert "hidden" not in store.url
    store.close()
    again = open_store(store.url)
    assert again.url == store.url
    again.close()
