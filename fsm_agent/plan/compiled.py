"""A plan with everything in it that can be worked out beforehand: its shape, who does what, compiled expressions.

Compiling serves checking and running alike: the rules read what did not compile, the engine runs what did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from fsm_agent.errors import ConditionError
from fsm_agent.plan.catalog import Catalog, SkillSpec
from fsm_agent.plan.doers import Doer, doer_of
from fsm_agent.plan.expressions import Expression, Names, compile_expression
from fsm_agent.plan.findings import Path, steps_of
from fsm_agent.plan.graph import Graph
from fsm_agent.plan.model import Plan, Risk, Task
from fsm_agent.plan.references import Template, compile_template
from fsm_agent.plan.ways_back import recovers_by_rollback

FIXED_NAMES = frozenset({"context", "inputs", "results", "goal"})
"""What every expression may name."""

RESULT = "result"
"""What besides a verification (but for that of a decision) and the parameters of a compensation may name."""

_RISKS: tuple[Risk, ...] = ("low", "medium", "high")


def _constant(value: Any) -> Template:
    template, problems = compile_template(value, Names(frozenset()))
    if template is None:
        raise problems[0][1]
    return template


_NO_PARAMETERS = _constant({})


class CompiledTask(msgspec.Struct, frozen=True, gc=False):
    """One task, ready to run."""

    task: Task
    skill: str | None
    """The skill that does it; None for a decision, and where a catalog of any skill does not know which."""
    risk: Risk
    """The greatest of its own risk, its skill's, and that of a skill that may stand in for it."""
    needs_approval: bool
    """Whether a person must agree before it runs, as far as the plan and the skill say."""
    parameters: Template
    fallback: Template | None = None
    """Its own fallback's value, or that one's own parameters."""
    condition: Expression | None = None
    verification: Expression | None = None
    """What its result must meet; None for a decision."""
    decision_expression: Expression | None = None
    """What a decision decides by."""

    has_policy: bool = True
    """Whether the task has words of its own about timeout, retries or fallback."""
    compensation: CompiledTask | None = None
    """What undoes it, as a task of the same id that is done by another skill."""
    undoes: bool = False
    """Whether it is such a compensation."""

    @property
    def is_decision(self) -> bool:
        """Whether nobody does it: an expression is judged, and that is all."""
        return self.decision_expression is not None


@dataclass(frozen=True, slots=True)
class CompiledCriterion:
    """One completion criterion: prose, or a check."""

    text: str | None
    check: Expression | None = None


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """A valid plan, ready to run any number of times. Tasks are in the plan's order."""

    plan: Plan
    graph: Graph
    tasks: tuple[CompiledTask, ...]
    criteria: tuple[CompiledCriterion, ...]
    output: Expression | None
    has_rollback: bool = False
    """Whether a failure of some task may lead to a rollback: only then is kept what one needs."""
    normal: bytes = field(default=b"", repr=False)
    """The JSON of the plan as it is kept, where that was made: each run that is kept needs it."""

    @property
    def guarded_finalizers(self) -> tuple[str, ...]:
        """The finalizers that need approval, and so do not run when a run is ending."""
        return tuple(self.graph.ids[place] for place in self.graph.finalizers if self.tasks[place].needs_approval)

    def with_guarded(self, finalizers: Collection[str]) -> CompiledPlan:
        """The same where just these finalizers need approval, whatever is known of their skills here."""
        if set(finalizers) == set(self.guarded_finalizers):
            return self
        tasks = list(self.tasks)
        for place in self.graph.finalizers:
            tasks[place] = msgspec.structs.replace(tasks[place], needs_approval=self.graph.ids[place] in finalizers)
        return replace(self, tasks=tuple(tasks))


@dataclass(frozen=True, slots=True)
class Fault:
    """An expression that did not compile, and where it stands."""

    path: Path
    error: ConditionError


@dataclass(frozen=True, slots=True)
class Use:
    """An expression of one task (by place) that asks for results, and where it stands."""

    place: int
    path: Path
    expression: Expression


@dataclass(slots=True)
class Compilation:
    """What compiling a plan came to. `plan` is fit to run only where there are no faults and no other errors."""

    plan: CompiledPlan
    doers: Sequence[Doer]
    faults: list[Fault] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)


def compile_plan(plan: Plan, catalog: Catalog, more_names: Iterable[str] = ()) -> Compilation:
    """Work out all of a plan. `more_names` are bare names to allow besides those that are declared."""
    doers = [doer_of(task, plan, catalog) for task in plan.tasks]
    graph = Graph.of(plan, [doer.is_decision for doer in doers])
    bare = bare_names(plan, doers, catalog).union(more_names)
    return _Compiler(plan, catalog, graph, doers, bare).compile()


def bare_names(plan: Plan, doers: Sequence[Doer], catalog: Catalog) -> frozenset[str]:
    """The names that expressions may use besides the fixed ones: inputs, keys of the context, declared writes."""
    names = {*plan.inputs, *plan.context}
    for task, doer in zip(plan.tasks, doers, strict=True):
        names.update(writes_of(task, catalog.skills.get(doer.skill) if doer.skill is not None else None))
        if task.fallback is not None and task.fallback.skill is not None:
            names.update(writes_of(None, catalog.skills.get(task.fallback.skill)))
        if task.compensation is not None:
            names.update(writes_of(None, catalog.skills.get(task.compensation.skill)))
    return frozenset(names)


def writes_of(task: Task | None, spec: SkillSpec | None) -> Sequence[str]:
    """The context keys that a task may write, where that is declared: by the task, else by its skill."""
    if task is not None and task.writes is not None:
        return task.writes
    return (spec.writes or ()) if spec is not None else ()


def risk_of(task: Task, specs: Iterable[SkillSpec]) -> Risk:
    """How risky a task is: a plan can raise the risk of its skills, not lower it."""
    return max([task.risk_level or "low", *(spec.risk for spec in specs)], key=_RISKS.index)


def needs_approval(task: Task, risk: Risk, plan: Plan) -> bool:
    """Whether a person must agree: by the task's word, else by its risk. A model's word cannot lift a high risk."""
    if task.approval == "none" and plan.origin != "model":
        return False
    return task.approval == "required" or risk == "high"


MOST_FAULTS = 1_000
"""After so many faults, what is left is not compiled: working out what each might have meant takes its time."""


_NO_POLICY = (None,) * 5


def _has_policy(task: Task) -> bool:
    return (task.timeout, task.max_retries, task.retry_on, task.backoff, task.fallback) != _NO_POLICY


class _Compiler:
    """Compiles one plan. The same text under the same names is compiled once."""

    def __init__(self, plan: Plan, catalog: Catalog, graph: Graph, doers: Sequence[Doer], bare: frozenset[str]) -> None:
        self.plan = plan
        self.catalog = catalog
        self.graph = graph
        self.doers = doers
        self.faults: list[Fault] = []
        self.uses: list[Use] = []
        self.names = Names(FIXED_NAMES, bare, graph.index)
        self.names_with_result = Names(FIXED_NAMES | {RESULT}, bare, graph.index)
        self._known: dict[tuple[str, bool], Expression | ConditionError] = {}
        self._risks: dict[tuple[str | None, Risk | None], Risk] = {}

    def compile(self) -> Compilation:
        plan = self.plan
        tasks = tuple(self._task(task, place) for place, task in enumerate(plan.tasks))
        criteria = tuple(self._criterion(item, place) for place, item in enumerate(plan.completion_criteria))
        output = self._expression(plan.output, ("output",))
        has_rollback = any(recovers_by_rollback(task, plan) for task in plan.tasks)
        compiled = CompiledPlan(plan, self.graph, tasks, criteria, output, has_rollback)
        return Compilation(compiled, self.doers, self.faults, self.uses)

    def _task(self, task: Task, place: int) -> CompiledTask:
        doer = self.doers[place]
        risk = self._risk(task, doer)
        verification = self._of_task(task.verification, place, "verification", with_result=not doer.is_decision)
        return CompiledTask(
            task,
            doer.skill,
            risk,
            needs_approval(task, risk, self.plan),
            self._template(task.parameters, place, "parameters") or _NO_PARAMETERS,
            self._fallback(task, place),
            self._of_task(task.condition, place, "condition"),
            None if doer.is_decision else verification,
            verification if doer.is_decision else None,
            _has_policy(task),
            self._compensation(task, place),
        )

    def _risk(self, task: Task, doer: Doer) -> Risk:
        """Most tasks call nothing but their skill: those of one skill are alike."""
        if task.fallback is not None or task.compensation is not None:
            return risk_of(task, self._specs_of(task, doer))
        alike = (doer.skill, task.risk_level)
        known = self._risks.get(alike)
        if known is None:
            known = self._risks[alike] = risk_of(task, self._specs_of(task, doer))
        return known

    def _specs_of(self, task: Task, doer: Doer) -> list[SkillSpec]:
        """The skills that may be called for a task: its own, its fallback's (else its skill's), its compensation's.

        Who approves a task approves with it what may be called for it later.
        """
        skills = self.catalog.skills
        spec = skills.get(doer.skill) if doer.skill is not None else None
        fallback = task.fallback or (spec.policy.fallback if spec is not None else None)
        more = [call.skill for call in (fallback, task.compensation) if call is not None and call.skill is not None]
        return [each for each in (spec, *map(skills.get, more)) if each is not None]

    def _criterion(self, item: Any, place: int) -> CompiledCriterion:
        if isinstance(item, str):
            return CompiledCriterion(item)
        return CompiledCriterion(item.text, self._expression(item.check, ("completion_criteria", place, "check")))

    def _fallback(self, task: Task, place: int) -> Template | None:
        fallback = task.fallback
        if fallback is None:
            return None
        if fallback.skill is None:
            return self._template(fallback.value, place, "fallback.value")
        if fallback.parameters is None:
            return None
        return self._template(fallback.parameters, place, "fallback.parameters")

    def _compensation(self, task: Task, place: int) -> CompiledTask | None:
        """Its parameters may name `result`, and the result of any task: it is called when all that is there."""
        undo = task.compensation
        if undo is None:
            return None
        template = None
        if undo.parameters is not None:
            template, problems = compile_template(undo.parameters, self.names_with_result, "compensation.parameters")
            self.faults.extend(Fault(("tasks", place, *steps_of(path)), error) for path, error in problems)
        spec = self.catalog.skills.get(undo.skill)
        return CompiledTask(
            # Of the task's own words only its id, name and prose are the compensation's too.
            task.model_copy(update={"writes": None, "fallback": None, "verification": None}),
            undo.skill,
            spec.risk if spec is not None else "low",
            needs_approval=False,
            parameters=template or _NO_PARAMETERS,
            has_policy=False,
            undoes=True,
        )

    def _of_task(self, text: str | None, place: int, name: str, *, with_result: bool = False) -> Expression | None:
        if text is None:
            return None
        expression = self._expression(text, ("tasks", place, name), with_result=with_result)
        if expression is not None and expression.result_ids:
            self.uses.append(Use(place, ("tasks", place, name), expression))
        return expression

    def _expression(self, text: str | None, path: Path, *, with_result: bool = False) -> Expression | None:
        if text is None or len(self.faults) >= MOST_FAULTS:
            return None
        known = self._known.get((text, with_result))
        if known is None:
            try:
                known = compile_expression(text, self.names_with_result if with_result else self.names)
            except ConditionError as error:
                known = error
            self._known[text, with_result] = known
        if isinstance(known, ConditionError):
            self.faults.append(Fault(path, known))
            return None
        return known

    def _template(self, value: Any, place: int, name: str) -> Template | None:
        if value == {} or len(self.faults) >= MOST_FAULTS:
            return _NO_PARAMETERS
        template, problems = compile_template(value, self.names, name)
        self.faults.extend(Fault(("tasks", place, *steps_of(path)), error) for path, error in problems)
        for path, expression in template.expressions if template is not None else ():
            if expression.result_ids:
                self.uses.append(Use(place, ("tasks", place, *steps_of(path)), expression))
        return template
