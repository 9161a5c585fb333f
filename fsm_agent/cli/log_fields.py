"""The secrets out of log lines, and nothing else out of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fsm_agent.redaction import Redactor

_OF_EVENTS: Final = frozenset({"seq", "run_id"})
"""Fields by which the line of an event is known. Other lines are a skill's own, and all in them is data."""
_STRUCTURE: Final = frozenset({"run_id", "task", "approval", "timestamp", "level", "event"})


class FieldRedactor(Redactor):
    """Leaves ids, counts and times of events as they are, whatever a secret is: a line must still say what it is of."""

    def value(self, value: Any) -> Any:
        """The value without secrets; of an event's line, only its data."""
        shown = super().value(value)
        if not isinstance(value, Mapping) or not value.keys() >= _OF_EVENTS:
            return shown
        kept = {key: item for key, item in value.items() if key in _STRUCTURE or isinstance(item, (int, float))}
        return {**shown, **kept}
