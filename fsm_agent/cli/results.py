"""The document of a run, without its secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fsm_agent.core.result import RunResult
from fsm_agent.redaction import Redactor

_DATA: Final = ("goal", "output", "context")
_TASK_DATA: Final = ("data",)
"""Keys that hold data of the plan. Ids, counts and times are none: they stay as they are, whatever a secret is."""


def shown(result: RunResult, redactor: Redactor) -> dict[str, Any]:
    """The JSON document of a result, with secrets as ***."""
    document = result.to_json()
    document.update(_without(redactor, document, _DATA))
    document["reason"] = _told(redactor, document["reason"])
    document["waiting"] = [{**asked, **_without(redactor, asked, ("parameters",))} for asked in document["waiting"]]
    document["approvals"] = [{**given, **_without(redactor, given, ("by", "why"))} for given in document["approvals"]]
    for task in document["tasks"].values():
        task.update(_without(redactor, task, _TASK_DATA), error=_told(redactor, task["error"]))
    return document


def _told(redactor: Redactor, error: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {**error, **_without(redactor, error, ("message",))} if error is not None else None


def _without(redactor: Redactor, item: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """These keys of the item, without secrets."""
    return {key: redactor.value(item[key]) for key in keys}
