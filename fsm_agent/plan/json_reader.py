"""Reading JSON strictly: duplicate keys, numbers that are none and halves of characters are found, not swallowed."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fsm_agent.plan.findings import Finding, Path
from fsm_agent.plan.places import Token
from fsm_agent.plan.spellings import normal_path

MAX_DEPTH = 100
"""How many levels of lists and mappings a plan may nest."""

MAX_VALUES = 1_000_000
"""How many values a plan may hold in all: 100 for each of 10,000 tasks."""

_TOKEN = re.compile(r'\s*(?:([\[\]{}])|"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?|[^\s\[\]{},:"]+|[,:])', re.DOTALL)
HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may stand for half of a character (a surrogate)."""


@dataclass(slots=True)
class Parsed:
    """What a text holds as data, and what is wrong with it as a text. After a syntax error there is no data."""

    data: Any = None
    findings: list[Finding] = field(default_factory=list)
    has_duplicates: bool = False
    """Whether some mapping has a key twice; `places_of` finds where."""
    is_odd: bool = False
    """Whether some number is not finite."""


def read_json(text: str) -> Parsed:
    """The data of a JSON text. Raises nothing: what is wrong is among the findings."""
    parsed = Parsed()

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        parsed.has_duplicates |= len(made) < len(pairs)
        return made

    def number(digits: str) -> int | float:
        try:
            value = float(digits) if not digits.lstrip("-").isdigit() else int(digits)
        except ValueError:  # Python reads no whole number of more than 4,300 digits
            value = math.inf
        parsed.is_odd |= isinstance(value, float) and not math.isfinite(value)
        return value

    try:
        parsed.data = json.loads(
            text, object_pairs_hook=mapping, parse_constant=number, parse_float=number, parse_int=number
        )
    except json.JSONDecodeError as error:
        return Parsed(findings=[_bad_syntax(error)])
    except RecursionError:
        return Parsed(findings=[_too_deep(text)])
    if (oversize := oversized(parsed.data)) is not None:
        return Parsed(findings=[_too_deep(text) if oversize.rule == "too_deep" else oversize])
    if parsed.is_odd or HALF_CHARACTER.search(text):
        parsed.findings.extend(unfit_leaves(parsed.data))
    return parsed


def json_tokens(text: str) -> Iterator[Token]:
    """The pieces of a JSON text that is known to parse."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    for match in _TOKEN.finditer(text):
        bracket, string, colon = match.group(1, 2, 3)
        begin = match.start(1) if bracket else match.start(2) - 1 if string is not None else match.end() - 1
        line = bisect_right(starts, begin)
        column = begin - starts[line - 1] + 1
        if bracket:
            yield Token(bracket, None, line, column)
        elif colon:
            yield Token("key", json.loads(f'"{string}"') if "\\" in string else string, line, column)
        elif string is not None or match.group().strip() not in (",", ":"):
            yield Token("scalar", None, line, column)


def oversized(data: Any) -> Finding | None:
    """What is said of data that nests too deep or holds too much, if it does."""
    depth = values = 0
    level = [data]
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        values += sum(map(len, level))
        if depth > MAX_DEPTH:
            return too_deep()
        if values > MAX_VALUES:
            return too_much()
        level = [item for parent in level for item in (parent.values() if isinstance(parent, dict) else parent)]
    return None


def unfit_leaves(data: Any) -> Iterator[Finding]:
    """Numbers and texts in the data that JSON has no form for."""
    todo: list[tuple[Path, Any]] = [((), data)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, dict):
            todo.extend(((*path, key), item) for key, item in value.items())
            todo.extend(((*path, key), key) for key in value if not is_whole(key))
        elif isinstance(value, list):
            todo.extend(((*path, place), item) for place, item in enumerate(value))
        elif isinstance(value, float) and not math.isfinite(value):
            yield bad_number(normal_path(path))
        elif isinstance(value, str) and not is_whole(value):
            message = "the text holds half of a character (a lone surrogate)"
            yield Finding("bad_value", normal_path(path), message, hint="write the character itself")


def bad_number(path: Path) -> Finding:
    """What is said of NaN, infinity, and numbers out of range, wherever they turn up."""
    return Finding("bad_number", path, "the number is not finite, or out of range", hint="give a finite number")


def is_whole(text: str) -> bool:
    """Whether a text holds no half of a character."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _bad_syntax(error: json.JSONDecodeError) -> Finding:
    if not error.doc.strip():
        return Finding("bad_syntax", (), "the file is empty", hint="a plan has `tasks`", line=1, column=1)
    message = f"this is no JSON: {error.msg[:1].lower()}{error.msg[1:]}"
    return Finding("bad_syntax", (), message, line=error.lineno, column=error.colno)


def _too_deep(text: str) -> Finding:
    depth, line, column = 0, 1, 1
    for token in json_tokens(text):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token.kind, 0)
        if depth > MAX_DEPTH:
            line, column = token.line, token.column
            break
    return too_deep(line, column)


def too_deep(line: int | None = None, column: int | None = None) -> Finding:
    """What is said of a text that nests deeper than a plan may."""
    message = f"lists and mappings are nested deeper than {MAX_DEPTH} levels"
    return Finding("too_deep", (), message, line=line, column=column)


def too_much() -> Finding:
    """What is said of a plan that holds more than a plan may."""
    message = f"the plan holds more than {MAX_VALUES:,} values"
    return Finding("bad_value", (), message, hint="put large data into a file, and its path into the plan", line=1)
