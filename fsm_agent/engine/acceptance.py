"""Whether what a skill returned counts: plain data, filters, verification. And what stands in when all has failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from fsm_agent.core.context import View
from fsm_agent.core.names import names_of, names_of_template
from fsm_agent.core.run import Run
from fsm_agent.engine.services import Services
from fsm_agent.errors import ConditionError, NotJson, SkillError, TooLarge
from fsm_agent.jsonable import copy_plain
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.plan.expressions import Expression
from fsm_agent.plan.policy import ENGINE_TIMEOUT, Failure, Policy
from fsm_agent.skills.filters import FilterNote, apply_after
from fsm_agent.skills.outcomes import Reported, failure_of, interpret, reported_failure
from fsm_agent.skills.skill import Skill


class Visited(Protocol):
    """The visit whose result is looked at."""

    attempts: int
    parameters: Mapping[str, Any]
    policy: Policy
    task: CompiledTask
    view: View

    def note(self, note: FilterNote) -> None:
        """A filter did something."""


class Accepted(msgspec.Struct, frozen=True):
    """Data that counts. `verified` is None where there was nothing to verify."""

    data: Any
    verified: bool | None = None


@dataclass(frozen=True, slots=True)
class StandIn:
    """The call of a fallback skill."""

    skill: Skill
    kwargs: dict[str, Any]
    timeout: float


class Acceptor:
    """The rules of acceptance for the visits of one run."""

    __slots__ = ("_run", "_services")

    def __init__(self, run: Run, services: Services) -> None:
        self._run = run
        self._services = services

    def accept(
        self, visit: Visited, value: Any, writes: Mapping[str, Any], *, skill: Skill, verify: bool
    ) -> Accepted | Failure:
        """Look at what a call returned."""
        try:
            found = interpret(value, self._run.compiled.plan.limits.max_result_bytes)
        except (NotJson, TooLarge) as error:
            return failure_of(error, visit.attempts, 0.0)
        if isinstance(found, Reported):
            return reported_failure(found, visit.attempts)
        data = found.data
        if skill.after:
            data, notes, refusal = apply_after(skill, visit.parameters, data)
            for note in notes:
                visit.note(note)
            if refusal is not None:
                return Failure("reported", None, refusal, visit.attempts)
        check = visit.task.verification
        return Accepted(data) if check is None or not verify else self._verify(check, visit, data, writes)

    def _verify(self, check: Expression, visit: Visited, data: Any, writes: Mapping[str, Any]) -> Accepted | Failure:
        names = names_of(self._run, check, view=visit.view, writes=writes, result=data)
        try:
            holds = check.test(names, self._services.evaluators.mine)
        except ConditionError as error:
            return Failure("condition", type(error).__name__, f"verification: {error.message}", visit.attempts)
        if holds or visit.task.task.on_unverified == "warn":
            return Accepted(data, verified=holds)
        return Failure("verification", None, "the verification is false", visit.attempts)

    def stand_in(self, visit: Visited) -> StandIn | Accepted | None:
        """What a visit's fallback comes to: a value, a call to make, or nothing (it fails itself)."""
        fallback = visit.policy.fallback
        if fallback is None:
            return None
        template = visit.task.fallback if fallback is visit.task.task.fallback else None
        try:
            rendered = None if template is None else self._render(visit, template)
            if fallback.skill is None:
                return Accepted(copy_plain(fallback.value) if template is None else rendered)
            skill = self._services.registry.get(fallback.skill)
            if not skill.spec.requires <= self._run.grants:
                return None
            kwargs = skill.validate(visit.parameters if rendered is None else rendered)
            return StandIn(skill, kwargs, skill.spec.policy.timeout or ENGINE_TIMEOUT)
        except (ConditionError, SkillError):
            return None

    def _render(self, visit: Visited, template: Any) -> Any:
        return template.render(names_of_template(self._run, template, view=visit.view), self._services.evaluators.mine)
