"""From a plan file's bytes to data: the ending says JSON or YAML, and the text must be UTF-8."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from fsm_agent.errors import UsageError
from fsm_agent.plan.findings import Finding
from fsm_agent.plan.json_reader import Parsed, json_tokens, read_json
from fsm_agent.plan.places import Token

MAX_BYTES = 10_000_000
"""How large a plan file may be: room for 10,000 tasks with a kilobyte each."""

Kind = Literal["json", "yaml"]

_KINDS: Mapping[str, Kind] = {".json": "json", ".yaml": "yaml", ".yml": "yaml"}
_OTHER_MARKS = (b"\xff\xfe", b"\xfe\xff")


def kind_of_file(path: str | os.PathLike[str]) -> Kind | None:
    """What the ending says; None where it says nothing."""
    return _KINDS.get(Path(path).suffix.lower())


def read_file(path: str | os.PathLike[str]) -> str | Finding:
    """The text of a file, or why it cannot be a plan's. Raises UsageError where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        hint = "give the path of a plan file; a plan's text is no path" if _is_text(path) else "check the path"
        raise UsageError(f"{str(path)[:200]}: the file cannot be read: {reason}", hint=hint) from None
    if len(content) > MAX_BYTES:
        return Finding("bad_syntax", (), f"the file is larger than a plan may be ({MAX_BYTES:,} bytes)", line=1)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _not_utf8(content, error)


def parse_text(text: str, kind: Kind | None) -> tuple[Parsed, Kind]:
    """The data of a text. Where the kind is not known it is JSON if it can be, else YAML."""
    if kind is not None:
        return _parse(text, kind), kind
    as_json = _parse(text, "json")
    if as_json.data is not None or not as_json.findings:
        return as_json, "json"
    as_yaml = _parse(text, "yaml")
    looks_like_json = text.lstrip()[:1] in ("{", "[")
    return (as_json, "json") if as_yaml.data is None and looks_like_json else (as_yaml, "yaml")


def tokens_of(text: str, kind: Kind) -> Iterator[Token]:
    """The pieces of a text that `parse_text` has data of."""
    if kind == "json":
        return json_tokens(text)
    from fsm_agent.plan.yaml_reader import yaml_tokens  # noqa: PLC0415 - as below

    return yaml_tokens(text)


def _parse(text: str, kind: Kind) -> Parsed:
    if kind == "json":
        return read_json(text)
    from fsm_agent.plan.yaml_reader import read_yaml  # noqa: PLC0415 - only who reads YAML pays for its parser

    return read_yaml(text)


def _not_utf8(content: bytes, error: UnicodeDecodeError) -> Finding:
    start = content.rfind(b"\n", 0, error.start) + 1
    column = len(content[start : error.start].decode("utf-8-sig", errors="replace")) + 1
    what = "UTF-16" if content.startswith(_OTHER_MARKS) else "no UTF-8"
    message = f"the file is {what} text; a plan file is UTF-8"
    line = content.count(b"\n", 0, error.start) + 1
    return Finding("bad_syntax", (), message, hint="save it as UTF-8", line=line, column=column)


def _is_text(path: object) -> bool:
    return any(sign in str(path) for sign in "{}[]\n")
