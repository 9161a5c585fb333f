"""The spellings that people and models use for the keys of a plan, and the one normal form they are brought to.

The normal form holds only what was given, each under its normal key. Nothing here refuses a value: what does not fit
is left for the model to complain about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fsm_agent.plan.findings import Finding, Path, kind_of, shown

PLAN_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "goal": ("objective",),
    "name": ("title",),
    "tasks": ("plan", "steps", "actions", "task_list", "subtasks"),
}
"""Normal key of a plan → its other spellings."""

TASK_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "id": ("task_id", "step_id"),
    "name": ("title",),
    "skill": ("skill_name", "tool", "tool_name", "tool_hint", "tool_needed", "action", "function"),
    "worker": ("worker_type",),
    "parameters": ("args", "arguments", "params", "args_template", "input", "inputs", "input_data"),
    "dependencies": ("depends_on", "dependsOn", "deps", "needs", "requires", "after"),
    "risk_level": ("risk",),
    "repeat_while": ("loop_condition",),
}
"""Normal key of a task → its other spellings. A task without an id is known by its name."""

_PLAN_KEYS = {spelling: key for key, spellings in PLAN_SPELLINGS.items() for spelling in spellings}
_TASK_KEYS = {spelling: key for key, spellings in TASK_SPELLINGS.items() for spelling in spellings}
_HUGE = 10**100


@dataclass(frozen=True, slots=True)
class Written:
    """A plain scalar of a YAML file that is no text: its value, and the text as it was written, which an id keeps."""

    value: bool | int | float
    text: str


def normal_form(data: Any) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The normal form of a plan in any spelling, and what stood in the way; None where it can be no plan at all.

    The data is not changed, but parts of it are shared by the result.
    """
    findings: list[Finding] = []
    if isinstance(data, list):
        plan: dict[str, Any] = {"tasks": data}
    elif isinstance(data, dict):
        plan = _collected(_without_wrapper(data), _PLAN_KEYS, (), findings)
    else:
        what = f"a plan is a mapping with `tasks`, or a list of tasks; this is {kind_of(_value(data))}"
        return None, [Finding("bad_value", (), what)]
    _convert(plan, _PLAN_VALUES)
    if isinstance(tasks := plan.get("tasks"), list):
        plan["tasks"] = [_normal_task(task, place, findings) for place, task in enumerate(tasks)]
    return plan, findings


def unwritten(value: Any) -> Any:
    """The same data with every Written replaced by its value, down to the leaves."""
    if isinstance(value, dict):
        return {key: unwritten(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unwritten(item) for item in value]
    return _value(value)


def normal_path(raw: Path) -> Path:
    """The path under the normal names of a path as it stands in a file."""
    while raw[:1] == ("plan",) and len(raw) > 1 and isinstance(raw[1], str):
        raw = raw[1:]
    if not raw:
        return raw
    if isinstance(raw[0], int):
        raw = ("tasks", *raw)
    first = _PLAN_KEYS.get(str(raw[0]), raw[0])
    if first != "tasks" or len(raw) < 3:
        return (first, *raw[1:])
    return (first, raw[1], _TASK_KEYS.get(str(raw[2]), raw[2]), *raw[3:])


def _without_wrapper(data: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """The keys of a plan, those beside a wrapper `plan: {…}` as well as those in it."""
    layer = data
    while isinstance(inner := layer.get("plan"), dict):
        yield from ((key, value) for key, value in layer.items() if key != "plan")
        layer = inner
    yield from layer.items()


def _collected(
    items: Iterable[tuple[str, Any]], keys: Mapping[str, str], path: Path, findings: list[Finding]
) -> dict[str, Any]:
    """The given keys under their normal names. The first of two spellings stays."""
    normal: dict[str, Any] = {}
    for written, value in items:
        if value is None:
            continue
        key = keys.get(written, written)
        if key in normal:
            findings.append(_twice(key, written, path))
        else:
            normal[key] = value
    return normal


def _twice(key: str, written: str, path: Path) -> Finding:
    message = f"`{key}` is given twice, here as {shown(written)}"
    return Finding("two_spellings", (*path, key), message, hint="keep one of the two", written=written)


def _normal_task(raw: Any, place: int, findings: list[Finding]) -> Any:
    if not isinstance(raw, dict):
        return raw
    task = _collected(raw.items(), _TASK_KEYS, ("tasks", place), findings)
    if task.get("skill") == "none":
        del task["skill"]
    if task.get("status") == "pending":
        del task["status"]
    if "id" not in task and "name" in task:
        task = {"id": task["name"], **task, "name": _id(task["name"])}
    _convert(task, _TASK_VALUES)
    return task


def _convert(normal: dict[str, Any], conversions: Mapping[str, Callable[[Any], Any]]) -> None:
    for key in conversions.keys() & normal.keys():
        normal[key] = conversions[key](normal[key])


def _value(value: Any) -> Any:
    return value.value if type(value) is Written else value


def _id(value: Any) -> Any:
    """An id as text: a whole number becomes its text, and in YAML it is always the text as written."""
    if type(value) is Written:
        return value.text
    if type(value) is int and -_HUGE < value < _HUGE:
        return str(value)
    return value


def _ids(value: Any) -> Any:
    return [_id(item) for item in value] if isinstance(value, list) else value


def _version(value: Any) -> Any:
    """A version as written: `2.10` in a YAML file is not 2.1."""
    return value.text if type(value) is Written and isinstance(value.value, float) else value


def _skill_call(value: Any) -> Any:
    """A bare string is a skill's name. A fallback's value may be null and mean it."""
    return {"skill": value} if isinstance(value, str) else _given(value, keep="value")


def _given(value: Any, keep: str = "") -> Any:
    """A mapping of settings without those that are null."""
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if item is not None or key == keep}


def _declarations(value: Any) -> Any:
    """A mapping of declared names, each with settings, or with null where it needs none."""
    if not isinstance(value, dict):
        return value
    return {name: {} if item is None else _given(item, keep="default") for name, item in value.items()}


def _criteria(value: Any) -> Any:
    return [_given(item) for item in value] if isinstance(value, list) else value


_PLAN_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "inputs": _declarations,
    "workers": _declarations,
    "limits": _given,
    "merge": _given,
    "labels": _given,
    "completion_criteria": _criteria,
    "version": _version,
}
_TASK_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "id": _id,
    "layer": _id,
    "dependencies": _ids,
    "soft_dependencies": _ids,
    "on_success": _id,
    "on_failure": _id,
    "rollback_to": _id,
    "fallback": _skill_call,
    "compensation": _skill_call,
    "backoff": _given,
}
