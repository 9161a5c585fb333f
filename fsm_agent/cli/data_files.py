"""Data that the command line takes: files of JSON or YAML, and KEY=VALUE."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from fsm_agent.cli.encoding import as_utf8
from fsm_agent.errors import UsageError
from fsm_agent.plan.findings import Finding
from fsm_agent.plan.source import kind_of_file, parse_text, read_file
from fsm_agent.plan.spellings import unwritten


def read_data(path: str | Path) -> Any:
    """The plain data of a JSON or YAML file. Raises UsageError for what cannot be read."""
    text = read_file(path)
    if isinstance(text, Finding):
        _refuse(str(path), text)
    parsed, _ = parse_text(text, kind_of_file(path))
    if parsed.findings:
        _refuse(str(path), parsed.findings[0])
    if parsed.has_duplicates:
        raise UsageError(f"{path}: a key stands there twice in one object", hint="remove one of them")
    if parsed.is_odd:
        raise UsageError(f"{path}: a number there is not finite", hint="write it as text, or leave it out")
    return unwritten(parsed.data)


def read_object(path: str | Path) -> dict[str, Any]:
    """The same, where it must be an object. Raises UsageError."""
    data = read_data(path)
    if not isinstance(data, dict):
        raise UsageError(f"{path} must hold an object: names and their values")
    return data


def assignments(pairs: Iterable[str], option: str) -> dict[str, Any]:
    """Names and values, each given as KEY=VALUE: a JSON value, else text; of two for one name the later counts.

    Raises UsageError, in which no value is shown: it may be a secret.
    """
    return {key: json_or_text(text) for key, text in _split(pairs, option, "budget=3000")}


def labels_of(pairs: Iterable[str]) -> dict[str, str]:
    """Labels, each given as KEY=VALUE; a value is text. Raises UsageError."""
    return dict(_split(pairs, "--label", "team=sales"))


def _split(pairs: Iterable[str], option: str, example: str) -> Iterator[tuple[str, str]]:
    for pair in map(as_utf8, pairs):
        key, sign, text = pair.partition("=")
        if not sign or not key.strip():
            raise UsageError(f"{option} takes KEY=VALUE", hint=f"such as {option} {example}")
        yield key.strip(), text


def json_or_text(text: str) -> Any:
    """The JSON value that a text is, or else the text."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


def _refuse(path: str, finding: Finding) -> NoReturn:
    place = ":".join(str(part) for part in (path, finding.line, finding.column) if part is not None)
    raise UsageError(f"{place}: {finding.message}")
