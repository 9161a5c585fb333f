"""A store of either kind, empty, and gone after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from fsm_agent.journal.opening import open_store
from fsm_agent.journal.sql_store import SqlStore

Open = Callable[..., SqlStore]


@pytest.fixture
def postgres_place(postgres_url: str) -> Iterator[str]:
    """The URL of a store in PostgreSQL that nobody has opened yet."""
    schema = f"store_{uuid4().hex}"
    yield f"{postgres_url}?schema={schema}"
    with psycopg.connect(postgres_url, autocommit=True) as con:
        con.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store that nobody has opened yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/runs.db"
    url: str = request.getfixturevalue("postgres_place")
    return url


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens stores, and closes them at the end."""
    stores: list[SqlStore] = []

    def open_one(url: str, **options: object) -> SqlStore:
        more = "&".join(f"{name}={value}" for name, value in options.items())
        stores.append(open_store(f"{url}{'&' if '?' in url else '?'}{more}"))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def store(place: str, opened: Open) -> SqlStore:
    """An empty store."""
    return opened(place)
