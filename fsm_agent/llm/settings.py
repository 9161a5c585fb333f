"""Which server and model: from arguments, else from environment variables, else from `.env` in the current folder."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import SecretStr

from fsm_agent.errors import ModelNotSet, UsageError

DOTENV = ".env"
TEMPERATURE = 0.1
"""Where nobody names one: plans should not be inventive."""

MAX_DOTENV = 100_000

_KEY = re.compile(r"[!-~]+")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)")
_QUOTED = re.compile(r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*(?:#.*)?""")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Where a model is asked, and as whom. The key is in none of its texts."""

    base_url: str = field(repr=False)
    model: str
    key: SecretStr | None = None
    temperature: float = TEMPERATURE
    max_tokens: int | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """What was said in arguments; None leaves it to the environment."""

    base_url: str | None = None
    key: str | None = field(default=None, repr=False)
    model: str | None = None
    temperature: float | None = None


def load_model_settings(given: Given, environment: Mapping[str, str], folder: Path) -> ModelSettings:
    """The settings by precedence. Raises ModelNotSet where there is no server or model, and UsageError for nonsense."""
    file = read_dotenv(folder / DOTENV)

    def read(name: str, convert: Callable[[str, str], T]) -> T | None:
        text = (environment.get(name) or file.get(name) or "").strip()
        return convert(text, name) if text else None

    base_url = given.base_url or read("LLM_BASE_URL", _text)
    model = given.model or read("LLM_MODEL", _text)
    for value, what, name in ((base_url, "server", "LLM_BASE_URL"), (model, "name of a model", "LLM_MODEL")):
        if not value:
            raise ModelNotSet(
                f"no {what} is given: {name} is neither set nor in {DOTENV}",
                hint=".env.example shows what may be there",
            )
    key = given.key if given.key is not None else read("LLM_API_KEY", _text)
    temperature = given.temperature if given.temperature is not None else read("LLM_TEMPERATURE", _number)
    return ModelSettings(
        str(base_url),
        str(model),
        checked_key(key) if key else None,
        TEMPERATURE if temperature is None else _in_range(temperature, "the temperature", 0, 2),
        read("LLM_MAX_TOKENS", _whole_number),
        read("LLM_TIMEOUT", _number),
    )


def checked_key(key: str) -> SecretStr:
    """The key, hidden. One that no header can carry is refused here: there, the error would show it."""
    key = key.strip()
    if not _KEY.fullmatch(key):
        raise UsageError("the model's key holds blanks, or letters that no key has", hint="copy LLM_API_KEY again")
    return SecretStr(key)


def read_dotenv(path: Path) -> dict[str, str]:
    """The assignments of an .env file; {} where there is none. What is no assignment on one line is left out."""
    try:
        if not path.is_file():
            return {}
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(MAX_DOTENV)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({type(error).__name__})", hint="mend it, or move it away") from None
    assignments = filter(None, map(_ASSIGNMENT.fullmatch, text.splitlines()))
    return {match[1]: _value(match[2].rstrip()) for match in assignments}


def _value(written: str) -> str:
    """A value as it was meant: without its quotes, or without the comment behind it."""
    quoted = _QUOTED.fullmatch(written)
    if quoted is None:
        return _COMMENT.sub("", written)
    double, single = quoted.groups()
    if double is None:
        return str(single)
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), double)


def _text(text: str, _: str) -> str:
    return text


def _number(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    return _in_range(value, name, 0, 86_400)


def _whole_number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise UsageError(f"{name} must be a whole number above 0")
    return int(text)


def _in_range(value: float, name: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise UsageError(f"{name} must be a number from {least:g} to {most:g}")
    return float(value)
