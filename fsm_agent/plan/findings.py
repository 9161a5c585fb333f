"""What is found wrong while a plan is read and checked, before it is known which line that is on.

A finding points at its place by a path from the plan's root under the normal names, such as
`("tasks", 3, "dependencies", 1)`. It becomes a Problem once the file's places are known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fsm_agent.errors import Severity
from fsm_agent.plan.nearness import near

Step = str | int
Path = tuple[Step, ...]

_PLAIN_STEP = re.compile(r"\w[\w-]{0,59}")
_STEP = re.compile(r"""\[(?P<place>\d{1,9})\]|\[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]|\.?(?P<name>[^.\[\]]+)""")
_MAX_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or worth a warning.

    `column` is in the expression, unless `line` is given: then both are in the file. `written` is the key as it
    stands in the file, where that is not the one a look-up by the normal name would come to.
    """

    rule: str
    path: Path
    message: str
    severity: Severity = "error"
    hint: str = ""
    line: int | None = None
    column: int | None = None
    written: str | None = None


def warning(rule: str, path: Path, message: str, hint: str = "") -> Finding:
    """A finding that stops nothing."""
    return Finding(rule, path, message, severity="warning", hint=hint)


def field_of(path: Sequence[Step]) -> str:
    """The path as one text: `parameters.a[0]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_STEP.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(_cut(step), ensure_ascii=False)}]"
    return text


def steps_of(field_path: str) -> Path:
    """The steps of a path that `field_of` wrote, as far as they can be told apart."""
    return tuple(_step_of(found) for found in _STEP.finditer(field_path))


def _step_of(found: re.Match[str]) -> Step:
    place, quoted, name = found.group("place", "quoted", "name")
    if place is not None:
        return int(place)
    return quoted if quoted is not None else name


def shown(text: str) -> str:
    """A name in quotes, cut where it is too long to be read."""
    return repr(_cut(text))


def _cut(text: str) -> str:
    text = text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def one_of(names: Sequence[str]) -> str:
    """`'a', 'b' or 'c'`."""
    quoted = [shown(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def kind_of(value: Any) -> str:
    """What sort of JSON value it is, in words. The value itself is never shown: it may be a secret."""
    if value is None:
        return "null"
    return _KINDS.get(type(value), "something else")


_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}


@dataclass(slots=True)
class Suggestions:
    """ "Did you mean …?", each question asked once, and a bounded number of them in one check of a plan."""

    left: int = 1_000
    _asked: dict[tuple[str, str], str] = field(default_factory=dict)

    def hint(self, name: str, known: Mapping[str, Any], kind: str, otherwise: str = "") -> str:
        """A hint that names what is near to `name` among the `known` names of this `kind`; else `otherwise`."""
        if (kind, name) not in self._asked:
            if not self.left:
                return otherwise
            self.left -= 1
            found = near(name, known)
            self._asked[kind, name] = f"did you mean {one_of(found)}?" if found else ""
        return self._asked[kind, name] or otherwise
