"""Runs a plan with scripted outcomes: no skill is called, no time passes, nothing overlaps, nothing is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fsm_agent.core import events as ev
from fsm_agent.core import rollback
from fsm_agent.core.approvals import approval_id
from fsm_agent.core.commands import (
    AskAboutTask,
    Begin,
    BeginRollback,
    Command,
    Compensate,
    End,
    FinishRollback,
    Fire,
    Judge,
    MakePlan,
    Rest,
)
from fsm_agent.core.decide import decide
from fsm_agent.core.judging import Outcome, judge
from fsm_agent.core.names import names_of
from fsm_agent.core.opening import decide_at_turn, evaluated_at_turn, open_turn
from fsm_agent.core.result import RunResult, result_of
from fsm_agent.core.run import Run
from fsm_agent.engine.judgement import judge_criteria
from fsm_agent.engine.secrets import Secrets
from fsm_agent.errors import ConditionError, NotJson, UsageError
from fsm_agent.jsonable import to_plain
from fsm_agent.plan.compiled import CompiledPlan, CompiledTask
from fsm_agent.plan.expressions import Evaluator

WORDS = ("ok", "fail", "timeout", "rejected")
"""The outcomes that are one word."""

_ERRORS = {
    "fail": ("exception", "scripted to fail"),
    "timeout": ("timeout", "scripted to time out"),
    "rejected": ("rejected", "scripted to be rejected"),
}

Scripted = str | Mapping[str, Any]


def check_outcomes(outcomes: Any, compiled: CompiledPlan) -> dict[str, list[Scripted]]:
    """The script, checked: task → its outcomes, one a visit. Raises UsageError."""
    if not isinstance(outcomes, Mapping):
        raise UsageError("outcomes must be an object: task → list of outcomes")
    checked: dict[str, list[Scripted]] = {}
    for task, entries in outcomes.items():
        if task not in compiled.graph.index:
            raise UsageError(f"outcomes name task {task!r}, which the plan does not have")
        if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
            raise UsageError(f"outcomes of task {task!r} must be a list with at least one entry, one a visit")
        checked[task] = [_checked(task, entry) for entry in entries]
    return checked


def _checked(task: str, entry: Any) -> Scripted:
    if isinstance(entry, str) and entry in WORDS:
        return entry
    if (
        isinstance(entry, Mapping)
        and entry.keys() <= {"data", "context"}
        and isinstance(entry.get("context", {}), Mapping)
    ):
        try:
            plain: dict[str, Any] = to_plain(dict(entry), "outcome")
        except NotJson as error:
            raise UsageError(f"outcomes of task {task!r}: {error.message}") from None
        return plain
    words = ", ".join(WORDS)
    raise UsageError(f"an outcome of task {task!r} is none of {words}, nor an object with data and context")


class Simulation:
    """One simulated run."""

    def __init__(
        self,
        compiled: CompiledPlan,
        outcomes: Mapping[str, Sequence[Scripted]],
        *,
        goal: str | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        """`inputs` are complete and checked; `outcomes` come from `check_outcomes`."""
        self.events: list[ev.Event] = []
        self.run = Run("simulation", lambda _: compiled)
        self._compiled = compiled
        self._outcomes = outcomes
        self._inputs = dict(inputs or {})
        self._secrets = tuple(name for name in self._inputs if compiled.plan.inputs[name].secret)
        self._kept = Secrets()
        self._kept.keep({name: self._inputs[name] for name in self._secrets})
        self._evaluator = Evaluator()
        self._record(ev.RunStarted(goal=goal))

    def result(self) -> RunResult:
        """Run to the end, or to a pause."""
        while True:
            command = decide(self.run)
            if isinstance(command, (End, Rest)):
                return result_of(self.run)
            self._perform(command)

    def _record(self, event: ev.Event) -> None:
        stamped = msgspec.structs.replace(event, seq=self.run.seq + 1, run_id=self.run.run_id)
        self.run.evolve(stamped)
        self.events.append(stamped)

    def _perform(self, command: Command) -> None:
        match command:
            case Fire(trigger):
                self.events.append(self.run.fire(trigger, self.run.seq + 1, 0.0))
            case Begin(place):
                self._begin(place)
            case MakePlan():
                self._adopt()
            case Judge():
                self._record(judge_criteria(self.run, self._evaluator, self._kept))
            case AskAboutTask(place):
                self._ask(place)
            case BeginRollback():
                self._record(rollback.begin(self.run))
            case Compensate(place):
                self._compensate(place)
            case FinishRollback():
                self._record(rollback.finish(self.run))
            case _:
                raise AssertionError(f"a simulated run has nothing to wait for: {command}")

    def _adopt(self) -> None:
        self.run.secrets = {name: self._inputs[name] for name in self._secrets}
        known = {name: value for name, value in self._inputs.items() if name not in self._secrets}
        self._record(ev.PlanAdopted(version=1, digest="", inputs=known, secrets=self._secrets))

    def _ask(self, place: int) -> None:
        node, task = self.run.schedule.nodes[place], self._compiled.graph.ids[place]
        name = approval_id(self.run.run_id, task, node.visits, None, "failed")
        self._record(ev.ApprovalAsked(approval=name, kind="failed", task=task, visit=node.visits, error=node.error))

    def _compensate(self, place: int) -> None:
        """A compensation is taken to do what it should; it is not called, and its parameters are not worked out."""
        task, visit = self._compiled.graph.ids[place], self.run.schedule.nodes[place].visits
        self._record(ev.CompensationStarted(task=task, visit=visit))
        self._record(ev.Compensated(task=task, visit=visit, status="SUCCEEDED", attempts=1))

    def _begin(self, place: int) -> None:
        run = self.run
        ended = open_turn(run, place, self._evaluator)
        if ended is not None:
            self._record(ended)
            return
        task = run.task(place)
        visit = run.schedule.nodes[place].visits + 1
        scripted = self._scripted(task.task.id, visit)
        if task.decision_expression is not None:
            self._decide(place, task, scripted)
            return
        outcome = _outcome(place, visit, scripted or "ok")
        if outcome.error is not None and outcome.error.kind == "rejected":
            self._record(evaluated_at_turn(run, place, outcome.error))
            return
        self._record(ev.TaskStarted(task=task.task.id, visit=visit))
        self._verify(place, task, outcome, scripted)
        for event in judge(run, outcome):
            self._record(event)

    def _scripted(self, task: str, visit: int) -> Scripted | None:
        entries = self._outcomes.get(task)
        return entries[min(visit, len(entries)) - 1] if entries else None

    def _decide(self, place: int, task: CompiledTask, scripted: Scripted | None) -> None:
        if isinstance(scripted, Mapping) and scripted.get("context"):
            visit = self.run.schedule.nodes[place].visits + 1
            changes = dict(scripted["context"])
            self._record(ev.ContextChanged(task=task.task.id, visit=visit, changes=changes))
        if scripted is None or isinstance(scripted, Mapping):
            assert task.decision_expression is not None  # noqa: S101 - the caller has just looked
            self._record(decide_at_turn(self.run, place, task.decision_expression, self._evaluator))
        elif scripted in ("ok", "fail"):
            self._record(evaluated_at_turn(self.run, place, None, holds=scripted == "ok"))
        else:
            self._record(evaluated_at_turn(self.run, place, ev.TaskError(*_ERRORS[scripted])))

    def _verify(self, place: int, task: CompiledTask, outcome: Outcome, scripted: Scripted | None) -> None:
        """A result object's verification is judged; a bare word is the visit's final verdict."""
        check = task.verification
        if check is None or not isinstance(scripted, Mapping):
            return
        view = self.run.context.view_of(place)
        names = names_of(self.run, check, view=view, writes=outcome.writes, result=outcome.data)
        try:
            outcome.verified = check.test(names, self._evaluator)
        except ConditionError as error:
            outcome.error = ev.TaskError("condition", f"verification: {error.message}", type(error).__name__, 1)
            outcome.data = None
            return
        if not outcome.verified and task.task.on_unverified == "fail":
            outcome.error = ev.TaskError("verification", "the verification is false", attempt=1)
            outcome.verified = outcome.data = None


def _outcome(place: int, visit: int, scripted: Scripted) -> Outcome:
    if isinstance(scripted, str):
        error = ev.TaskError(*_ERRORS[scripted], attempt=1) if scripted != "ok" else None
        return Outcome(place, visit, attempts=1, data=None if error else {}, error=error)
    return Outcome(place, visit, attempts=1, data=scripted.get("data", {}), writes=dict(scripted.get("context") or {}))


def simulate(
    compiled: CompiledPlan,
    outcomes: Mapping[str, Sequence[Scripted]] | None = None,
    *,
    goal: str | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> RunResult:
    """Run a plan with scripted outcomes. Raises UsageError for a script that does not fit the plan."""
    return Simulation(compiled, check_outcomes(outcomes or {}, compiled), goal=goal, inputs=inputs).result()
