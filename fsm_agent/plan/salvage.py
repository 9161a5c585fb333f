"""What can be kept of a plan that does not fit the model, so that the rules can look at the rest of it too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from fsm_agent.plan.findings import Finding
from fsm_agent.plan.json_reader import is_whole
from fsm_agent.plan.model import Plan


def kept_of(data: Mapping[str, Any], misfits: Iterable[Finding]) -> Plan | None:
    """A plan of what fits; None where that is not enough for one.

    What the misfits point at is left out, field by field. A task without a usable id keeps its place under a made-up
    one.
    """
    kept: dict[str, Any] = {
        key: value.copy() if isinstance(value, (dict, list)) else value for key, value in data.items()
    }
    bad_fields: dict[int, set[str]] = {}
    for misfit in misfits:
        match misfit.path:
            case () | ("tasks",):
                return None
            case ("tasks", int(place), *rest):
                bad_fields.setdefault(place, set()).update(map(str, rest[:1]))
            case ("completion_criteria", int(place), *_):
                kept["completion_criteria"][place] = ""
            case (("inputs" | "workers") as group, str(name), *rest):
                kept[group][name] = _without(kept[group][name], rest[0]) if rest else {}
            case (("limits" | "labels" | "merge") as group, str(name), *_):
                kept[group].pop(name, None)
            case (str(key), *_):
                kept.pop(key, None)
    kept["tasks"] = [_kept_task(task, place, bad_fields) for place, task in enumerate(kept["tasks"])]
    try:
        return _with_own_ids(Plan.model_validate(kept), data["tasks"])
    except ValidationError:
        return None


def _without(group: Mapping[str, Any], name: object) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key != name}


def _kept_task(task: Any, place: int, bad_fields: Mapping[int, set[str]]) -> Any:
    if place not in bad_fields:
        return task
    fields = task.items() if isinstance(task, dict) else ()
    return {"id": f"tasks[{place}]"} | {key: value for key, value in fields if key not in bad_fields[place]}


def _with_own_ids(plan: Plan, raw: list[Any]) -> Plan:
    """Ids of a bad form stay what they are: other tasks refer to them by that."""
    tasks = [
        task.model_copy(update={"id": own["id"]}) if _has_id(own) and own["id"] != task.id else task
        for task, own in zip(plan.tasks, raw, strict=True)
    ]
    return plan.model_copy(update={"tasks": tasks})


def _has_id(task: Any) -> bool:
    return isinstance(task, dict) and isinstance(task.get("id"), str) and is_whole(task["id"])
