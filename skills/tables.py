"""Reading a table from a CSV file: every cell as the type that the plan asks for, every fault with its place."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Literal

from fsm_agent import SkillContext, skill

Kind = Literal["text", "whole", "number"]
Cell = str | int | float
Row = dict[str, Cell]

_SHOWN = 8
_WORDS: Mapping[Kind, str] = {"whole": "a whole number", "number": "a number"}


class TableError(ValueError):
    """A table is missing, or is not as the plan needs it. The message says where, and what to do."""


@skill(idempotent=True, retry_on=OSError)
def read_table(
    file: Path, columns: dict[str, Kind], context: SkillContext, where: dict[str, str] | None = None
) -> list[Row]:
    """Read the named columns of a CSV file (UTF-8, with a header line), one dict a row.

    `columns` gives the type of each: text, whole (a whole number) or number. `where` keeps only the rows that have
    these texts in these columns. Raises TableError if the file, a column, a cell or every matching row is missing.
    """
    rows = load_rows(file, columns, where or {})
    context.log("table read", file=str(file), rows=len(rows))
    return rows


def load_rows(file: Path, columns: Mapping[str, Kind], where: Mapping[str, str]) -> list[Row]:
    """The rows of a file. Raises TableError, and OSError for a file that is there but cannot be read just now."""
    if not file.is_file():
        raise TableError(f"there is no file {file} in {Path.cwd()}: give the path of the table")
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return parse_rows(lines, str(file), columns, where)


def parse_rows(lines: Iterator[str], name: str, columns: Mapping[str, Kind], where: Mapping[str, str]) -> list[Row]:
    """The rows of a table's lines; `name` is what messages call it."""
    table = csv.DictReader(lines, strict=True)
    seen: dict[str, set[str]] = {column: set() for column in where}
    rows: list[Row] = []
    try:
        _check_header(table.fieldnames, name, [*columns, *where])
        for cells in table:
            place = f"{name}, line {table.line_num}"
            if None in cells:
                raise TableError(f"{place}: more cells than columns: put a cell with commas in quotes")
            for column, texts in seen.items():
                texts.add(cells[column] or "")
            if all(cells[column] == text for column, text in where.items()):
                rows.append({column: _cell(cells, column, kind, place) for column, kind in columns.items()})
    except (csv.Error, UnicodeDecodeError) as error:
        raise TableError(f"{name}, after line {table.line_num}: not a CSV table in UTF-8: save it as one") from error
    if not rows:
        raise TableError(f"{name}: {_why_empty(where, seen)}")
    return rows


def _check_header(header: object, name: str, wanted: list[str]) -> None:
    found = list(header) if isinstance(header, (list, tuple)) else []
    missing = [column for column in wanted if column not in found]
    if missing:
        has = f"it has {', '.join(found)}" if found else "it is empty"
        raise TableError(f"{name}, line 1: there is no column {', '.join(map(repr, missing))}; {has}")


def _cell(cells: Mapping[str, str | None], column: str, kind: Kind, place: str) -> Cell:
    text = cells[column]
    if text is None:
        raise TableError(f"{place}: the row ends before column {column!r}: complete it")
    if kind == "text":
        return text
    number = _number(text, kind)
    if number is None:
        raise TableError(f"{place}, column {column!r}: {text!r} is not {_WORDS[kind]}: correct the cell")
    return number


def _number(text: str, kind: Kind) -> int | float | None:
    """The number that a text is; None where it is none, or one that only Python would write so."""
    if not text.isascii() or "_" in text:
        return None
    try:
        number = int(text) if kind == "whole" else float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _why_empty(where: Mapping[str, str], seen: Mapping[str, set[str]]) -> str:
    for column, text in where.items():
        if text not in seen[column]:
            known = sorted(seen[column])
            shown = ", ".join(known[:_SHOWN]) + (", …" if len(known) > _SHOWN else "")
            return f"no row has {text!r} as its {column}; there is {shown or 'nothing'}"
    return "no row has all of what is asked for" if where else "it has no rows"
