"""A store's database in SQLite: one file, and no server."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, TypeVar

from fsm_agent.clock import Clock
from fsm_agent.errors import StoreBusy, StoreError, StoreUnavailable
from fsm_agent.journal import schema
from fsm_agent.journal.database import Row, Step
from fsm_agent.journal.patience import patiently
from fsm_agent.journal.statements import queries

APPLICATION_ID: Final = 0x46534D41
"""By this number, in its header, a file says that it is a store of fsm-agent."""

_PAGE: Final = 2_048
"""A commit writes whole pages, and each of a task's changes very little in three of them: small ones, in bytes."""

_CHECKPOINT: Final = 8_000
"""The log is brought into the file at so many pages (16 MB). That waits for the disk: not too often."""

OLDEST: Final = (3, 38)
"""The oldest SQLite that has the JSON operators of the views."""

_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_FOREIGN: Final = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT}

Synchronous = Literal["normal", "full"]
"""Whether what was written survives the end of the process, or that of the machine too."""

T = TypeVar("T")


class SqliteDatabase:
    """One connection to a file. See `Database`.

    The file is created where there is none (its folder too), readable by its owner only. It never waits for a lock
    once it is open: `write` is called on event loops, and whoever calls the rest can wait better.
    """

    is_quick = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        clock: Clock,
        *,
        patience: float = 5.0,
        synchronous: Synchronous = "normal",
        steps: Sequence[str] | None = None,
    ) -> None:
        self.path = Path(path).absolute()
        self.key_file: Path | None = self.path.with_name(f"{self.path.name}.key")
        self.patience = patience
        self.now: Callable[[], float] = clock.now
        self._queries = queries()
        self._synchronous = synchronous
        self._con = self._connect(schema.scripts("sqlite") if steps is None else steps)
        self._cursor = self._con.cursor()
        weakref.finalize(self, self._con.close)  # whoever forgets to close it leaves nothing open

    @property
    def url(self) -> str:
        """`sqlite:///` and the path."""
        return "sqlite:///" + str(self.path).replace("%", "%25").replace("?", "%3F")

    # Using it -------------------------------------------------------------------------------------------------------

    def write(self, steps: Sequence[Step]) -> bool:
        """See `Database`. It does not wait: StoreBusy at once."""
        cursor, texts = self._cursor, self._queries
        try:
            cursor.execute("BEGIN IMMEDIATE")
            for number, (name, rows) in enumerate(steps):
                cursor.executemany(texts[name], rows)
                if not number and not cursor.rowcount:
                    cursor.execute("ROLLBACK")
                    return False
            cursor.execute("COMMIT")
        except sqlite3.IntegrityError:
            self._undo()
            return False
        except BaseException as error:
            self._undo()
            if isinstance(error, sqlite3.Error):
                raise self._translated(error) from error
            raise
        return True

    def transact(self, work: Callable[[], T]) -> T:
        """See `Database`."""
        try:
            self._con.execute("BEGIN IMMEDIATE")
            result = work()
            self._con.execute("COMMIT")
        except BaseException as error:
            self._undo()
            if isinstance(error, sqlite3.Error):
                raise self._translated(error) from error
            raise
        return result

    def rows(self, name: str, values: Row = ()) -> list[Row]:
        """See `Database`."""
        try:
            return self._con.execute(self._queries[name], values).fetchall()
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def change(self, name: str, *rows: Row) -> int:
        """See `Database`."""
        try:
            return self._con.executemany(self._queries[name], rows).rowcount
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def news(self) -> int:
        """See `Database`."""
        try:
            return self._pragma(self._con, "data_version")
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def close(self) -> None:
        """See `Database`."""
        self._con.close()

    def _undo(self) -> None:
        """No transaction is open after this; some errors end it by themselves."""
        try:
            if self._con.in_transaction:
                self._con.execute("ROLLBACK")
        except sqlite3.Error:
            self._con.close()  # what cannot even be rolled back is of no use any more

    # Opening it -----------------------------------------------------------------------------------------------------

    def _connect(self, steps: Sequence[str]) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < OLDEST:
            raise StoreUnavailable(
                f"SQLite {sqlite3.sqlite_version} is too old for a store: it takes {OLDEST[0]}.{OLDEST[1]}",
                hint="use a newer Python, or a store in PostgreSQL",
            )
        con = None
        try:
            self._make_file()
            con = sqlite3.connect(self.path, timeout=self.patience, isolation_level=None, check_same_thread=False)
            self._prepare(con, steps)
        except (OSError, sqlite3.Error, StoreError) as error:
            if con is not None:
                con.close()
            if isinstance(error, StoreError):
                raise
            raise self._translated(error) from error
        return con

    def _make_file(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        elif not self.path.is_file():
            kind = "a folder" if self.path.is_dir() else "a device, not a file"
            raise StoreUnavailable(f"the store {self.path} is {kind}", hint="name a file, such as runs.db in it")

    def _prepare(self, con: sqlite3.Connection, steps: Sequence[str]) -> None:
        if schema.missing(steps, self._version(con), str(self.path)):
            con.execute(f"PRAGMA page_size = {_PAGE}")  # it counts for a file with nothing in it yet
            self._use_wal(con)
            self._upgrade(con, steps)
        self._use_wal(con)
        con.execute(f"PRAGMA synchronous = {self._synchronous}")
        con.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
        con.execute("PRAGMA busy_timeout = 0")

    def _version(self, con: sqlite3.Connection) -> int:
        """The version of the tables; 0 for a file with nothing in it. Raises NotAStore. Changes nothing."""
        application, version = self._pragma(con, "application_id"), self._pragma(con, "user_version")
        if application == APPLICATION_ID and version > 0:
            return version
        things = con.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application or version or things:
            raise schema.foreign(str(self.path), "it is a database of another program")
        return 0

    def _use_wal(self, con: sqlite3.Connection) -> None:
        """Readers and the writer are not to wait for each other."""
        if con.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            return
        # SQLite itself does not wait for this lock.
        mode = patiently(lambda: self._ask_for_wal(con), self.patience)
        if mode != "wal":
            raise StoreUnavailable(
                f"no write-ahead log can be kept beside {self.path} (SQLite offers {mode!r})",
                hint="network filesystems have none: put the store on a local disk, or use PostgreSQL",
            )

    def _ask_for_wal(self, con: sqlite3.Connection) -> str:
        try:
            return str(con.execute("PRAGMA journal_mode = wal").fetchone()[0])
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _upgrade(self, con: sqlite3.Connection, steps: Sequence[str]) -> None:
        """Create or migrate the tables. Of several processes that come at once, the first does it."""
        con.execute("BEGIN IMMEDIATE")
        try:
            version = self._version(con)
            for text in schema.missing(steps, version, str(self.path)):
                for statement in _statements(text):
                    con.execute(statement)
            row = (schema.APPLICATION, len(steps)) if not version else (len(steps),)
            con.execute(self._queries["describe" if not version else "redescribe"], row)
            con.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            con.execute(f"PRAGMA user_version = {len(steps)}")
            con.execute("COMMIT")
        except BaseException:
            con.execute("ROLLBACK")
            raise

    @staticmethod
    def _pragma(con: sqlite3.Connection, name: str) -> int:
        return int(con.execute(f"PRAGMA {name}").fetchone()[0])

    # Its errors -----------------------------------------------------------------------------------------------------

    def _translated(self, error: OSError | sqlite3.Error) -> StoreError:
        if isinstance(error, OSError):
            return StoreUnavailable(f"the store {self.path} cannot be opened: {error.strerror}")
        if isinstance(error, sqlite3.ProgrammingError):
            return StoreUnavailable(f"the store {self.path} is closed")
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in _BUSY:
            return StoreBusy(f"somebody else is writing to {self.path}", hint="try again in a moment")
        if code == sqlite3.SQLITE_ERROR and str(error).startswith("no such"):
            return schema.damaged(str(self.path), str(error))
        if code in _FOREIGN:
            return schema.foreign(str(self.path), f"SQLite says: {error}")
        return StoreUnavailable(f"the store {self.path} cannot be used: {error}", hint=_HINTS.get(code, ""))


_HINTS: Final = {
    sqlite3.SQLITE_FULL: "make room on the disk, and try again",
    sqlite3.SQLITE_IOERR: "see whether the disk is full or the file is on a network filesystem",
    sqlite3.SQLITE_READONLY: "give this user the right to write the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "give this user the right to write the file and its folder",
    sqlite3.SQLITE_PERM: "give this user the right to write the file and its folder",
}


def _statements(text: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would end the transaction."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
