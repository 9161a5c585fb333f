"""The pages of the documentation, taken apart into fenced blocks and tables.

A block may have a note: an HTML comment on the line right above it. These are all there are:

    <!-- name: X -->          other blocks of the page may begin with this one
    <!-- setup: X -->         the block named X is run first
    <!-- invalid: R R -->     the block is a plan with exactly these problems
    <!-- not run: why -->     the block cannot be run by a test

A block of the language `shell` is run by a real shell. A block that begins with a comment such as `# plans/trip.yaml`
is also a file of that name, for all blocks of its page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_NOTE = re.compile(r"<!-- (name|setup|invalid|not run): (.+) -->")
_FILE = re.compile(r"# ([\w/-]+\.(?:yaml|json|py))")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    page: str
    line: int
    language: str
    text: str
    notes: dict[str, str]
    output: str | None = None
    """For Python and the shell: the `text` block that follows it, with nothing in between."""

    @property
    def place(self) -> str:
        """The page and the line, for people."""
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str | None:
        """The name of the file that the block is, if it says so."""
        found = _FILE.fullmatch(self.text.partition("\n")[0])
        return found[1] if found else None


@dataclass(frozen=True, slots=True)
class Table:
    """One table, cells without their blanks."""

    line: int
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, number: int) -> list[str]:
        """One cell of each row, without its backquotes."""
        return [row[number].strip("`") for row in self.rows]


def pages() -> list[Path]:
    """All pages: the README, once there is one, and the folder `docs`."""
    return [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if path.is_file()]


def blocks_of(path: Path) -> list[Block]:
    """The fenced blocks of a page. The output that follows a Python block is a part of that one."""
    lines = path.read_text(encoding="utf-8").splitlines()
    name = path.relative_to(ROOT).as_posix()
    found: list[Block] = []
    ends: list[int] = []
    number = 0
    while number < len(lines):
        if not lines[number].startswith("```"):
            number += 1
            continue
        end = lines.index("```", number + 1)
        notes = dict(_NOTE.findall(lines[number - 1])) if number else {}
        text = "\n".join(lines[number + 1 : end])
        block = Block(name, number + 1, lines[number][3:].strip(), text, notes)
        between = "".join(lines[ends[-1] + 1 : number]) if ends else "none"
        if found and block.language == "text" and found[-1].language in ("python", "shell") and not between:
            last = found.pop()
            ends.pop()
            block = Block(last.page, last.line, last.language, last.text, last.notes, text)
        found.append(block)
        ends.append(end)
        number = end + 1
    return found


def tables_of(path: Path) -> list[Table]:
    """The tables of a page."""
    tables = []
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines[1:], start=1):
        if re.fullmatch(r"(\|\s*-+\s*)+\|", line):
            rows = []
            for row in lines[number + 1 :]:
                if not row.startswith("|"):
                    break
                rows.append(_cells(row))
            tables.append(Table(number, _cells(lines[number - 1]), tuple(rows)))
    return tables


def _cells(row: str) -> tuple[str, ...]:
    return tuple(cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1])
