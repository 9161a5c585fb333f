"""Who does a task: a sub-plan, a skill, or nobody, because the task is a decision."""

from __future__ import annotations

import msgspec

from fsm_agent.plan.catalog import Catalog
from fsm_agent.plan.model import Plan, Task


class Doer(msgspec.Struct, frozen=True, gc=False):
    """Who does one task. With no skill, no decision and not `missing` it is a sub-plan, or somebody not known here."""

    skill: str | None = None
    is_decision: bool = False
    missing: bool = False
    """Nobody does it, and there is nothing to decide."""


_DECISION = Doer(is_decision=True)
_SOMEBODY = Doer()
_NOBODY = Doer(missing=True)


def doer_of(task: Task, plan: Plan, catalog: Catalog) -> Doer:
    """Who does the task: the first of its sub-plan, its skill, its worker's, the default skill of an action, its
    verification (a decision), the default skill.
    """
    if task.subplan is not None or task.subgoal is not None or task.agent is not None:
        return _SOMEBODY
    if task.skill is not None:
        return Doer(task.skill)
    if task.worker is not None:
        skill = skill_of_worker(task.worker, plan, catalog)
        if skill is not None:
            return Doer(skill)
        if not knows_worker(task.worker, plan, catalog):
            return _SOMEBODY
    default = default_skill(plan, catalog)
    if task.type == "action" and default is not None:
        return Doer(default)
    if task.verification is not None:
        return _DECISION
    if default is not None:
        return Doer(default)
    return _SOMEBODY if catalog.any_skill else _NOBODY


def skill_of_worker(worker: str, plan: Plan, catalog: Catalog) -> str | None:
    """The skill that the plan, else the catalog, gives this kind of worker."""
    known = plan.workers.get(worker)
    return known.skill if known is not None and known.skill is not None else catalog.workers.get(worker)


def knows_worker(worker: str, plan: Plan, catalog: Catalog) -> bool:
    """Whether the plan or the catalog knows this kind of worker."""
    return worker in plan.workers or worker in catalog.workers


def default_skill(plan: Plan, catalog: Catalog) -> str | None:
    """The skill for tasks that name nobody: the plan's, else the catalog's."""
    return plan.default_skill if plan.default_skill is not None else catalog.default_skill
