"""Tables and lists of facts for people, in plain text."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

from fsm_agent.views.text import clip, one_line, pad, width

GAP = "  "
_MOST_COLUMNS = 40
"""A cell of any column but the last is cut to this width."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, bounded: bool) -> str:
    """Rows under a head. `bounded`: no line is wider than the terminal."""
    last = len(head) - 1
    cells = [[_cell(text, place == last) for place, text in enumerate(row)] for row in (head, *rows)]
    columns = [max(width(row[place]) for row in cells) for place in range(last)]
    lines = [GAP.join([*map(pad, row[:last], columns), row[last]]).rstrip() for row in cells]
    lines.insert(1, GAP.join("-" * column for column in [*columns, width(head[last])]))
    most = shutil.get_terminal_size().columns if bounded else None
    return "\n".join(clip(line, most) if most else line for line in lines)


def facts(known: Mapping[str, str]) -> str:
    """Names and their values; a value of several lines stands below its name. Empty values are left out."""
    columns = max((width(name) for name in known), default=0)
    return "\n".join(
        f"{name}\n{indented(value)}" if "\n" in value else f"{pad(name, columns)}{GAP}{value}"
        for name, value in known.items()
        if value
    )


def _cell(text: str, is_last: bool) -> str:
    line = one_line(text)
    return line if is_last else clip(line, _MOST_COLUMNS)


def indented(text: str) -> str:
    """Each line of the text under an indent."""
    return "\n".join(f"{GAP}{line}" for line in text.splitlines())
