"""The context of a run and the names that an expression sees (section 0, merge; section 7)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from .graph import Graph, Plan
from .state import SUCCEEDED, State


class Ledger:
    """The committed context of one run, and its view for expressions."""

    def __init__(self, plan: Plan, goal: str, log: list[tuple[str, str, Any]]) -> None:
        self.log = log
        self.plan = plan
        self.goal = goal or plan.get("goal") or ""
        given = plan.get("inputs") or {}
        self.inputs = {key: spec["default"] for key, spec in given.items() if "default" in spec}
        shown = {key: value for key, value in self.inputs.items() if not given[key].get("secret")}
        self.initial: dict[str, Any] = {**shown, **(plan.get("context") or {})}
        self.context: dict[str, Any] = deepcopy(self.initial)

    def commit(self, name: str, writes: dict[str, Any]) -> None:
        """Applies the writes of a task that succeeded, by the merge rules."""
        for key, value in deepcopy(writes).items():
            self.log.append((name, key, value))
            self.context[key] = self._merged(key, value)

    def undo(self, members: set[str], graph: Graph) -> list[str]:
        """Section 4, 4: writes the context anew, without the writes of the members. Returns the keys that stay.

        What a loop from outside of them has left behind is not theirs any more.
        """
        own = {at for at, (name, key, _) in enumerate(self.log) if key and self._is_own(at, name, members, graph)}
        kept = []
        for key in {key for _, key, _ in self.log if key}:
            places = [at for at, entry in enumerate(self.log) if entry[1] == key]
            if self._rule(key) == "last":
                last_other = max((at for at in places if at not in own), default=-1)
                stay = {at for at in places if at in own and at < last_other}
                own -= stay
                kept += [key] if stay else []
        self.log[:] = [entry for at, entry in enumerate(self.log) if at not in own]
        self.context = deepcopy(self.initial)
        for _, key, value in self.log:
            if key:
                self.context[key] = self._merged(key, deepcopy(value))
        return sorted(kept)

    def _is_own(self, at: int, name: str, members: set[str], graph: Graph) -> bool:
        later_jumps = {target for target, key, _ in self.log[at + 1 :] if not key}
        begun_anew = any(name in {target} | graph.below(target) for target in later_jumps - members)
        return name in members and not begun_anew

    def _rule(self, key: str) -> str:
        return (self.plan.get("merge") or {}).get(key, "last")

    def _merged(self, key: str, value: Any) -> Any:
        rule = self._rule(key)
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
