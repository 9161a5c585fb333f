"""What the language of plans has and this engine does not have yet: refused by name, never passed over."""

from __future__ import annotations

from collections.abc import Iterator

from fsm_agent.plan.findings import Finding, Path
from fsm_agent.plan.model import Plan, Task
from fsm_agent.plan.rules.subject import Subject

_TASK_KEYS = ("subplan", "subgoal", "agent", "foreach", "as", "tolerate", "repeat_while")
_TASK_VALUES = (("isolation", "process"), ("recovery", "replan"))


def not_supported(subject: Subject) -> Iterator[Finding]:
    """Keys, and values of keys, that a later version brings."""
    found = list(_of_plan(subject.plan))
    for place, task in enumerate(subject.plan.tasks):
        given = task.model_fields_set
        if not given.isdisjoint(_WORTH_A_LOOK):
            found.extend((("tasks", place, *path), feature) for path, feature in _of_task(task))
    for path, feature in found:
        if feature not in subject.supported:
            key = next(step for step in reversed(path) if isinstance(step, str))
            what = f"`{key}`" if key == feature else f"`{key}: {feature}`"
            yield Finding("not_supported", path, f"{what} is not supported yet", hint="leave it out")


_WORTH_A_LOOK = frozenset({*_TASK_KEYS, "as_", *(key for key, _ in _TASK_VALUES)})


def _of_plan(plan: Plan) -> Iterator[tuple[Path, str]]:
    if plan.recovery == "replan":
        yield ("recovery",), plan.recovery
    for name, worker in plan.workers.items():
        if worker.capacity is not None:
            yield ("workers", name, "capacity"), "capacity"


def _of_task(task: Task) -> Iterator[tuple[Path, str]]:
    for key in _TASK_KEYS:
        if getattr(task, "as_" if key == "as" else key) is not None:
            yield (key,), key
    for key, value in _TASK_VALUES:
        if getattr(task, key) == value:
            yield (key,), value
