"""The effective policies of tasks, worked out once for each skill and each task that has words of its own."""

from __future__ import annotations

from fsm_agent.plan.catalog import SkillPolicy, SkillSpec
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.plan.policy import Policy, effective_policy, policy_of
from fsm_agent.skills.skill import Skill

_SILENT = SkillPolicy()
"""A task without words of its own."""


class Policies:
    """A cache for one engine. Most tasks leave everything to their skill's author."""

    __slots__ = ("_of_skill",)

    def __init__(self) -> None:
        self._of_skill: dict[str, tuple[SkillSpec, Policy]] = {}

    def of(self, task: CompiledTask, skill: Skill) -> Policy:
        """The policy under which the task calls this version of the skill."""
        if task.has_policy:
            return policy_of(task.task, skill.spec)
        known = self._of_skill.get(skill.spec.name)
        if known is None or known[0] is not skill.spec:
            known = self._of_skill[skill.spec.name] = (
                skill.spec,
                effective_policy(_SILENT, skill.spec.policy, idempotent=skill.spec.idempotent),
            )
        return known[1]
