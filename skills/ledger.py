"""A ledger of bookings: a CSV file to which lines are only added, and no booking twice."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from fsm_agent import SkillContext, skill

COLUMNS = ["key", "run_id", "what", "amount"]


class LedgerError(ValueError):
    """The ledger cannot be trusted or does not fit the booking. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Booking:
    """A booking in the ledger. `repeated`: it was there already, and was not made again. `amount` is in yuan."""

    key: str
    what: str
    amount: int
    repeated: bool


@skill(risk="high", idempotent=True, timeout=10, retry_on=(OSError, "timeout"))
def enter_booking(ledger: Path, what: str, amount: int, context: SkillContext) -> Booking:
    """Spend money: enter a booking into the ledger, under the key of this visit.

    A second call with the same key (a second attempt, or after a crash) finds the booking, and enters nothing. Raises
    LedgerError if the ledger is damaged, or has something else under the key.
    """
    return book(ledger, context.idempotency_key, context.run_id, what, amount)


def book(ledger: Path, key: str, run_id: str, what: str, amount: int) -> Booking:
    """Enter a booking unless its key is there already."""
    if amount <= 0:
        raise ValueError("amount must be greater than 0")
    made = bookings(ledger).get(key)
    if made is not None:
        if made != (what, amount):
            raise LedgerError(f"{ledger} has another booking under the same key: a key stands for one booking")
        return Booking(key, what, amount, repeated=True)
    ledger.parent.mkdir(parents=True, exist_ok=True)
    head = [] if ledger.exists() and ledger.stat().st_size else [COLUMNS]
    with ledger.open("a", encoding="utf-8", newline="") as file:
        file.write(_csv([*head, [key, run_id, what, str(amount)]]))
    return Booking(key, what, amount, repeated=False)


def bookings(ledger: Path) -> dict[str, tuple[str, int]]:
    """What is in the ledger: key → what was booked, and for how much."""
    if not ledger.exists():
        return {}
    with ledger.open(encoding="utf-8", newline="") as file:
        text = file.read()
    if text and not text.endswith("\n"):
        raise LedgerError(f"{ledger} ends in the middle of a line: complete or remove its last line")
    found = {}
    for place, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if place == 1 and row == COLUMNS:
            continue
        if place == 1 or len(row) != len(COLUMNS) or not row[3].isdecimal():
            raise LedgerError(f"{ledger}, row {place}: not a row of {', '.join(COLUMNS)}: correct or move the file")
        found[row[0]] = (row[2], int(row[3]))
    return found


def _csv(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
