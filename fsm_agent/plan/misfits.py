"""What the model says about data that does not fit it, in plain words.

The words never show a value, save one that stands where a fixed word or an id should: parameters and context values
may be secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from fsm_agent.plan import model
from fsm_agent.plan.findings import Finding, Path, Step, Suggestions, kind_of, shown
from fsm_agent.plan.json_reader import bad_number, is_whole
from fsm_agent.plan.remedies import remedy
from fsm_agent.plan.spellings import PLAN_SPELLINGS, TASK_SPELLINGS

MOST_MISFITS = 1_000
"""How many misfits are told one by one. What remains is told as a number."""

EMPTY_PLAN = "the plan has no tasks"
ID_FORM = "an id is 1 to 100 characters, without control characters and without blanks at its ends"

_WANTED: Mapping[str, str] = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
_BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
}
_EITHER: Mapping[str, str] = {
    "when": "text, or a list of texts",
    "version": "text or a number",
    "subplan": "a plan's name, or a plan",
    "tolerate": "a count or a share",
    "type": "a JSON Schema type, or a list of them",
}
"""Fields that take more than one form, and which."""

_PARTS: Mapping[str, tuple[str, type[model.Model]]] = {
    "limits": ("`limits`", model.Limits),
    "inputs": ("an input", model.Input),
    "workers": ("a worker", model.Worker),
    "completion_criteria": ("a criterion", model.Criterion),
    "backoff": ("`backoff`", model.Backoff),
    "fallback": ("a fallback", model.Fallback),
    "compensation": ("a compensation", model.Compensation),
}
_ID = re.compile(model.ID_PATTERN)
_TAGS = frozenset({model.AS_TEXT, model.AS_CHECK})


def misfits(error: ValidationError, data: Mapping[str, Any], suggestions: Suggestions) -> list[Finding]:
    """One finding for each place that does not fit; where there are too many, a last one that says so."""
    found: dict[Path, Finding] = {}
    all_details = error.errors(include_url=False, include_input=False)
    for number, details in enumerate(all_details):
        path = _path(details["loc"])
        if len(found) == MOST_MISFITS:
            found[()] = Finding("bad_value", (), f"about {len(all_details) - number:,} more places do not fit")
            break
        if path not in found:
            found[path] = _finding(path, details["type"], details.get("ctx", {}), _at(data, path), suggestions)
    return list(found.values())


def _path(loc: tuple[Step, ...]) -> Path:
    """Where the misfit is, without the model's own remarks on which form of a value it tried."""
    match loc:
        case ("when" | "version", *_):
            return loc[:1]
        case ("inputs", _, "type", *_) | ("tasks", _, "subplan" | "tolerate", *_):
            return loc[:3]
    return tuple(step for step in loc if step not in _TAGS)


def _at(data: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, int):
            data = data[step] if isinstance(data, list) and step < len(data) else None
        else:
            data = data.get(step) if isinstance(data, dict) else None
    return data


def _finding(path: Path, kind: str, context: Mapping[str, Any], value: Any, suggestions: Suggestions) -> Finding:
    name = path[-1] if path else "plan"
    what = "the item" if isinstance(name, int) else f"`{name}`"
    if kind == "missing":
        return _missing(path, str(name))
    if kind == "extra_forbidden":
        return _unknown_key(path, str(name), suggestions)
    if kind == "finite_number":
        return bad_number(path)
    if path == ("tasks",) and kind == "too_short":
        return Finding("empty_plan", path, EMPTY_PLAN, hint="add a task")
    if path[:1] == ("tasks",) and path[2:] == ("id",):
        return Finding("bad_value", path, f"{ID_FORM}; this is {_id_shown(value)}")
    if path[:1] == ("tasks",) and len(path) == 2:
        return Finding("bad_value", path, f"a task is a mapping; this is {kind_of(value)}")
    message = f"{what} must be {_wanted(path, kind, context)}{_but(kind, value)}"
    return Finding("bad_value", path, message, hint=remedy(path, kind, context, value))


def _missing(path: Path, name: str) -> Finding:
    if path == ("tasks",):
        return Finding("missing_field", path, "the plan has no `tasks`", hint="add a list of at least one task")
    owner, _ = _known_keys(path)
    return Finding("missing_field", path, f"{owner} must have `{name}`", hint=f"add `{name}`")


def _unknown_key(path: Path, name: str, suggestions: Suggestions) -> Finding:
    owner, known = _known_keys(path)
    hint = suggestions.hint(name, known, owner, otherwise="remove it")
    return Finding("unknown_key", path, f"{owner} has no key {shown(name)}", hint=hint)


def _known_keys(path: Path) -> tuple[str, Mapping[str, Any]]:
    """What a key stands in, and the keys that this may have, in every spelling."""
    above = [step for step in path[:-1] if isinstance(step, str)]
    if not above:
        return "a plan", _keys_of(model.Plan, PLAN_SPELLINGS)
    if path[0] == "tasks" and len(above) == 1:
        return "a task", _keys_of(model.Task, TASK_SPELLINGS)
    owner, part = _PARTS[above[1] if path[0] == "tasks" else above[0]]
    return owner, _keys_of(part)


def _keys_of(part: type[model.Model], spellings: Mapping[str, Iterable[str]] | None = None) -> dict[str, None]:
    keys = dict.fromkeys(field.alias or name for name, field in part.model_fields.items())
    return keys | {spelling: None for others in (spellings or {}).values() for spelling in others}


def _wanted(path: Path, kind: str, context: Mapping[str, Any]) -> str:
    name = str(path[-1]) if path else ""
    if name in _EITHER and (kind in _WANTED or path[0] == "inputs"):
        return _EITHER[name]
    if kind == "literal_error":
        return str(context.get("expected", "another value"))
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"{words} {context[key]:g}"
    if path[:1] == ("completion_criteria",) and len(path) == 2:
        return "text, or a mapping with `check`"
    return _WANTED.get(kind, "of another form")


def _but(kind: str, value: Any) -> str:
    if kind in _BOUNDS:
        return ""
    if kind == "literal_error" and isinstance(value, str):
        return f", not {shown(value)}"
    return f"; this is {kind_of(value)}"


def _id_shown(value: Any) -> str:
    return shown(value) if isinstance(value, str) else kind_of(value)


def has_id(task: Any) -> bool:
    """Whether the data of a task has an id that is one."""
    name = task.get("id") if isinstance(task, dict) else None
    return isinstance(name, str) and len(name) <= model.MAX_ID and bool(_ID.fullmatch(name)) and is_whole(name)
