"""Who does what: skills and workers that there are, and parameters that fit them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fsm_agent.plan.catalog import SkillSpec
from fsm_agent.plan.doers import knows_worker
from fsm_agent.plan.findings import Finding, Path, shown, steps_of
from fsm_agent.plan.rules.subject import Subject

_MAX_LISTED = 10
_EXPRESSION = re.compile(r"(?<!\$)\$\{")


def unknown_skills(subject: Subject) -> Iterator[Finding]:
    """A skill that the catalog does not have. It is never taken for another one."""
    if subject.catalog.any_skill:
        return
    skills = subject.catalog.skills
    listed = f"the skills are {', '.join(sorted(skills))}" if skills else "no skills are loaded"
    all_of_them = listed if len(skills) <= _MAX_LISTED else "see the list of skills"
    for path, name in _skills_named(subject):
        if name not in skills:
            hint = subject.suggestions.hint(name, skills, "skill")
            if not hint:  # models like to put a prefix of their vendor before a name
                hint = subject.suggestions.hint(name.rpartition(".")[2], skills, "skill", otherwise=all_of_them)
            yield Finding("unknown_skill", path, f"there is no skill {shown(name)}", hint=hint)


def unknown_workers(subject: Subject) -> Iterator[Finding]:
    """A worker that neither the plan nor the catalog knows, whatever else could do the task."""
    if subject.catalog.any_skill:
        return
    known = {**subject.catalog.workers, **subject.plan.workers}
    for place, task in enumerate(subject.plan.tasks):
        if task.worker is not None and not knows_worker(task.worker, subject.plan, subject.catalog):
            hint = subject.suggestions.hint(task.worker, known, "worker", otherwise="declare it under `workers`")
            message = f"there is no worker {shown(task.worker)}"
            yield Finding("unknown_worker", ("tasks", place, "worker"), message, hint=hint)


def nothing_to_do(subject: Subject) -> Iterator[Finding]:
    """Nobody does the task, and it decides nothing."""
    for place, (task, doer) in enumerate(zip(subject.plan.tasks, subject.compilation.doers, strict=True)):
        if not doer.missing or task.type == "condition" or ("default_skill",) in subject.left_out:
            continue
        if not subject.lacks(place, "skill", "worker", "agent", "subplan", "subgoal", "verification", "type"):
            message = "nobody does this task: it names no skill, and there is no default skill"
            hint = "name a skill or a worker; to make it a decision, give it a verification"
            yield Finding("nothing_to_do", ("tasks", place), message, hint=hint)


def bad_parameters(subject: Subject) -> Iterator[Finding]:
    """Parameters that do not fit the schema of the skill that is called with them."""
    take_none: set[str | None] = set()
    for place, compiled in enumerate(subject.compilation.plan.tasks):
        if subject.lacks(place, "parameters"):
            continue
        task = compiled.task
        is_bare = not task.parameters and task.fallback is None and task.compensation is None
        if is_bare and compiled.skill in take_none:
            continue  # the skill was asked already whether it can be called with nothing
        misfits = [*_misfits(subject.spec(compiled.skill), task.parameters, ("tasks", place))]
        yield from misfits
        if is_bare and not misfits:
            take_none.add(compiled.skill)
        for field, call in (("fallback", task.fallback), ("compensation", task.compensation)):
            if call is not None and call.skill is not None:
                given = task.parameters if call.parameters is None else call.parameters
                yield from _misfits(subject.spec(call.skill), given, ("tasks", place, field))


def _skills_named(subject: Subject) -> Iterator[tuple[Path, str]]:
    plan, doers = subject.plan, subject.compilation.doers
    if plan.default_skill is not None:
        yield ("default_skill",), plan.default_skill
    for worker, settings in plan.workers.items():
        if settings.skill is not None:
            yield ("workers", worker, "skill"), settings.skill
    named = {plan.default_skill, *(settings.skill for settings in plan.workers.values())}
    for place, (task, doer) in enumerate(zip(plan.tasks, doers, strict=True)):
        if task.skill is not None:
            yield ("tasks", place, "skill"), task.skill
        elif doer.skill is not None and doer.skill not in named:
            yield ("tasks", place, *(["worker"] if task.worker is not None else [])), doer.skill
        if task.fallback is not None and task.fallback.skill is not None:
            yield ("tasks", place, "fallback", "skill"), task.fallback.skill
        if task.compensation is not None:
            yield ("tasks", place, "compensation", "skill"), task.compensation.skill


def _misfits(spec: SkillSpec | None, given: Mapping[str, Any], owner: Path) -> Iterator[Finding]:
    """What the skill has to say about the parameters, as far as they are known before the run."""
    if spec is None or spec.check is None:
        return
    path = (*owner, "parameters")
    open_ones = {name for name, value in given.items() if _holds_expression(value)}
    constants = {name: _literal(value) for name, value in given.items() if name not in open_ones}
    for where, message in spec.check(constants, open_ones):
        which = f"`{where}`" if where else "the parameters"
        yield Finding("bad_parameters", (*path, *steps_of(where)), f"{which} of skill {shown(spec.name)}: {message}")


def _holds_expression(value: Any) -> bool:
    """Whether a `${…}` stands in a value, be it one that does not compile."""
    if isinstance(value, str):
        return _EXPRESSION.search(value) is not None
    if isinstance(value, dict):
        return any(map(_holds_expression, value.values()))
    return isinstance(value, list) and any(map(_holds_expression, value))


def _literal(value: Any) -> Any:
    """A value without expressions as it will be rendered: `$${` is a literal `${`."""
    if isinstance(value, str):
        return value.replace("$${", "${")
    if isinstance(value, dict):
        return {key: _literal(item) for key, item in value.items()}
    return [_literal(item) for item in value] if isinstance(value, list) else value
