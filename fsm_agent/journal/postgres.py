"""A store's database in PostgreSQL: one schema, by psycopg 3, which is imported with this module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import quote, urlencode

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo, TransactionStatus
from psycopg.sql import SQL, Identifier, Literal
from psycopg.types.string import TextLoader

from fsm_agent.errors import StoreBusy, StoreError, StoreUnavailable, UsageError
from fsm_agent.journal import schema
from fsm_agent.journal.database import Row, Step
from fsm_agent.journal.statements import queries

_BUSY: Final = (
    errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure,
    errors.ForeignKeyViolation,  # somebody has just removed the plan that this run was to use
)  # fmt: skip
_FOREIGN: Final = (
    errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction, errors.InvalidSchemaName,
    errors.IntegrityError, errors.DataCorrupted, errors.IndexCorrupted, errors.RaiseException,
)  # fmt: skip

_DEFAULTS: Final = {
    "application_name": schema.APPLICATION,
    "connect_timeout": "10",
    # A server that is gone without a word is found out in half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}

_EXISTS: Final = b"SELECT count(*) FROM pg_namespace WHERE nspname = %s"
_THINGS: Final = b"SELECT count(*) FROM pg_class WHERE relnamespace = %s::regnamespace"
_ABOUT: Final = b"SELECT to_regclass(%s) IS NOT NULL"
_LOCK: Final = b"SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_NOW: Final = b"SELECT extract(epoch FROM clock_timestamp())::double precision"
_NEWS: Final = b"SELECT pg_current_snapshot()::text"

T = TypeVar("T")


def known_options() -> list[str]:
    """What may be said about a connection: libpq's own words."""
    return [option.keyword.decode() for option in Conninfo.get_defaults()]


class PostgresDatabase:
    """One connection to a server. See `Database`.

    Everything is in a schema of its own, which is created where there is none.
    """

    is_quick = False
    key_file: Path | None = None

    def __init__(
        self, url: str, *, schema_name: str = "fsm_agent", patience: float = 5.0, steps: Sequence[str] | None = None
    ) -> None:
        try:
            given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
        except psycopg.ProgrammingError:  # what it says may hold the password
            raise UsageError("the URL of the store in PostgreSQL cannot be read") from None
        self._options = {**_DEFAULTS, **given}
        self.url = _shown(given, schema_name)
        self.patience = patience
        self._schema = schema_name
        self._queries = {name: text.replace("?", "%s").encode() for name, text in queries().items()}
        self._closed = False
        self._con: psycopg.Connection[Row] | None = None
        self._prepare(schema.scripts("postgres") if steps is None else steps)

    # Using it -------------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """See `Database`. The server's time, so that it is one for all."""
        moment: float = self._execute(_NOW)[0][0]
        return moment

    def write(self, steps: Sequence[Step]) -> bool:
        """See `Database`. Two trips to the server, however many steps there are."""
        try:
            con = self._connected()
            first = con.cursor()
            with con.pipeline():
                con.execute(b"BEGIN")
                for number, (name, rows) in enumerate(steps):
                    cursor = con.cursor() if number else first
                    cursor.executemany(self._queries[name], rows)
            if not first.rowcount:
                con.execute(b"ROLLBACK")
                return False
            con.execute(b"COMMIT")
        except errors.UniqueViolation:
            self._undo()
            return False
        except psycopg.Error as error:
            self._fail(error)
        except BaseException:
            self._undo()
            raise
        return True

    def transact(self, work: Callable[[], T]) -> T:
        """See `Database`."""
        try:
            self._execute(b"BEGIN")
            result = work()
            self._execute(b"COMMIT")
        except BaseException:
            self._undo()
            raise
        return result

    def rows(self, name: str, values: Row = ()) -> list[Row]:
        """See `Database`."""
        return self._execute(self._queries[name], values)

    def change(self, name: str, *rows: Row) -> int:
        """See `Database`."""
        try:
            cursor = self._connected().cursor()
            cursor.executemany(self._queries[name], rows)
        except psycopg.Error as error:
            self._fail(error)
        return cursor.rowcount

    def news(self) -> int:
        """See `Database`. Which transactions are over, as a number: reading it touches no table."""
        return int.from_bytes(self._execute(_NEWS)[0][0].encode(), "big")

    def close(self) -> None:
        """See `Database`."""
        self._closed = True
        if self._con is not None:
            self._con.close()

    def _execute(self, query: bytes, values: Row = ()) -> list[Row]:
        try:
            cursor = self._connected().execute(query, values)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            self._fail(error)

    def _undo(self) -> None:
        """No transaction is open after this, and no connection that was lost is kept."""
        con = self._con
        try:
            if con is not None and not con.closed and con.info.transaction_status != TransactionStatus.IDLE:
                con.execute(b"ROLLBACK")
        except psycopg.Error:
            con.close() if con is not None else None
        if con is not None and con.closed:
            self._con = None

    # Opening it -----------------------------------------------------------------------------------------------------

    def _connected(self) -> psycopg.Connection[Row]:
        if self._con is None:
            if self._closed:
                raise StoreUnavailable(f"the store {self.url} is closed")
            self._con = self._connect()
        return self._con

    def _connect(self) -> psycopg.Connection[Row]:
        con = psycopg.connect("", autocommit=True, **self._options)  # type: ignore[arg-type] # libpq takes texts
        con.adapters.register_loader("json", TextLoader)
        patience = Literal(max(1, round(self.patience * 1000)))
        con.execute(SQL("SET search_path TO {}").format(Identifier(self._schema)))
        con.execute(SQL("SET lock_timeout TO {}").format(patience))
        con.execute(b"SET default_transaction_isolation TO 'read committed'")
        return con

    def _prepare(self, steps: Sequence[str]) -> None:
        try:
            if schema.missing(steps, self._version(), self.url):
                self.transact(lambda: self._upgrade(steps))
        except BaseException:
            self.close()
            raise

    def _version(self) -> int:
        """The version of the tables; 0 where the schema is empty or not there. Raises NotAStore. Changes nothing."""
        if not self._execute(_EXISTS, (self._schema,))[0][0]:
            return 0
        name = SQL("{}").format(Identifier(self._schema)).as_string()
        if not self._execute(_ABOUT, (f"{name}.about",))[0][0]:
            if self._execute(_THINGS, (name,))[0][0]:
                raise schema.foreign(self.url, "its schema holds tables of another program")
            return 0
        about = self.rows("about")
        if len(about) != 1 or about[0][0] != schema.APPLICATION:
            raise schema.foreign(self.url, "its schema holds tables of another program")
        version: int = about[0][1]
        return version

    def _upgrade(self, steps: Sequence[str]) -> None:
        """Create or migrate the tables. Of several processes that come at once, the first does it."""
        self._execute(_LOCK, (f"{schema.APPLICATION} {self._schema}",))
        version = self._version()
        if not version and not self._execute(_EXISTS, (self._schema,))[0][0]:
            self._execute(SQL("CREATE SCHEMA {}").format(Identifier(self._schema)).as_bytes())
        for text in schema.missing(steps, version, self.url):
            self._execute_script(text)
        if not version:
            self.change("describe", (schema.APPLICATION, len(steps)))
        else:
            self.change("redescribe", (len(steps),))

    def _execute_script(self, text: str) -> None:
        try:
            self._connected().execute(text.encode())
        except psycopg.Error as error:
            self._fail(error)

    # Its errors -----------------------------------------------------------------------------------------------------

    def _fail(self, error: psycopg.Error) -> NoReturn:
        self._undo()
        raise self._translated(error) from error

    def _translated(self, error: psycopg.Error) -> StoreError:
        said = error.diag.message_primary or (str(error).strip().splitlines() or [type(error).__name__])[0]
        if isinstance(error, _BUSY):
            return StoreBusy(f"somebody else is writing to {self.url}", hint="try again in a moment")
        if isinstance(error, _FOREIGN):
            return schema.foreign(self.url, f"the server says: {said}")
        hint = "make room on the server's disk" if isinstance(error, errors.DiskFull) else "see whether the server runs"
        return StoreUnavailable(f"the store {self.url} cannot be used: {said}", hint=hint)


def _shown(options: Mapping[str, Any], schema_name: str) -> str:
    """The URL of these options and this schema, without what is secret."""
    secret = {option.keyword.decode() for option in Conninfo.get_defaults() if option.dispchar == b"*"}
    known = {name: value for name, value in options.items() if name not in secret}
    server = ""
    if not set(known.get("host", "")) & set(",/:"):
        user, host, port = known.pop("user", ""), known.pop("host", ""), known.pop("port", "")
        server = f"{quote(user, safe='')}@" * bool(user) + host + f":{port}" * bool(port)
    path = quote(known.pop("dbname", ""), safe="")
    return f"postgresql://{server}/{path}?{urlencode({**known, 'schema': schema_name}, quote_via=quote)}"
