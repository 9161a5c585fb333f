"""Opening a store by its URL."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import cast
from urllib.parse import unquote

from fsm_agent.clock import Clock, SystemClock
from fsm_agent.errors import StoreUnavailable, UsageError
from fsm_agent.journal.sql_store import SqlStore
from fsm_agent.journal.store import Store
from fsm_agent.plan.nearness import did_you_mean, near

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_OPTIONS_OF_PATH = re.compile(r"\?(?:synchronous|busy_timeout)=")
_NEARLY_A_URL = re.compile(r"(?i)(?:postgres(?:ql)?|sqlite3?)[:/]+.|(?:host|hostaddr|dbname|user|password|port)\s*=")
_KINDS = ("sqlite", "postgresql", "postgres")
_PATIENCE = 5.0
_SCHEMA = re.compile(r"[^\W\d]\w{0,62}")


def open_store(url: str | os.PathLike[str], *, clock: Clock | None = None) -> Store:
    """Open the store at a URL; where nothing is there yet, create it.

    | | |
    |---|---|
    | `sqlite:///runs.db`, `sqlite:////var/lib/runs.db` | a file, by its relative or absolute path |
    | `runs.db` | the same, as a plain path: no character means anything, and it takes no options |
    | `postgresql://user@host:5432/database` | a database, with any options of libpq |

    Options: `busy_timeout`, for how many seconds to wait for others who write (5); for SQLite `synchronous`, `normal`
    (what was written survives the end of the process) or `full` (that of the machine too); for PostgreSQL `schema`
    (`fsm_agent`). `clock` gives SQLite the time by which leases run out.

    Raises UsageError for a URL that is none, StoreUnavailable, StoreBusy, NotAStore, StoreTooNew.
    """
    text = os.fspath(url)
    scheme = _SCHEME.match(text) if isinstance(url, str) else None
    clock = clock or SystemClock()
    if scheme is None:
        if isinstance(url, str):
            _check_path(text)
        return _sqlite(text, {}, clock)
    kind = scheme[1].lower()
    if kind not in _KINDS:
        raise UsageError(f"there is no store of the kind {kind!r}", hint=did_you_mean(near(kind, _KINDS[:2])))
    return _postgres(text) if kind != "sqlite" else _sqlite_url(text[scheme.end() :], clock)


def _check_path(text: str) -> None:
    if not text:
        raise UsageError("a store needs a path or a URL")
    if _OPTIONS_OF_PATH.search(text):
        raise UsageError("a plain path takes no options", hint=f"write it as sqlite:///{text}")
    if _NEARLY_A_URL.match(text):
        raise UsageError("the store's URL is not written as one", hint="postgresql://user@host/database, or a path")


def file_of(url: str) -> Path | None:
    """The file that a store at this URL is, whether it is there or not; None for one on a server, or a URL that is
    none. Raises UsageError for a path that is none.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        _check_path(url)
        return Path(url)
    place = url[scheme.end() :].partition("?")[0]
    return Path(unquote(place.removeprefix("/"))) if scheme[1].lower() == "sqlite" and place else None


def _sqlite_url(rest: str, clock: Clock) -> SqlStore:
    place, _, query = rest.partition("?")
    path = unquote(place.removeprefix("/"))
    if not place.startswith("/") or path in ("", ":memory:"):
        raise UsageError(
            "the URL of a store in SQLite names a file", hint="sqlite:///relative/path or sqlite:////absolute/path"
        )
    options = _options(query, ("synchronous", "busy_timeout"))
    return _sqlite(path, dict(options), clock)


def _sqlite(path: str, options: dict[str, str], clock: Clock) -> SqlStore:
    from fsm_agent.journal.sqlite import SqliteDatabase, Synchronous  # noqa: PLC0415 - only when used

    synchronous = options.get("synchronous", "normal").lower()
    if synchronous not in ("normal", "full"):
        raise UsageError("the store's option 'synchronous' is neither 'normal' nor 'full'")
    patience = _seconds(options.get("busy_timeout"))
    database = SqliteDatabase(Path(path), clock, patience=patience, synchronous=cast(Synchronous, synchronous))
    return SqlStore(database)


def _postgres(url: str) -> SqlStore:
    try:
        from fsm_agent.journal.postgres import PostgresDatabase, known_options  # noqa: PLC0415 - only when used
    except ImportError as error:
        raise StoreUnavailable(
            "a store in PostgreSQL needs the package psycopg, which is not installed",
            hint="install psycopg: pip install 'psycopg[binary]'",
        ) from error
    place, _, query = url.partition("?")
    if place.count("@") > 1 or "#" in url or "@" in place.partition("://")[2].partition("/")[2]:
        raise UsageError(
            "the store's URL has a sign in its user or password that must be escaped",
            hint="write / as %2F, @ as %40, # as %23, ? as %3F, or leave the password to PGPASSWORD",
        )
    if "@" in query:
        raise UsageError("the store's URL has an @ among its options", hint="write ? in a password as %3F")
    own = ("schema", "busy_timeout")
    options = _options(query, (*own, *known_options()))
    name = dict(options).get("schema", "fsm_agent")
    if not _SCHEMA.fullmatch(name):
        raise UsageError("the store's option 'schema' is no name: a letter, then letters, digits and '_', at most 63")
    patience = _seconds(dict(options).get("busy_timeout"))
    rest = "&".join(part for part in query.split("&") if part.partition("=")[0] not in own)
    return SqlStore(PostgresDatabase(f"{place}?{rest}", schema_name=name, patience=patience))


def _options(query: str, known: Collection[str]) -> list[tuple[str, str]]:
    """The options of a URL, which are all known, and none of which is there twice."""
    options = [(name, unquote(value)) for name, _, value in (part.partition("=") for part in query.split("&") if part)]
    names = [name for name, _ in options]
    for place, name in enumerate(names):
        if name not in known:
            raise UsageError(f"a store has no option {name!r}", hint=did_you_mean(near(name, known)))
        if name in names[:place]:
            raise UsageError(f"the store's option {name!r} is there twice")
    return options


def _seconds(text: str | None) -> float:
    if text is None:
        return _PATIENCE
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 3600:
        raise UsageError("the store's option 'busy_timeout' is no number of seconds from 0 to 3,600")
    return seconds
