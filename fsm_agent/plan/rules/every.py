"""Every rule there is, in one place."""

from __future__ import annotations

from collections.abc import Iterator

from fsm_agent.plan.findings import Finding
from fsm_agent.plan.rules import expressions, fields, order, policies, rollbacks, skills, structure, support
from fsm_agent.plan.rules.subject import Rule, Subject

RULES: tuple[Rule, ...] = (
    structure.duplicate_ids,
    structure.unknown_dependencies,
    structure.unknown_targets,
    structure.cycles,
    structure.loops_without_exit,
    rollbacks.rollback_targets,
    rollbacks.nothing_to_undo,
    fields.one_doer,
    fields.conditions,
    fields.fallbacks,
    fields.defaults,
    fields.patterns,
    expressions.faults,
    expressions.impossible_references,
    skills.unknown_skills,
    skills.unknown_workers,
    skills.nothing_to_do,
    skills.bad_parameters,
    support.not_supported,
    policies.risk_raised,
    policies.approval_forbidden,
    policies.limits_raised,
    policies.retry_without_effect,
    policies.shadowed_names,
)
"""Rules that hold for what could be read of a plan, even where something could not."""

RULES_OF_SKILLS: tuple[Rule, ...] = (
    expressions.faults,
    skills.unknown_skills,
    skills.unknown_workers,
    skills.nothing_to_do,
    skills.bad_parameters,
)
"""What may be wrong by now with a plan that was valid once: the skills are others."""

RULES_OF_WHOLE_PLANS: tuple[Rule, ...] = (
    order.backward_branches,
    order.once_after_loop,
    order.cleanup_not_last,
    order.parallel_writers,
    rollbacks.rollbacks_without_effect,
)
"""Warnings that a missing edge would make false."""


def examine(subject: Subject) -> Iterator[Finding]:
    """All that is wrong with a plan that fits the model, or with what is left of one that does not."""
    rules = RULES if subject.left_out else (*RULES, *RULES_OF_WHOLE_PLANS)
    for rule in rules:
        yield from rule(subject)
