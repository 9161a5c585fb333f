"""Where a rollback leads, and words about rollbacks that have no effect."""

from __future__ import annotations

from collections.abc import Iterator

from fsm_agent.plan.findings import Finding, shown, warning
from fsm_agent.plan.rules.subject import Subject
from fsm_agent.plan.ways_back import recovers_by_rollback, way_back, ways_back, what_is


def rollback_targets(subject: Subject) -> Iterator[Finding]:
    """`rollback_to` names a task or a layer, not both, from which the failed task can be reached: it runs again."""
    plan, graph = subject.plan, subject.graph
    for place, task in enumerate(plan.tasks):
        if (to := task.rollback_to) is None:
            continue
        path = ("tasks", place, "rollback_to")
        what = what_is(plan, graph, to)
        if what is None:
            names = {**graph.index, **{other.layer: 0 for other in plan.tasks if other.layer is not None}}
            hint = subject.suggestions.hint(to, names, "task or layer", otherwise="name a task or a layer of this plan")
            yield Finding("unknown_target", path, f"there is no task and no layer {shown(to)}", hint=hint)
        elif what == "both":
            message = f"{shown(to)} is both a task and a layer"
            yield Finding("bad_rollback", path, message, hint="give one of the two another name")
        elif not subject.left_out and place not in way_back(plan, graph, place).members:
            message = f"nothing leads from {what} {shown(to)} to this task: it would not run again after the rollback"
            hint = "go back to a task or a layer before this one, or leave it out to go back to the plan's start"
            yield Finding("bad_rollback", path, message, hint=hint)


def nothing_to_undo(subject: Subject) -> Iterator[Finding]:
    """A decision calls nothing, so that there is nothing to undo; and nobody would be asked to approve its undoing."""
    for place, (task, doer) in enumerate(zip(subject.plan.tasks, subject.compilation.doers, strict=True)):
        if task.compensation is not None and doer.is_decision:
            message = "a decision does nothing, so that there is nothing to undo"
            yield Finding("bad_value", ("tasks", place, "compensation"), message, hint="remove it, or name a skill")


def rollbacks_without_effect(subject: Subject) -> Iterator[Finding]:
    """A `rollback_to` of a task that never rolls back, and a `compensation` of a task that no rollback reaches."""
    plan = subject.plan
    if ("recovery",) in subject.left_out:
        return
    ways = {way.to: way for _, way in ways_back(plan, subject.graph)}
    reached = {place for way in ways.values() for place in way.members}
    for place, task in enumerate(plan.tasks):
        if subject.lacks(place, "recovery"):
            continue
        if task.rollback_to is not None and not recovers_by_rollback(task, plan):
            message = "this task never rolls back: its recovery is another one"
            yield warning("no_rollback", ("tasks", place, "rollback_to"), message, hint="give it `recovery: rollback`")
        if task.compensation is not None and place not in reached:
            message = "no rollback can lead back over this task: its compensation is never called"
            hint = "give a task after it `recovery: rollback`, or leave the compensation out"
            yield warning("no_rollback", ("tasks", place, "compensation"), message, hint=hint)
