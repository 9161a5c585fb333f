"""What the store asks of a database: statements by name, in transactions, and errors in the words of the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

Row = tuple[Any, ...]
Step = tuple[str, Sequence[Row]]
"""A statement's name, and the values for each time that it is executed."""

T = TypeVar("T")


class Database(Protocol):
    """One connection. Its caller sees to it that there is one call at a time.

    All of it raises StoreBusy, StoreUnavailable and NotAStore. After an error nothing is under way any more, and the
    next call is as good as any: it connects anew where the connection was lost.
    """

    @property
    def url(self) -> str:
        """Where it is, without any password."""

    @property
    def is_quick(self) -> bool:
        """Whether no network is between."""

    @property
    def patience(self) -> float:
        """How long to wait for others, in seconds."""

    @property
    def key_file(self) -> Path | None:
        """Where the key of digests over secrets is kept, if there is a place beside the database."""

    def now(self) -> float:
        """The time by which leases run out, in seconds since 1970."""

    def write(self, steps: Sequence[Step]) -> bool:
        """All steps, in one transaction, as soon as others let it. False, with nothing done, where the first changes
        no row or where a row is there already.
        """

    def transact(self, work: Callable[[], T]) -> T:
        """What `work` does, in one transaction; nothing of it if it raises."""

    def rows(self, name: str, values: Row = ()) -> list[Row]:
        """What a statement gives."""

    def change(self, name: str, *rows: Row) -> int:
        """How many rows a statement changes, executed with each of these."""

    def news(self) -> int:
        """A number that differs from the last one if another connection may have written since."""

    def close(self) -> None:
        """Let go of it, for good."""
