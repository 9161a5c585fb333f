"""When a task's turn has come: condition, limits, permission, parameters, approval. No call is made here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fsm_agent.core.approvals import approval_id, digest_of
from fsm_agent.core.events import ApprovalAsked, Event, FilterApplied, TaskError, TaskStarted
from fsm_agent.core.names import names_of_template
from fsm_agent.core.opening import decide_at_turn, evaluated_at_turn, open_turn
from fsm_agent.core.run import Run
from fsm_agent.engine.secrets import Secrets
from fsm_agent.engine.services import Services
from fsm_agent.errors import ConditionError, SkillError
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.skills.filters import FilterNote, apply_before
from fsm_agent.skills.skill import Skill


@dataclass(slots=True)
class Ready:
    """A visit that may begin: exactly these parameters are called."""

    place: int
    visit: int
    skill: Skill
    parameters: Mapping[str, Any]
    kwargs: dict[str, Any]


@dataclass(slots=True)
class TurnTaken:
    """What a turn came to: the events that record it, and the visit to begin, if any."""

    events: list[Event]
    ready: Ready | None = None


class TurnFailed(Exception):
    """The turn ends with a failure of the task."""

    def __init__(self, error: TaskError) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(slots=True)
class TurnTaker:
    """Takes the turns of one run's tasks."""

    run: Run
    services: Services
    secrets: Secrets
    has_approver: bool = False
    held: dict[str, Ready] = field(default_factory=dict)
    """What waits for approval, as it is to be called: records hold no secrets, this does."""

    def take(self, place: int) -> TurnTaken:
        """Take the turn of the task at this place."""
        run = self.run
        evaluator = self.services.evaluators.mine
        ended = open_turn(run, place, evaluator)
        if ended is not None:
            return TurnTaken([ended])
        task = run.task(place)
        if task.decision_expression is not None:
            return TurnTaken([decide_at_turn(run, place, task.decision_expression, evaluator)])
        consent = run.approved(place)
        ready = self.held.pop(consent.approval, None) if consent is not None else None
        notes: list[Event] = []
        try:
            if ready is None:
                ready = self._prepare(place, task, notes)
        except TurnFailed as failure:
            return TurnTaken([*notes, evaluated_at_turn(run, place, failure.error)])
        if task.needs_approval and (consent is None or consent.digest != digest_of(ready.parameters)):
            return TurnTaken([*notes, self._ask(ready, task)])
        return TurnTaken([*notes, self._started(ready, task, approved=consent is not None)], ready)

    def _prepare(self, place: int, task: CompiledTask, notes: list[Event]) -> Ready:
        """Permission, then parameters."""
        skill = self.skill_of(task)
        values = names_of_template(self.run, task.parameters) if task.parameters.expressions else {}
        return self.ready(
            place, self.run.schedule.nodes[place].visits + 1, skill, task, self.rendered(task, values), notes
        )

    def skill_of(self, task: CompiledTask) -> Skill:
        """The skill that does the task, which the run must be allowed to call. Raises TurnFailed."""
        try:
            skill = self.services.registry.get(task.skill or "")
        except SkillError as error:
            raise TurnFailed(_error("exception", error)) from None
        missing = skill.spec.requires - self.run.grants if skill.spec.requires else None
        if missing:
            names = ", ".join(sorted(missing))
            needs = f"skill {skill.spec.name!r} needs a permission that the run was not granted: {names}"
            raise TurnFailed(TaskError("permission", f"{needs} (give --grant, or grants=)"))
        return skill

    def rendered(self, task: CompiledTask, names: Mapping[str, Any]) -> Mapping[str, Any]:
        """The task's parameters, worked out over these names. Raises TurnFailed."""
        try:
            parameters: Mapping[str, Any] = task.parameters.render(names, self.services.evaluators.mine)
        except ConditionError as error:
            raise TurnFailed(_error("parameters", error)) from None
        return parameters

    def ready(
        self,
        place: int,
        visit: int,
        skill: Skill,
        task: CompiledTask,
        parameters: Mapping[str, Any],
        notes: list[Event],
    ) -> Ready:
        """The call as it is to be made, once filters and the skill have seen its parameters. Raises TurnFailed."""
        if skill.before:
            parameters = self._filtered(skill, task, visit, parameters, notes)
        try:
            return Ready(place, visit, skill, parameters, skill.validate(parameters))
        except SkillError as error:
            raise TurnFailed(_error("parameters", error)) from None

    def _filtered(
        self, skill: Skill, task: CompiledTask, visit: int, parameters: Mapping[str, Any], notes: list[Event]
    ) -> Mapping[str, Any]:
        changed, found, refusal = apply_before(skill, parameters)
        notes.extend(filter_event(task.task.id, visit, note, self.secrets) for note in found)
        if refusal is not None:
            raise TurnFailed(TaskError("parameters", self.secrets.out_of_text(refusal)))
        return changed

    def _ask(self, ready: Ready, task: CompiledTask) -> ApprovalAsked:
        digest = digest_of(ready.parameters)
        name = approval_id(self.run.run_id, task.task.id, ready.visit, None, digest)
        self.held[name] = ready
        wait = task.task.approval_timeout
        return ApprovalAsked(
            approval=name,
            kind="task",
            task=task.task.id,
            visit=ready.visit,
            risk=task.risk,
            parameters=self.secrets.out_of(ready.parameters),
            digest=digest,
            expires_at=self.services.clock.now() + wait if wait is not None else None,
            approver=self.has_approver,
        )

    def _started(self, ready: Ready, task: CompiledTask, *, approved: bool) -> TaskStarted:
        known = approved or (task.parameters.constant and not ready.skill.before)
        parameters = None if known else self.secrets.out_of(ready.parameters)
        return TaskStarted(task=task.task.id, visit=ready.visit, parameters=parameters)


def filter_event(task: str, visit: int, note: FilterNote, secrets: Secrets) -> FilterApplied:
    """What a filter did, as an event."""
    why = secrets.out_of_text(note.why)
    return FilterApplied(task=task, visit=visit, filter=note.filter, when=note.when, what=note.what, why=why)


def _error(kind: str, error: ConditionError | SkillError, prefix: str = "") -> TaskError:
    return TaskError(kind, prefix + error.message, type(error).__name__)
