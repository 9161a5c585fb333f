"""When a task's turn has come: condition, limits, permission, parameters, approval. No call is made here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fsm_agent.core.approvals import approval_id, digest_of
from fsm_agent.core.calls import Call
from fsm_agent.core.context import MISSING, View
from fsm_agent.core.events import (
    ApprovalAsked,
    AttemptStarted,
    Event,
    FilterApplied,
    TaskError,
    TaskEvaluated,
    TaskStarted,
)
from fsm_agent.core.names import names_of_template
from fsm_agent.core.opening import decide_at_turn, evaluated_at_turn, open_turn
from fsm_agent.core.run import Run
from fsm_agent.engine.secrets import Secrets
from fsm_agent.engine.services import Services
from fsm_agent.errors import ConditionError, SkillError
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.skills.filters import FilterNote, apply_before
from fsm_agent.skills.skill import Skill


class Ready(msgspec.Struct):
    """A visit that may begin, or go on: exactly these parameters are called."""

    place: int
    visit: int
    skill: Skill
    parameters: Mapping[str, Any]
    kwargs: dict[str, Any]
    call: Call | None = None
    """Where the visit stands, if it goes on after an interruption."""
    undoes: CompiledTask | None = None
    """The compensation that is called, where the task's visit is undone."""


class TurnTaken(msgspec.Struct):
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
        if place in run.interrupted:
            return self._again(place)
        evaluator = self.services.evaluators.mine
        ended = open_turn(run, place, evaluator)
        if ended is not None:
            return TurnTaken([ended])
        task = run.task(place)
        if task.decision_expression is not None:
            return TurnTaken([decide_at_turn(run, place, task.decision_expression, evaluator)])
        consent = run.approved(place)
        notes: list[Event] = []
        try:
            ready = self._held(place, task, consent) if consent is not None else None
            if ready is None:
                ready = self._prepare(place, task, notes)
        except TurnFailed as failure:
            return TurnTaken([*notes, evaluated_at_turn(run, place, failure.error)])
        if task.needs_approval and (consent is None or consent.digest != self.secrets.digest(ready.parameters)):
            return TurnTaken([*notes, self._ask(ready, task)])
        return TurnTaken([*notes, self._started(ready, task, approved=consent is not None)], ready)

    def _prepare(self, place: int, task: CompiledTask, notes: list[Event]) -> Ready:
        """Permission, then parameters."""
        visit = self.run.schedule.nodes[place].visits + 1
        skill = self.permitted(task)
        parameters = self.render(task)
        if skill.before:
            parameters = self.filtered(skill, task, visit, parameters, notes)
        return self.ready(place, visit, skill, parameters)

    def permitted(self, task: CompiledTask) -> Skill:
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

    def render(self, task: CompiledTask, view: View | None = None, result: Any = MISSING) -> Mapping[str, Any]:
        """The task's parameters, as they come out now. Raises TurnFailed."""
        try:
            values = names_of_template(self.run, task.parameters, view, result) if task.parameters.expressions else {}
            rendered: Mapping[str, Any] = task.parameters.render(values, self.services.evaluators.mine)
        except ConditionError as error:
            raise TurnFailed(_error("parameters", error)) from None
        return rendered

    def ready(self, place: int, visit: int, skill: Skill, parameters: Mapping[str, Any]) -> Ready:
        """The call as it is to be made, if the skill takes the parameters. Raises TurnFailed."""
        try:
            return Ready(place, visit, skill, parameters, skill.validate(parameters))
        except SkillError as error:
            raise TurnFailed(_error("parameters", error)) from None

    # What was rendered before ---------------------------------------------------------------------------------------

    def _held(self, place: int, task: CompiledTask, consent: ApprovalAsked) -> Ready | None:
        """What a person agreed to, as it was rendered when they were asked; None if that cannot be had any more."""
        ready = self.held.pop(consent.approval, None)
        if ready is None:
            parameters = self._as_recorded(task, consent.parameters, consent.digest, None)
            if parameters is not None:
                ready = self.ready(place, consent.visit, self.permitted(task), parameters)
        return ready

    def recall(self, place: int) -> Ready | None:
        """A visit that began in another process, with the parameters that it began with.

        None if these cannot be had any more: they held a secret, and what is rendered now is something else.
        """
        call, task = self.run.calls[place], self.run.task(place)
        view = self.run.context.view_of(place)
        try:
            if call.parameters is None:
                parameters: Mapping[str, Any] | None = self.render(task, view)
            else:
                parameters = self._as_recorded(task, call.parameters, call.seal, view)
            if parameters is None:
                return None
            ready = self.ready(place, call.visit, self.permitted(task), parameters)
        except TurnFailed:
            return None
        ready.call = call
        return ready

    def _as_recorded(
        self, task: CompiledTask, recorded: Mapping[str, Any] | None, digest: str, view: View | None
    ) -> Mapping[str, Any] | None:
        """The record itself, where nothing secret was left out of it; else what is rendered now, if it is the same."""
        if recorded is not None and (not digest or digest_of(recorded) == digest):
            return recorded
        rendered = self.render(task, view)
        return rendered if self.secrets.digest(rendered) == digest else None

    def _again(self, place: int) -> TurnTaken:
        """A person said that an interrupted call is to be made again: the visit goes on."""
        call = self.run.calls[place]
        ready = self.recall(place)
        if ready is None:
            message = "its parameters cannot be had any more: they held a secret that is another one now"
            error = TaskError("parameters", message, attempt=call.attempts)
            return TurnTaken([
                TaskEvaluated(
                    task=self.run.compiled.graph.ids[place],
                    visit=call.visit,
                    status="FAILED",
                    attempts=call.attempts,
                    retried=call.retried,
                    error=error,
                )
            ])  # fmt: skip
        idempotent = ready.skill.spec.idempotent and not call.fallback
        return TurnTaken([again(self.run, place, idempotent=idempotent)], ready)

    def filtered(
        self, skill: Skill, task: CompiledTask, visit: int, parameters: Mapping[str, Any], notes: list[Event]
    ) -> Mapping[str, Any]:
        """The parameters as the skill's filters leave them. Raises TurnFailed."""
        changed, found, refusal = apply_before(skill, parameters)
        notes.extend(filter_event(task.task.id, visit, note, self.secrets) for note in found)
        if refusal is not None:
            raise TurnFailed(TaskError("parameters", self.secrets.out_of_text(refusal)))
        return changed

    def _ask(self, ready: Ready, task: CompiledTask) -> ApprovalAsked:
        digest = self.secrets.digest(ready.parameters)
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
        idempotent = ready.skill.spec.idempotent
        known = approved or (task.parameters.constant and not ready.skill.before)
        if known:
            return TaskStarted(task=task.task.id, visit=ready.visit, idempotent=idempotent)
        parameters = self.secrets.out_of(ready.parameters)
        seal = "" if parameters is ready.parameters else self.secrets.digest(ready.parameters)
        return TaskStarted(
            task=task.task.id, visit=ready.visit, parameters=parameters, seal=seal, idempotent=idempotent
        )


def again(run: Run, place: int, *, idempotent: bool, same: bool = False) -> AttemptStarted:
    """One more call of a visit that is under way: its next attempt, or the `same` once more. A fallback is none."""
    call = run.calls[place]
    attempt = call.attempts if same or call.fallback else call.attempts + 1
    task = run.compiled.graph.ids[place]
    return AttemptStarted(task=task, visit=call.visit, attempt=attempt, fallback=call.fallback, idempotent=idempotent)


def filter_event(task: str, visit: int, note: FilterNote, secrets: Secrets) -> FilterApplied:
    """What a filter did, as an event."""
    why = secrets.out_of_text(note.why)
    return FilterApplied(task=task, visit=visit, filter=note.filter, when=note.when, what=note.what, why=why)


def _error(kind: str, error: ConditionError | SkillError, prefix: str = "") -> TaskError:
    return TaskError(kind, prefix + error.message, type(error).__name__)
