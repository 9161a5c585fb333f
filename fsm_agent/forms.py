"""How a secret may be written: as it is; escaped for JSON, for Python or for an address, once or twice; as a number.

What is masked where it is shown (`redaction.py`) and what is left out of a store (`journal/holes.py`) is the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, quote_plus

import msgspec

SHORTEST_WITHIN: Final = 4
"""A shorter secret is one only where it is the whole value: within texts, much else looks like it."""
_LONGEST_NUMBER: Final = 400

_as_json = msgspec.json.Encoder().encode


class Form(NamedTuple):
    """One way in which a secret may be written."""

    word: str
    """The way's name; the same for every secret."""
    text: str
    within: bool
    """Whether it counts within longer texts too."""


def leaves_of(secret: Any) -> Iterator[str | int | float]:
    """The texts and numbers in a secret, always in the same order. Booleans, None and the empty text are no secrets."""
    if isinstance(secret, Mapping):
        for _, item in sorted(secret.items(), key=lambda pair: str(pair[0])):
            yield from leaves_of(item)
    elif isinstance(secret, (list, tuple, set, frozenset)):
        for item in secret:
            yield from leaves_of(item)
    elif isinstance(secret, (str, int, float)):
        if secret != "" and not isinstance(secret, bool):
            yield secret
    elif secret is not None:
        yield str(secret)


def forms_of(leaf: str | int | float) -> tuple[Form, ...]:
    """All ways in which a text or a number may be written, the plain one first; each text once."""
    plain = leaf if isinstance(leaf, str) else number_text(leaf)
    is_long = len(plain) >= SHORTEST_WITHIN
    found = {plain: Form("plain", plain, is_long)}
    for word, text in _number_forms(leaf):
        # "10.0" is no more telling than "10" is.
        found.setdefault(text, Form(word, text, is_long and len(text.removesuffix(".0")) >= SHORTEST_WITHIN))
    if isinstance(leaf, str):
        for word, text in _escaped_forms(leaf):
            found.setdefault(text, Form(word, text, is_long))
    return tuple(found.values())


def number_text(number: int | float) -> str:
    """A number as it is written in JSON."""
    try:
        return _as_json(number).decode()
    except OverflowError:  # msgspec stops at 64 bits, JSON and Python do not
        try:
            return str(number)
        except ValueError:  # Python stops at some thousands of digits: no plain data has such a number
            return hex(number) if isinstance(number, int) else ""


def _number_forms(leaf: str | int | float) -> Iterator[tuple[str, str]]:
    """The whole number and the float that it is, or that the text says; the latter also as JSON has it."""
    whole, real = _numbers(leaf)
    if whole is not None:
        yield "whole", str(whole)
    if real is not None:
        yield "float", repr(real)
        yield "float json", number_text(real)


def _numbers(leaf: str | int | float) -> tuple[int | None, float | None]:
    if isinstance(leaf, (str, int)) and len(leaf if isinstance(leaf, str) else number_text(leaf)) > _LONGEST_NUMBER:
        return None, None
    try:
        real: float | None = float(leaf)
    except (ValueError, OverflowError):
        real = None
    if real is not None and not math.isfinite(real):
        real = None
    try:
        return int(leaf) if isinstance(leaf, (str, int)) or leaf.is_integer() else None, real
    except (ValueError, OverflowError):
        return int(real) if real is not None and real.is_integer() else None, real


def _escaped_forms(text: str) -> Iterator[tuple[str, str]]:
    once = [(word, write(text)) for word, write in _WAYS.items()]
    yield from once
    if all(written == text for _, written in once):
        return
    for word, written in once:
        for outer in _OUTER:
            yield f"{word} in {outer}", _WAYS[outer](written)


def _python_quoted(write: Callable[[str], str]) -> Callable[[str], str]:
    """As Python writes it within a text that holds both kinds of quotes: the single ones are escaped then."""
    return lambda text: write(text + "\"'")[1:-4]


_WAYS: Final[Mapping[str, Callable[[str], str]]] = {
    "json": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "json ascii": lambda text: json.dumps(text)[1:-1],
    "python": lambda text: repr(text)[1:-1],
    "python quoted": _python_quoted(repr),
    "python ascii": lambda text: ascii(text)[1:-1],
    "python ascii quoted": _python_quoted(ascii),
    "python escape": lambda text: text.encode("unicode_escape").decode("ascii"),
    "python bytes": lambda text: repr(text.encode("utf-8", "surrogatepass") + b"\"'")[2:-4],
    "address": lambda text: quote(text, safe="", errors="replace"),
    "address path": lambda text: quote(text, errors="replace"),
    "address query": lambda text: quote_plus(text, errors="replace"),
}
_OUTER: Final = ("json", "json ascii", "python", "python quoted", "python ascii")
