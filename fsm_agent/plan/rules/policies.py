"""Warnings about words of a plan that its skills do not allow to have their effect: risk, approval, retries, names."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterator

from fsm_agent.plan.catalog import SkillSpec
from fsm_agent.plan.compiled import FIXED_NAMES, RESULT
from fsm_agent.plan.findings import Finding, shown, warning
from fsm_agent.plan.model import Limits
from fsm_agent.plan.policy import OTHER_KINDS, RETRIABLE_KINDS
from fsm_agent.plan.rules.subject import Subject


def risk_raised(subject: Subject) -> Iterator[Finding]:
    """A plan calls a task less risky than its skill is; the skill's risk is a floor."""
    for place, compiled in enumerate(subject.compilation.plan.tasks):
        stated = compiled.task.risk_level
        if stated is not None and stated != compiled.risk:
            message = f"the skill {shown(compiled.skill or '')} is of {compiled.risk} risk; that holds, not {stated!r}"
            yield warning("risk_raised", ("tasks", place, "risk_level"), message)


def approval_forbidden(subject: Subject) -> Iterator[Finding]:
    """A model's plan tries to lift the approval that a risky task needs."""
    if subject.plan.origin != "model":
        return
    for place, compiled in enumerate(subject.compilation.plan.tasks):
        if compiled.task.approval == "none" and compiled.needs_approval:
            message = "a model's plan cannot switch off the approval of a high-risk task: `approval: none` is ignored"
            yield warning("approval_forbidden", ("tasks", place, "approval"), message)


def limits_raised(subject: Subject) -> Iterator[Finding]:
    """A model's plan asks for more than the limits that hold where a plan says nothing."""
    plan = subject.plan
    if plan.origin != "model":
        return
    default = Limits.model_construct()
    for name in sorted(plan.limits.model_fields_set):
        stated, most = getattr(plan.limits, name), getattr(default, name)
        if name == "max_task_runs":
            most = max(1000, 10 * len(plan.tasks))
        if most is not None and stated is not None and stated > most:
            message = f"a model's plan cannot raise this limit: {stated:g} is more than {most:g}"
            yield Finding("limit_raised", ("limits", name), message, hint="leave it out, or let a person own the plan")


def retry_without_effect(subject: Subject) -> Iterator[Finding]:
    """Retries that will never be made."""
    for place, compiled in enumerate(subject.compilation.plan.tasks):
        task, spec = compiled.task, subject.spec(compiled.skill)
        if task.max_retries and compiled.is_decision:
            yield warning("retry_without_effect", ("tasks", place, "max_retries"), "a decision makes no attempts")
        if task.max_retries and spec is not None and not spec.idempotent and not spec.policy.retry_on:
            message = f"the skill {shown(spec.name)} is not idempotent and names no error that is safe to retry"
            hint = "its author can say so: @skill(idempotent=True), or retry_on=…"
            yield warning("retry_without_effect", ("tasks", place, "max_retries"), message, hint)
        for number, name in enumerate(task.retry_on or ()):
            if why := _never_retried(name, spec):
                yield warning("retry_without_effect", ("tasks", place, "retry_on", number), why)


def shadowed_names(subject: Subject) -> Iterator[Finding]:
    """A key or an input that expressions cannot reach by its bare name, because that means something else."""
    plan = subject.plan
    fixed = FIXED_NAMES | {RESULT}
    paths = [("inputs", name) for name in plan.inputs] + [("context", key) for key in plan.context]
    for path in paths:
        if path[1] in fixed:
            message = f"in expressions {path[1]!r} means something else"
            hint = f"rename it, or read it as {'inputs' if path[0] == 'inputs' else 'context'}[{path[1]!r}]"
            yield warning("shadowed_name", path, message, hint)
    for place, task in enumerate(plan.tasks):
        for number, key in enumerate(task.writes or ()):
            if key in fixed:
                hint = f"rename it, or read it as context[{key!r}]"
                message = f"in expressions {key!r} means something else"
                yield warning("shadowed_name", ("tasks", place, "writes", number), message, hint)


def _never_retried(name: str, spec: SkillSpec | None) -> str:
    """Why an entry of a plan's retry_on has no effect; nothing where it may have one."""
    if name in OTHER_KINDS:
        return f"failures of the kind {name!r} are never retried"
    if spec is None or spec.idempotent or not spec.policy.retry_on:
        return ""  # with no retry_on of the author's, the warning is on max_retries
    if name == "timeout":
        return "a timeout of a skill that is not idempotent is never retried: it may have taken effect"
    if not _may_be_among(name, spec.policy.retry_on):
        return f"the author of the skill {shown(spec.name)} does not name {name!r} as safe to retry"
    return ""


def _may_be_among(name: str, named: Collection[str]) -> bool:
    """Whether failures of this name can be among those named: as a kind, or as a class below one of the classes."""
    if name in RETRIABLE_KINDS or name in named:
        return name in named
    classes = [other for other in named if other not in RETRIABLE_KINDS]
    known = getattr(builtins, name, None)
    if isinstance(known, type) and issubclass(known, BaseException):
        return any(base.__name__ in classes for base in known.__mro__)
    return bool(classes)  # a class of its own, whose bases are not known here
