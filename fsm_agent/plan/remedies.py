"""What to write instead of a value that does not fit, where that can be told. No value that may be secret is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fsm_agent.plan.findings import Path

_TYPES: Mapping[str, str] = {
    "int": "integer",
    "str": "string",
    "text": "string",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "none": "null",
}
"""What other languages call the types of JSON Schema."""

_NUMBERS: Mapping[str, re.Pattern[str]] = {
    "int_type": re.compile(r"[+-]?\d{1,18}"),
    "float_type": re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?"),
    "bool_type": re.compile(r"true|false"),
}
_SPAN = re.compile(r"\d{1,18}(?:\.\d{1,18})? ?[A-Za-z]{1,12}")


def remedy(path: Path, kind: str, context: Mapping[str, Any], value: Any) -> str:
    """A hint for the value at this place; the kind and the context are pydantic's. Empty where nothing is known."""
    match path:
        case ("inputs", str()) if isinstance(value, str):
            return "write {type: string}"
        case ("inputs", _, "type"):
            return _type_meant(value)
    if not isinstance(value, str):
        return ""
    if kind == "list_type":
        return "write [a] for a list of one"
    if kind == "literal_error" and repr(value.lower()) in str(context.get("expected")):
        return f"write {value.lower()!r}, in lower case"
    if kind in _NUMBERS and _NUMBERS[kind].fullmatch(value):
        return "write it without quotes"
    return "write a number of seconds" if kind == "float_type" and _SPAN.fullmatch(value) else ""


def _type_meant(value: Any) -> str:
    kinds = value if isinstance(value, list) else [value]
    meant = [_TYPES[kind.lower()] for kind in kinds if isinstance(kind, str) and kind.lower() in _TYPES]
    return f"write {meant[0]}" if meant else ""
