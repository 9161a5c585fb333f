"""The run of a plan with scripted outcomes, one task at a time (sections 1, 2 and 4; `simulate`).

Every step works everything out again: which tasks are skipped, until nothing changes; which are ready; which is first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .expression import ExpressionError, evaluate
from .graph import ON_FAILURE, Graph, Plan
from .ledger import Ledger
from .state import FAILED, PENDING, SKIPPED, SUCCEEDED, WAITING, State

PRIORITIES = ("high", "medium", "low")


@dataclass(frozen=True)
class Verdict:
    """How a run ended: `trace`, `outcome` and the kind of the reason as `simulate` gives them."""

    phase: str
    trace: list[tuple[str, str]]
    status: dict[str, tuple[str, str | None]]
    visits: dict[str, int]
    context: dict[str, Any]
    reason_kind: str | None
    outcome: str
    compensated: list[str]
    kept: list[str]


@dataclass(frozen=True)
class Visit:
    """What one visit came to. `kind` is that of its error, None where it succeeded."""

    kind: str | None = None
    data: Any = None
    writes: dict[str, Any] = field(default_factory=dict)
    verified: bool | None = None
    is_false: bool = False


@dataclass(frozen=True)
class Ending:
    """The phase that the run goes to, and the kind of its reason."""

    phase: str
    kind: str | None = None


def interpret(plan: Plan, outcomes: dict[str, list[Any]], goal: str = "") -> Verdict:
    """Runs a valid plan in its normal form, serially, with the outcomes as in `simulate`."""
    return Interpreter(plan, outcomes, goal).run()


class Interpreter:
    """One run of one plan."""

    def __init__(self, plan: Plan, outcomes: dict[str, list[Any]], goal: str) -> None:
        self.plan = plan
        self.outcomes = outcomes
        self.graph = Graph(plan)
        self.state = State(self.graph)
        self.ledger = Ledger(plan, goal, self.state.log)
        self.trace: list[tuple[str, str]] = []
        self.rollbacks = 0
        self.successes: list[str] = []
        self.compensated: list[str] = []
        self.kept: list[str] = []

    def run(self) -> Verdict:
        ending = None
        while ending is None:
            ending = self._step()
        if ending.phase == "failed":
            self._clean_up()
        return self._verdict(ending)

    def _step(self) -> Ending | None:
        self._spread_skips()
        if self._all_settled():
            return self._judge()
        ready = [name for name in self.graph.order if self.state.ready(name)]
        if not ready:
            return Ending("failed", "stalled")
        return self._take(min(ready, key=self._turn))

    def _spread_skips(self) -> None:
        """Section 2, When a task runs, 2 and When a task settles: dead paths, until nothing changes."""
        while due := [(name, reason) for name in self.graph.order if (reason := self.state.due_skip(name))]:
            name, reason = due[0]
            self.state.skip(name, reason)
            self.state.decide_edges(name)

    def _all_settled(self) -> bool:
        return all(self.state.settled(name) for name in self.graph.order)

    def _turn(self, name: str) -> tuple[int, int]:
        priority = self.graph.tasks[name].get("priority") or "medium"
        return PRIORITIES.index(priority), self.graph.order.index(name)

    # A task's turn (section 2, When a task runs, 3; Loops, visits)

    def _take(self, name: str) -> Ending | None:
        condition = self._condition(name)
        if condition is False:
            self._skip_by_condition(name)
            self.state.decide_edges(name)
            return None
        if self._used_up(name):
            return self._recover(name, "limit")
        if sum(self.state.visits.values()) >= self._max_task_runs():
            return Ending("failed", "limit")
        visit = self._visit(name, condition)
        if visit.kind is None:
            self.state.decide_edges(name)
            return None
        return self._failed(name, visit)

    def _condition(self, name: str) -> bool | None:
        """True, False, or None for an error in it."""
        text = self.graph.tasks[name].get("condition")
        if text is None:
            return True
        try:
            return bool(evaluate(text, self.ledger.names(self.state)))
        except ExpressionError:
            return None

    def _skip_by_condition(self, name: str) -> None:
        self.state.skip(name, "condition")
        self.trace.append((name, "skip"))

    def _used_up(self, name: str) -> bool:
        return self.state.visits[name] >= (self.graph.tasks[name].get("max_visits") or 10)

    def _max_task_runs(self) -> int:
        limits = self.plan.get("limits") or {}
        return int(limits.get("max_task_runs") or max(1000, 10 * len(self.graph.order)))

    # A visit (section 3, as `simulate` plays it)

    def _visit(self, name: str, condition: bool | None) -> Visit:
        """Starts the task and evaluates it: its status, its data and its writes, but not yet its edges."""
        self.state.visits[name] += 1
        visit = Visit("condition") if condition is None else self._played(name)
        self.state.status[name] = FAILED if visit.kind else SUCCEEDED
        self.state.kind[name] = visit.kind
        self.state.data[name] = visit.data
        self.state.verified[name] = visit.verified
        if visit.is_false:
            self.state.false_decisions.add(name)
        if visit.kind is None:
            self.ledger.commit(name, visit.writes)
            self.successes = [*(other for other in self.successes if other != name), name]
        self.trace.append((name, "fail" if visit.kind else "ok"))
        return visit

    def _played(self, name: str) -> Visit:
        script = self.outcomes.get(name) or []
        decision = name in self.graph.decisions
        if not script and decision:
            return self._judged_decision(name, {})
        entry = script[min(self.state.visits[name], len(script)) - 1] if script else "ok"
        if isinstance(entry, dict):
            return self._played_result(name, entry)
        if entry == "ok":
            return Visit(data=None if decision else {})
        if entry == "fail":
            return Visit("verification", is_false=True) if decision else Visit("exception")
        return Visit(entry)

    def _judged_decision(self, name: str, writes: dict[str, Any]) -> Visit:
        try:
            holds = evaluate(self.graph.tasks[name]["verification"], self.ledger.names(self.state, writes))
        except ExpressionError:
            return Visit("condition")
        return Visit(writes=writes) if holds else Visit("verification", is_false=True)

    def _played_result(self, name: str, entry: dict[str, Any]) -> Visit:
        writes = entry.get("context") or {}
        if name in self.graph.decisions:
            return self._judged_decision(name, writes)
        task, data = self.graph.tasks[name], entry.get("data", {})
        if task.get("verification") is None:
            return Visit(data=data, writes=writes)
        try:
            holds = evaluate(task["verification"], {**self.ledger.names(self.state, writes), "result": data})
        except ExpressionError:
            return Visit("condition")
        if holds or task.get("on_unverified") == "warn":
            return Visit(data=data, writes=writes, verified=bool(holds))
        return Visit("verification", verified=False)

    # A failure (section 2, When a task settles; section 4)

    def _failed(self, name: str, visit: Visit) -> Ending | None:
        handler = self.graph.branch(name, ON_FAILURE)
        error_in_decision = name in self.graph.decisions and visit.kind == "condition"
        spent = handler in self.graph.back and handler is not None and self._used_up(handler.target)
        if self.state.is_handled_if(name) or (handler is not None and not error_in_decision and not spent):
            self.state.decide_edges(name)
            return None
        return self._recover(name, visit.kind)

    def _recover(self, name: str, kind: str | None) -> Ending | None:
        recovery = self._recovery(name)
        if recovery == "skip":
            self.state.kind[name] = kind
            self.state.skip(name, "optional")
            self.state.decide_edges(name)
            return None
        if recovery == "pause":
            self.state.status[name] = WAITING
            return Ending("paused")
        if recovery == "rollback":
            return self._roll_back(name, kind)
        if recovery == "abort":
            return Ending("failed", kind)
        raise ValueError(f"{recovery} is not part of this interpreter")

    def _roll_back(self, name: str, kind: str | None) -> Ending | None:
        """Section 4, 4: compensations, the last success first; a reset as by a back edge; own writes undone."""
        to = self.graph.tasks[name].get("rollback_to")
        limits = self.plan.get("limits") or {}
        spent = self.rollbacks >= limits.get("max_rollbacks", 1)
        if spent or self._used_up(name) or (to in self.graph.tasks and self._used_up(to)):
            return Ending("failed", kind)
        self.rollbacks += 1
        starts = self.graph.starts(to)
        members = starts | {below for start in starts for below in self.graph.below(start)}
        self.compensated += [
            task
            for task in reversed(self.successes)
            if task in members and self.state.status[task] == SUCCEEDED and self.graph.tasks[task].get("compensation")
        ]
        self.kept += self.ledger.undo(members, self.graph)
        self.state.go_back(members, to)
        return None

    def _recovery(self, name: str) -> str:
        """Section 4, 2: the task's own, the plan's, or by the task's priority."""
        task = self.graph.tasks[name]
        priority = task.get("priority") or "medium"
        own = task.get("recovery") or self.plan.get("recovery")
        if own == "by_priority":
            skips = priority == "low" or (priority == "medium" and not self._high_depends_on(name))
            return "skip" if skips else "abort"
        return own or ("skip" if priority == "low" else "abort")

    def _high_depends_on(self, name: str) -> bool:
        found: set[str] = set()
        while True:
            more = {
                after
                for before, after in self.graph.dependency_pairs()
                if before in {name} | found and after not in found
            }
            if not more:
                return any(self.graph.tasks[after].get("priority") == "high" for after in found)
            found |= more

    # Finalizers (section 4, 3)

    def _clean_up(self) -> None:
        while waiting := [name for name in self.graph.order if self._still_cleans_up(name)]:
            self._finalize(next(name for name in waiting if not self._depends_on(name, waiting)))

    def _still_cleans_up(self, name: str) -> bool:
        task = self.graph.tasks[name]
        return (
            name in self.graph.finalizers
            and self.state.status[name] == PENDING
            and self._active_finalizer(name)
            and any(self.state.visits[above] for above in self.graph.above(name))
            and not self._used_up(name)
            and not _needs_approval(task)
        )

    def _active_finalizer(self, name: str) -> bool:
        sources = {branch.source for branch in self.graph.forward if branch.target == name}
        return self.state.active(name) or sources <= self.graph.finalizers

    def _depends_on(self, name: str, others: list[str]) -> bool:
        """One of the others is above the task by dependencies, hard or soft."""
        pairs = self.graph.dependency_pairs() + self.graph.soft_pairs()
        above, grows = {name}, True
        while grows:
            more = {before for before, after in pairs if after in above} - above
            above |= more
            grows = bool(more)
        return any(other in above for other in others if other != name)

    def _finalize(self, name: str) -> None:
        condition = self._condition(name)
        if condition is False:
            self._skip_by_condition(name)
        else:
            self._visit(name, condition)

    # The end (section 1, the guards of `evaluated`; section 4, the last paragraph)

    def _judge(self) -> Ending:
        for name in self.graph.order:
            if self.state.status[name] == FAILED and not self._handled(name):
                return Ending("failed", self.state.kind[name])
        for criterion in self.plan.get("completion_criteria") or []:
            failure = self._unmet(criterion)
            if failure:
                return Ending("failed", failure)
        if self.plan.get("output") is not None:
            try:
                evaluate(self.plan["output"], self.ledger.names(self.state))
            except ExpressionError:
                return Ending("failed", "condition")
        return Ending("completed")

    def _unmet(self, criterion: str | dict[str, Any]) -> str | None:
        """The kind of the failure, where a criterion that can be judged does not hold; prose is not judged."""
        if isinstance(criterion, str) or criterion.get("check") is None:
            return None
        try:
            return None if evaluate(criterion["check"], self.ledger.names(self.state)) else "criterion"
        except ExpressionError:
            return "condition"

    def _handled(self, name: str) -> bool:
        """A false decision is; another failure is where its handler was not passed over."""
        handler = self.graph.branch(name, ON_FAILURE)
        if name in self.state.false_decisions or handler is None:
            return name in self.state.false_decisions
        return self.state.reason[handler.target] not in {"not_taken", "upstream_failed"}

    def _verdict(self, ending: Ending) -> Verdict:
        return Verdict(
            phase=ending.phase,
            trace=self.trace,
            status={name: (self.state.status[name], self.state.reason[name]) for name in self.graph.order},
            visits=dict(self.state.visits),
            context=self.ledger.context,
            reason_kind=ending.kind,
            outcome=self._outcome() if ending.phase == "completed" else ending.phase,
            compensated=self.compensated,
            kept=self.kept,
        )

    def _outcome(self) -> str:
        return "clean" if all(self._clean(name) for name in self.graph.order) else "handled_failures"

    def _clean(self, name: str) -> bool:
        if self.state.status[name] == FAILED:
            return name in self.state.false_decisions
        if self.state.status[name] == SKIPPED:
            return self.state.reason[name] != "optional"
        return self.state.verified[name] is not False


def _needs_approval(task: dict[str, Any]) -> bool:
    approval = task.get("approval") or ("required" if task.get("risk_level") == "high" else "none")
    return bool(approval == "required")
