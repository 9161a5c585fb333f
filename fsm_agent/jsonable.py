"""Plain JSON data: the only form in which the engine keeps what skills return and write.

The rules are pydantic's (models and dataclasses to dicts, tuples and sets to lists, dates to ISO strings), with no
guessing at the edges: what has no exact JSON form is refused, never stored as something else.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any

import msgspec
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from fsm_agent.errors import NotJson

MAX_DEPTH = 200
"""Deeper data is refused: many readers of JSON cannot take it."""

HUGE_BITS = 1024
"""A larger whole number is refused: Python itself stops writing them out somewhere."""

_HUGE = 1 << HUGE_BITS
_NUMBERS_AND_TEXTS = (str, int, float)
_NO_DATA = (complex, re.Pattern)

_SEQUENCES = (tuple, set, frozenset)
_encoder = msgspec.json.Encoder()


def to_plain(value: Any, path: str = "$") -> Any:
    """A fresh copy of `value` as plain JSON data: dict, list, str, int, float, bool, None, exactly.

    Raises NotJson, naming the path and the type, for what has no such form.
    """
    try:
        return _quick(value, MAX_DEPTH)
    except _NotQuick:
        return _plain(value, path, 0, set())


class _NotQuick(Exception):
    """The value needs a closer look."""


def _quick(value: Any, depth: int) -> Any:
    """The same for what is plain already, as most data is: no paths are kept, and nothing is converted."""
    kind = type(value)
    if kind is str:
        if value.isascii():
            return value
    elif kind is dict:
        if depth:
            for key in value:
                if type(key) is not str or not key.isascii():
                    raise _NotQuick
            return {key: _quick(item, depth - 1) for key, item in value.items()}
    elif kind is list:
        if depth:
            return [_quick(item, depth - 1) for item in value]
    elif kind is int:
        if -_HUGE < value < _HUGE:
            return value
    elif value is None or kind is bool or (kind is float and math.isfinite(value)):
        return value
    raise _NotQuick


def copy_plain(value: Any) -> Any:
    """A copy of data that is plain already, so that its owner's later changes do not reach it."""
    kind = type(value)
    if kind is dict:
        return {key: copy_plain(item) if type(item) in (dict, list) else item for key, item in value.items()}
    if kind is list:
        return [copy_plain(item) if type(item) in (dict, list) else item for item in value]
    return value


def encode(value: Any) -> bytes:
    """Compact UTF-8 JSON of plain data."""
    try:
        return _encoder.encode(value)
    except OverflowError:  # msgspec stops at 64 bits, JSON and Python do not
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def size_of(value: Any) -> int:
    """How many bytes plain data takes as compact UTF-8 JSON."""
    return len(encode(value))


def _plain(value: Any, path: str, depth: int, above: set[int]) -> Any:
    kind = type(value)
    if kind is str:
        return _text(value, path)
    if value is None or kind is bool:
        return value
    if kind is int:
        if -_HUGE < value < _HUGE:
            return value
        raise NotJson(path, "int", f"a whole number must have less than {HUGE_BITS:,} bits")
    if kind is float:
        if math.isfinite(value):
            return value
        raise NotJson(path, "float", "a number must be finite")
    if depth >= MAX_DEPTH:
        raise NotJson(path, kind.__name__, f"it is nested deeper than {MAX_DEPTH} levels")
    if id(value) in above:
        raise NotJson(path, kind.__name__, "it contains itself")
    above.add(id(value))
    try:
        if kind is dict:
            return {_key(key, path): _plain(item, f"{path}.{key}", depth + 1, above) for key, item in value.items()}
        if kind is list:
            return [_plain(item, f"{path}[{place}]", depth + 1, above) for place, item in enumerate(value)]
        return _converted(value, path, depth, above)
    finally:
        above.discard(id(value))


def _text(value: str, path: str) -> str:
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise NotJson(path, "str", "it holds half of a surrogate pair") from None
    return value


def _key(key: Any, path: str) -> str:
    if isinstance(key, str):
        return _text(str.__str__(key), path)
    raise NotJson(path, type(key).__name__, "a key must be a string")


def _converted(value: Any, path: str, depth: int, above: set[int]) -> Any:
    """What is neither plain nor a plain container: subclasses, collections, models, dates and the like."""
    if isinstance(value, Enum):
        return _plain(value.value, path, depth, above)
    if isinstance(value, _SEQUENCES):
        return _plain(_ordered(value), path, depth, above)
    if isinstance(value, Mapping):
        return _plain(dict(value), path, depth, above)
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(mode="python"), path, depth, above)
    if is_dataclass(value) and not isinstance(value, type):
        return _plain({name: getattr(value, name) for name in value.__dataclass_fields__}, path, depth, above)
    if isinstance(value, _NUMBERS_AND_TEXTS):
        return _plain(_bare(value), path, depth, above)
    if isinstance(value, PurePath):
        return _text(str(value), path)
    return _by_pydantic(value, path)


def _bare(value: Any) -> Any:
    """What a subclass of str, int or float holds, whatever its own methods say."""
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)


def _ordered(value: Any) -> list[Any]:
    """A sequence as it is; a set in the order of its text, so that the same set is the same list each time."""
    return list(value) if isinstance(value, tuple) else sorted(value, key=lambda item: (type(item).__name__, str(item)))


def _by_pydantic(value: Any, path: str) -> Any:
    kind = type(value).__name__
    if callable(value) or isinstance(value, _NO_DATA) or hasattr(value, "__next__") or hasattr(value, "__await__"):
        raise NotJson(path, kind, "it is no data")
    if isinstance(value, Decimal) and not value.is_finite():
        raise NotJson(path, kind, "a number must be finite")
    try:
        plain = to_jsonable_python(value, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        raise NotJson(path, kind, "it has no JSON form") from None
    if type(plain) in (str, int, float, bool) or plain is None:
        return _plain(plain, path, 0, set())
    raise NotJson(path, kind, "it has no JSON form")
