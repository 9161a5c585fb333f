"""The SQL of the stores: files in `sql/`, and the statements in them by name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

_MARK = "-- name: "


@cache
def script(name: str) -> str:
    """A whole file, by its name without the ending."""
    return files("fsm_agent.journal").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


@cache
def queries() -> dict[str, str]:
    """Every statement of `queries.sql`. Places for values are question marks, in the order of the text."""
    _, *parts = script("queries").split(_MARK)
    named = (part.partition("\n") for part in parts)
    return {name.strip(): _without_comments(text) for name, _, text in named}


def _without_comments(text: str) -> str:
    lines = (line for line in text.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip()
