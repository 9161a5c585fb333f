"""The regular expressions that a plan may hold (`when: /…/`): those that cannot be made to run for ever.

Python's engine tries every way of matching. A repetition of what itself repeats or branches has exponentially many of
them, so only single characters and sets may be repeated, and nothing may refer back. What is left is at worst
polynomial, over a goal of bounded length.
"""

from __future__ import annotations

import re
from re import _constants as codes  # type: ignore[attr-defined] # the parsed form is not public
from re import _parser as parser  # type: ignore[attr-defined] # as above
from typing import Any

MAX_LENGTH = 500
MAX_REPEATS = 2
MAX_SEARCHED = 500
"""So many characters of a goal are looked at."""

_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, getattr(codes, "POSSESSIVE_REPEAT", None))
_SINGLE = (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY)
_PLAIN = (*_SINGLE, codes.AT)
_TWICE = 2


def pattern_error(pattern: str) -> str:
    """Why a pattern is refused; nothing where it is fine."""
    if len(pattern) > MAX_LENGTH:
        return f"it has more than {MAX_LENGTH} characters"
    try:
        re.compile(pattern)
        parsed = parser.parse(pattern)
    except (re.error, FutureWarning) as error:  # the warning is an error where the process wants it so
        return str(error)
    except (RecursionError, OverflowError):
        return "it is too large"
    repeats = [0]
    return _error_in(parsed, repeats)


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern stands in a text, whatever the case of its letters. The pattern has passed `pattern_error`."""
    return re.search(pattern, text[:MAX_SEARCHED], re.IGNORECASE) is not None


def _error_in(parsed: Any, repeats: list[int]) -> str:
    for operation, argument in parsed:
        error = ""
        if operation in _REPEATS:
            error = _error_in_repeat(argument, repeats)
        elif operation is codes.SUBPATTERN:
            error = _error_in(argument[-1], repeats)
        elif operation is codes.BRANCH:
            error = next(filter(None, (_error_in(way, repeats) for way in argument[1])), "")
        elif operation not in _PLAIN:
            error = "look-around and references back are not allowed"
        if error:
            return error
    return ""


def _error_in_repeat(argument: Any, repeats: list[int]) -> str:
    _, most, repeated = argument
    if most < _TWICE:  # `?`: there or not
        return _error_in(repeated, repeats)
    if len(repeated) != 1 or repeated[0][0] not in _SINGLE:
        return "only single characters and sets may be repeated"
    repeats[0] += 1
    return f"it has more than {MAX_REPEATS} repetitions" if repeats[0] > MAX_REPEATS else ""
