"""Fields that have to agree with one another, and texts that have to be of a form."""

from __future__ import annotations

from collections.abc import Iterator

from fsm_agent.plan.findings import Finding, kind_of
from fsm_agent.plan.inputs import is_of_type, types_of
from fsm_agent.plan.model import Fallback, Task
from fsm_agent.plan.patterns import pattern_error
from fsm_agent.plan.rules.subject import Subject


def one_doer(subject: Subject) -> Iterator[Finding]:
    """At most one of skill, subplan and subgoal."""
    for place, task in enumerate(subject.plan.tasks):
        given = [name for name in ("skill", "subplan", "subgoal") if getattr(task, name) is not None]
        if len(given) > 1:
            message = f"a task has at most one of skill, subplan and subgoal; this one has {' and '.join(given)}"
            yield Finding("bad_value", ("tasks", place, given[1]), message, hint="keep one of them")


def conditions(subject: Subject) -> Iterator[Finding]:
    """`type: condition` has a verification, and nobody who does it."""
    for place, task in enumerate(subject.plan.tasks):
        if task.type != "condition":
            continue
        if (doer := _doer_named(task)) is not None:
            message = f"a task of type condition is done by nobody; this one names a {doer}"
            hint = f"remove `{doer}`, or the type"
            yield Finding("bad_value", ("tasks", place, doer), message, hint=hint)
        if task.verification is None and not subject.lacks(place, "verification"):
            message = "a task of type condition has a `verification`; this one has none"
            yield Finding("missing_field", ("tasks", place, "verification"), message, hint="add what it decides by")


def fallbacks(subject: Subject) -> Iterator[Finding]:
    """A fallback is a value or a skill."""
    for place, task in enumerate(subject.plan.tasks):
        if task.fallback is not None and (message := _wrong_with(task.fallback)):
            hint = "write {value: …}, or {skill: NAME, parameters: …}"
            yield Finding("bad_value", ("tasks", place, "fallback"), message, hint=hint)


def defaults(subject: Subject) -> Iterator[Finding]:
    """The default of an input is of the input's type. A null default stands for none."""
    for name, declared in subject.plan.inputs.items():
        if declared.default is not None and not is_of_type(declared.default, declared):
            message = f"the default must be of type {types_of(declared)}; this is {kind_of(declared.default)}"
            yield Finding("bad_value", ("inputs", name, "default"), message)


def patterns(subject: Subject) -> Iterator[Finding]:
    """What stands between slashes in `when` is a regular expression."""
    when = subject.plan.when
    for place, text in enumerate([when] if isinstance(when, str) else when or []):
        if len(text) > 2 and text[0] == text[-1] == "/" and (reason := pattern_error(text[1:-1])):
            path = ("when",) if isinstance(when, str) else ("when", place)
            yield Finding("bad_value", path, f"this is no regular expression: {reason}")


def _doer_named(task: Task) -> str | None:
    names = ("skill", "worker", "agent", "subplan", "subgoal")
    return next((name for name in names if getattr(task, name) is not None), None)


def _wrong_with(fallback: Fallback) -> str:
    has_value = "value" in fallback.model_fields_set
    if has_value and fallback.skill is not None:
        return "a fallback is a value or a skill, not both"
    if not has_value and fallback.skill is None:
        return "a fallback has a `value` or a `skill`; this one has neither"
    if has_value and fallback.parameters is not None:
        return "a fallback that is a value takes no parameters"
    return ""
