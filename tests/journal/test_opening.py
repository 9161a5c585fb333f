"""Stores by their URL."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from fsm_agent.errors import StoreUnavailable, UsageError
from fsm_agent.journal.opening import open_store
from fsm_agent.testing import SimulatedClock
from tests.journal.conftest import Open
from tests.journal.writing import LONG, ME, STARTED, Pen


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///runs.db", "runs.db"),
        ("sqlite:///a/b/runs.db?synchronous=full&busy_timeout=0.5", "a/b/runs.db"),
        ("sqlite:////{folder}/abs.db", "abs.db"),
        ("SQLite:///x.db", "x.db"),
        ("sqlite:///50%25%20of%3Fit.db", "50% of?it.db"),
        ("plain.db", "plain.db"),
        ("{folder}/c/跑.db", "c/跑.db"),
        ("odd?size=%20full", "odd?size=%20full"),
    ],
)
def test_a_store_in_sqlite_is_a_file(
    url: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Open
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(url.replace("{folder}", str(tmp_path)))
    store.create("r", ME, LONG, Pen().batch(STARTED))
    store.close()
    file = tmp_path / path
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    monkeypatch.chdir("/")
    assert opened(store.url).head("r").seq == 1
    again = open_store(file)
    assert again.head("r").seq == 1
    again.close()


def test_a_path_object_is_a_path_whatever_it_looks_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(Path("mysql:/x"))
    store.close()
    assert (tmp_path / "mysql:" / "x").exists()


BAD = [
    ("", "needs a path", ""),
    ("runs.db?synchronous=full", "takes no options", "sqlite:///runs.db?synchronous=full"),
    ("/var/runs.db?busy_timeout=1", "takes no options", "sqlite:////var/runs.db?busy_timeout=1"),
    ("mysql://host/db", "'mysql'", ""),
    ("sqlite3:///x.db", "'sqlite3'", "'sqlite'"),
    ("postgressql://host/db", "'postgressql'", "'postgresql'"),
    ("sqlite://x.db", "names a file", "sqlite:///relative"),
    ("sqlite://", "names a file", ""),
    ("sqlite:///:memory:", "names a file", ""),
    ("sqlite:///x.db?syncronous=full", "'syncronous'", "'synchronous'"),
    ("sqlite:///x.db?synchronous=off", "'normal' nor 'full'", ""),
    ("sqlite:///x.db?schema=x", "'schema'", ""),
    ("sqlite:///x.db?busy_timeout=soon", "busy_timeout", ""),
    ("sqlite:///x.db?busy_timeout=-1", "busy_timeout", ""),
    ("sqlite:///x.db?busy_timeout=nan", "busy_timeout", ""),
    ("sqlite:///x.db?busy_timeout=1&busy_timeout=2", "twice", ""),
    ("postgresql://u:hidden@host/db?sslmod=x", "'sslmod'", "'sslmode'"),
    ("postgresql://u:hidden@host/db?synchronous=full", "'synchronous'", ""),
    ("postgresql://u:hidden@host/db?schema=a%20b", "'schema'", ""),
    ("postgresql://u:hidden@host/db?schema=", "'schema'", ""),
    ("postgresql://u:hid%zzden@host/db", "cannot be read", ""),
    ("postgresql://u:hid/den@host/db", "must be escaped", "%2F"),
    ("postgresql://u:hid@den@host/db", "must be escaped", "%40"),
    ("postgresql://u:hid#den@host/db", "must be escaped", "%23"),
    ("postgresql://u:x?hidden@host/db", "an @ among its options", "%3F"),
    ("postgresql//u:hidden@host/db", "not written as one", "postgresql://"),
    ("postgres:/u:hidden@host/db", "not written as one", "postgresql://"),
    ("host=h password=hidden dbname=db", "not written as one", "postgresql://"),
    ("sqlite:/x.db", "not written as one", "a path"),
]


@pytest.mark.parametrize(("url", "message", "hint"), BAD)
def test_a_url_that_is_none_is_refused_and_nothing_is_created(
    url: str, message: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message) as refused:
        open_store(url)
    assert hint in refused.value.hint
    assert "hid" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/proc/nothing/x.db", "{folder}", "{folder}/file/x.db"])
def test_a_place_where_no_file_can_be_is_not_available(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text", encoding="utf-8")
    with pytest.raises(StoreUnavailable):
        open_store(path.replace("{folder}", str(tmp_path)))


def test_a_file_that_may_not_be_written_is_not_available(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    (tmp_path / "x.db").touch(0o400)
    with pytest.raises(StoreUnavailable):
        open_store(tmp_path / "x.db")


def test_without_psycopg_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "fsm_agent.journal.postgres", raising=False)
    with pytest.raises(StoreUnavailable, match="psycopg") as refused:
        open_store("postgresql://host/db")
    assert "psycopg[binary]" in refused.value.hint


def test_a_server_that_is_not_there_is_not_available_and_no_password_is_told() -> None:
    with pytest.raises(StoreUnavailable) as refused:
        open_store("postgresql://me:hidden@127.0.0.1:1/db?sslmode=disable&passfile=/nowhere")
    told = f"{refused.value} {refused.value.hint}"
    assert "postgresql://me@127.0.0.1:1/db?" in told
    assert "hidden" not in told


def test_options_say_how_long_to_wait(tmp_path: Path, opened: Open) -> None:
    assert opened(f"sqlite:///{tmp_path}/x.db").patience == 5.0
    assert opened(f"sqlite:///{tmp_path}/x.db?busy_timeout=0.25").patience == 0.25


def test_leases_run_out_by_the_clock_that_is_given(tmp_path: Path) -> None:
    clock = SimulatedClock()
    store = open_store(tmp_path / "x.db", clock=clock)
    store.create("r", ME, 30, Pen().batch(STARTED))
    assert store.now() == clock.now()
    assert store.head("r").until == clock.now() + 30
    store.close()
