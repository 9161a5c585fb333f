"""A skill: one version of one function that plans may call, with all that the engine needs to know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fsm_agent.errors import BadSkill, NotJson
from fsm_agent.jsonable import to_plain
from fsm_agent.plan.catalog import SkillPolicy, SkillSpec
from fsm_agent.plan.model import Fallback
from fsm_agent.skills.declaration import Declaration, checked_name, declaration_of, description_of
from fsm_agent.skills.filters import AfterFilter, BeforeFilter
from fsm_agent.skills.parameters import Parameters
from fsm_agent.skills.safe_execute import Safe, unwrap
from fsm_agent.skills.signature import Function, name_of, read_signature, source_of


@dataclass(frozen=True, slots=True, eq=False)
class Skill:
    """One version of one skill. A visit keeps the one that it began with, whatever is loaded meanwhile."""

    spec: SkillSpec
    function: Function
    """The bare function: what `safe_execute` was told is in the policy."""
    is_async: bool
    context_parameter: str | None
    """The name of the parameter that gets the SkillContext, if there is one."""
    before: tuple[BeforeFilter, ...]
    after: tuple[AfterFilter, ...]
    parameters: Parameters

    def validate(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for a call. Raises BadParameters, with paths and without values."""
        return self.parameters.validate(parameters)


def build_skills(function: Function, *, name: str | None = None, source: str | None = None) -> tuple[Skill, ...]:
    """The skill that a function is, declared or not; and a second one where its fallback is a function.

    That one is named after it, `NAME.fallback`, for a plan's fallback is a skill by name. Raises BadSkill.
    """
    declared = declaration_of(function) or Declaration()
    name = checked_name(name or declared.name or name_of(function))
    source = source or source_of(function)
    bare, safe = unwrap(function)
    idempotent = declared.idempotent or (safe is not None and safe.idempotent)
    policy, stand_in = _author(declared, safe, idempotent=idempotent)
    companions: tuple[Skill, ...] = ()
    if stand_in is not None:
        companions = build_skills(stand_in, name=f"{name}.fallback", source=source)
        policy = replace(policy, fallback=_fallback_to(companions[0]))
    signature = read_signature(bare, name)
    parameters = Parameters(name, signature)
    spec = SkillSpec(
        name=name,
        description=declared.description if declared.description is not None else description_of(bare),
        parameters=parameters.schema,
        risk=declared.risk,
        requires=declared.requires,
        idempotent=idempotent,
        writes=declared.writes,
        policy=_with_plain_fallback(name, policy),
        source=source,
        check=parameters.problems,
    )
    built = Skill(spec, bare, signature.is_async, signature.context, declared.before, declared.after, parameters)
    return (built, *companions)


def _author(declared: Declaration, safe: Safe | None, *, idempotent: bool) -> tuple[SkillPolicy, Function | None]:
    """The author's policy: what `@skill` says wins over what `safe_execute` says. And the fallback function, if any."""
    if safe is None:
        return declared.policy, declared.stand_in
    words, under = declared.policy, safe.policy(idempotent=idempotent)
    policy = SkillPolicy(
        timeout=words.timeout if words.timeout is not None else under.timeout,
        max_retries=words.max_retries if words.max_retries is not None else under.max_retries,
        retry_on=words.retry_on if words.retry_on is not None else under.retry_on,
        backoff=words.backoff or under.backoff,
        fallback=words.fallback,
    )
    if policy.fallback is not None or declared.stand_in is not None:
        return policy, declared.stand_in
    return replace(policy, fallback=under.fallback), safe.stand_in


def _fallback_to(companion: Skill) -> Fallback:
    """A function without parameters gets none; any other gets the task's."""
    takes_nothing = not companion.spec.parameters or companion.spec.parameters == NO_PARAMETERS
    return Fallback(skill=companion.spec.name, parameters={}) if takes_nothing else Fallback(skill=companion.spec.name)


def _with_plain_fallback(name: str, policy: SkillPolicy) -> SkillPolicy:
    fallback = policy.fallback
    if fallback is None or fallback.skill is not None:
        return policy
    try:
        return replace(policy, fallback=Fallback(value=to_plain(fallback.value)))
    except NotJson as error:
        raise BadSkill(f"skill {name!r}: the value of its fallback is no plain data: {error.message}") from error


NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
"""The schema of a function that takes nothing."""
