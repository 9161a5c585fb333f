"""What holds for all commands: from an option, else from an environment variable, else from pyproject.toml."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from fsm_agent.errors import UsageError
from fsm_agent.plan.nearness import near

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["console", "json"]

PREFIX: Final = "FSM_AGENT_"
TABLE: Final = "tool.fsm-agent"
_TRUE: Final = ("1", "true", "yes", "on")
_FALSE: Final = ("0", "false", "no", "off", "")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings as given; None where nobody said anything."""

    skills: tuple[str, ...] | None = None
    """Files, folders and modules to load skills from."""
    default_skill: str | None = None
    """The skill for tasks that name nobody."""
    workers: Mapping[str, str] | None = None
    """The skills of kinds of workers."""
    plans: str | None = None
    """The folder of templates."""
    log_level: LogLevel | None = None
    """From which level on events are logged."""
    log_format: LogFormat | None = None
    """The form of log lines."""
    debug: bool | None = None
    """Whether tracebacks are shown."""
    store: str | None = None
    """The path or URL of the store of runs."""

    def over(self, other: Settings) -> Settings:
        """These, and the other's where these say nothing."""
        chosen = {
            field.name: mine if (mine := getattr(self, field.name)) is not None else getattr(other, field.name)
            for field in fields(self)
        }
        return Settings(**chosen)


def load_settings(options: Settings, environment: Mapping[str, str], pyproject: Path) -> Settings:
    """All settings, by precedence. Raises UsageError for what makes no sense."""
    return options.over(from_environment(environment)).over(from_pyproject(pyproject))


def from_environment(environment: Mapping[str, str]) -> Settings:
    """What the FSM_AGENT_… variables say; an empty one says nothing."""

    def read(name: str, convert: Callable[[str, str], Any]) -> Any:
        text = environment.get(PREFIX + name, "")
        return convert(text, PREFIX + name) if text else None

    return Settings(
        skills=read("SKILLS", lambda text, _: tuple(filter(None, text.split(os.pathsep)))),
        default_skill=read("DEFAULT_SKILL", lambda text, _: text),
        workers=read("WORKER", lambda text, where: workers_of(text.replace(",", " ").split(), where)),
        plans=read("PLANS", lambda text, _: text),
        store=read("STORE", lambda text, _: text),
        log_level=read("LOG_LEVEL", log_level),
        log_format=read("LOG_FORMAT", log_format),
        debug=read("DEBUG", _flag),
    )


def from_pyproject(path: Path) -> Settings:
    """What the table [tool.fsm-agent] says, if there is one."""
    table = _table(path)
    readers: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
        "skills": ("skills", _texts),
        "default-skill": ("default_skill", _text),
        "workers": ("workers", _worker_table),
        "plans": ("plans", _text),
        "store": ("store", _text),
        "log-level": ("log_level", log_level),
        "log-format": ("log_format", log_format),
        "debug": ("debug", _boolean),
    }
    found: dict[str, Any] = {}
    for written, value in table.items():
        key = written.replace("_", "-")
        if key not in readers:
            nearest = near(key, readers)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"the keys are {', '.join(readers)}"
            raise UsageError(f"{path}: [{TABLE}] has no key {written!r}", hint=hint)
        name, reader = readers[key]
        found[name] = reader(value, f"{path}: {key} in [{TABLE}]")
    return Settings(**found)


def workers_of(pairs: Iterable[str], where: str) -> dict[str, str]:
    """Kinds of workers and their skills, each written TYPE=SKILL. Raises UsageError."""
    workers = {}
    for pair in pairs:
        kind, _, skill = (part.strip() for part in pair.partition("="))
        if not kind or not skill:
            raise UsageError(f"{where}: a worker is given as TYPE=SKILL", hint="such as db_worker=tune_database")
        workers[kind] = skill
    return workers


def log_level(value: Any, where: str) -> LogLevel:
    """One of the levels. Raises UsageError."""
    return cast(LogLevel, _one_of(value, where, get_args(LogLevel)))


def log_format(value: Any, where: str) -> LogFormat:
    """One of the forms of log lines. Raises UsageError."""
    return cast(LogFormat, _one_of(value, where, get_args(LogFormat)))


def _one_of(value: Any, where: str, words: Sequence[str]) -> str:
    word = value.lower() if isinstance(value, str) else ""
    if word not in words:
        raise UsageError(f"{where} must be one of {', '.join(words)}")
    return word


def _flag(text: str, where: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE + _FALSE:
        raise UsageError(f"{where} must be 1 or 0")
    return word in _TRUE


def _table(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint="mend it, or run from another folder") from None
    tools = data.get("tool")
    table = tools.get("fsm-agent", {}) if isinstance(tools, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{path}: [{TABLE}] must be a table")
    return table


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{where} must be text")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(_text(item, where) for item in items)


def _boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{where} must be true or false")
    return value


def _worker_table(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise UsageError(f"{where} must be a table of kinds of workers and their skills")
    return {kind: _text(skill, f"{where}: {kind}") for kind, skill in value.items()}
