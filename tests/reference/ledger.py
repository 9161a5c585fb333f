"""The context of a run and the names that an expression sees (section 0, merge; section 7)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from .graph import Plan
from .state import SUCCEEDED, State


class Ledger:
    """The committed context of one run, and its view for expressions."""

    def __init__(self, plan: Plan, goal: str) -> None:
        self.plan = plan
        self.goal = goal or plan.get("goal") or ""
        given = plan.get("inputs") or {}
        self.inputs = {key: spec["default"] for key, spec in given.items() if "default" in spec}
        shown = {key: value for key, value in self.inputs.items() if not given[key].get("secret")}
        self.context: dict[str, Any] = deepcopy({**shown, **(plan.get("context") or {})})

    def commit(self, writes: dict[str, Any]) -> None:
        """Applies the writes of a task that succeeded, by the merge rules."""
        for key, value in deepcopy(writes).items():
            self.context[key] = self._merged(key, value)

    def _merged(self, key: str, value: Any) -> Any:
        rule = (self.plan.get("merge") or {}).get(key, "last")
        if rule == "sum":
            return self.context.get(key, 0) + value
        if rule == "append":
            return [*self.context.get(key, []), value]
        if rule == "union":
            merged = list(self.context.get(key, []))
            for item in value:
                if item not in merged:
                    merged.append(item)
            return merged
        return value

    def names(self, state: State, writes: dict[str, Any] | None = None) -> dict[str, Any]:
        """What an expression may name: the keys that were declared, and the fixed names over them."""
        context = {**self.context, **(writes or {})}
        declared = set(self.plan.get("context") or {})
        for task in self.plan["tasks"]:
            declared |= set(task.get("writes") or [])
        bare = {key: value for key, value in context.items() if key in declared}
        fixed = {"context": context, "inputs": self.inputs, "results": self._results(state), "goal": self.goal}
        return {**self.inputs, **bare, **fixed}

    def _results(self, state: State) -> dict[str, Any]:
        return {
            name: {
                "status": state.status[name],
                "success": state.status[name] == SUCCEEDED,
                "data": state.data[name],
                "error": {"kind": state.kind[name]} if state.kind[name] else None,
                "verified": state.verified[name],
                "fallback_used": False,
            }
            for name in state.graph.order
        }
