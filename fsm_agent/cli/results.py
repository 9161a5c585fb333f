"""The document of a run, without its secrets."""

from __future__ import annotations

from typing import Any, Final

from fsm_agent.core.result import RunResult
from fsm_agent.redaction import Redactor

_DATA: Final = ("reason", "goal", "output", "context", "waiting", "approvals")
"""Keys of the document that may hold data of the plan. Task ids and counts are none: they stay as they are."""
_TASK_DATA: Final = ("data", "error")


def shown(result: RunResult, redactor: Redactor) -> dict[str, Any]:
    """The JSON document of a result, with secrets as ***."""
    document = result.to_json()
    document.update({key: redactor.value(document[key]) for key in _DATA})
    for task in document["tasks"].values():
        task.update({key: redactor.value(task[key]) for key in _TASK_DATA})
    return document
