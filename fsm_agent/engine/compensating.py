"""Compensations: the calls that undo tasks. Permission, parameters, a visit as any other; nobody is asked again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsm_agent.core.events import Compensated, CompensationStarted, Event, TaskError, TaskInterrupted
from fsm_agent.core.names import names_of_template
from fsm_agent.core.rollback import Rollback
from fsm_agent.core.run import Run
from fsm_agent.engine.secrets import Secrets
from fsm_agent.engine.turns import TurnFailed, TurnTaken, TurnTaker
from fsm_agent.errors import ConditionError, SkillError
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.redaction import MASK
from fsm_agent.skills.registry import SkillRegistry


class _Lost(Exception):
    """A parameter of the task's call is not known any more: its record left a secret out."""


def compensation_at_turn(turns: TurnTaker, place: int) -> TurnTaken:
    """It is a task's turn to be undone: the events that record it, and the call to make, if it comes to that."""
    run = turns.run
    task = _compensation(run, place)
    visit = run.schedule.nodes[place].visits
    notes: list[Event] = []
    try:
        skill = turns.skill_of(task)
        ready = turns.ready(place, visit, skill, task, _parameters(turns, place, task), notes)
    except TurnFailed as failure:
        failed = Compensated(task=task.task.id, visit=visit, status="FAILED", error=failure.error)
        return TurnTaken([*notes, failed])
    attempt = _under_way(run).attempts + 1
    parameters = turns.secrets.out_of(ready.parameters)
    started = CompensationStarted(task=task.task.id, visit=visit, attempt=attempt, parameters=dict(parameters))
    return TurnTaken([*notes, started], ready)


def interruption(run: Run, registry: SkillRegistry) -> TaskInterrupted | None:
    """What is to be recorded of a compensation whose call was under way when the process died; None without one."""
    back = run.going_back
    if back is None or back.calling is None:
        return None
    task = _compensation(run, back.calling)
    try:
        again = registry.get(task.skill or "").spec.idempotent
    except SkillError:
        again = False
    visit = run.schedule.nodes[back.calling].visits
    return TaskInterrupted(task=task.task.id, visit=visit, attempt=back.attempts, then="again" if again else "ask")


def _compensation(run: Run, place: int) -> CompiledTask:
    task = run.task(place).compensation
    if task is None:
        raise AssertionError("only a task with a compensation is undone by one")
    return task


def _under_way(run: Run) -> Rollback:
    if run.going_back is None:
        raise AssertionError("a compensation is a part of a rollback")
    return run.going_back


def _parameters(turns: TurnTaker, place: int, task: CompiledTask) -> Mapping[str, Any]:
    """Its own, where it has some; else exactly those that the task was called with."""
    run, rollbacks = turns.run, turns.run.rollbacks
    own = task.task.compensation
    if own is not None and own.parameters is not None:
        late = rollbacks.late if rollbacks is not None else {}
        result = late[place] if place in late else run.schedule.nodes[place].data
        return turns.rendered(task, names_of_template(run, task.parameters, result=result))
    recorded = rollbacks.parameters.get(place) if rollbacks is not None else None
    return _as_called(turns, run.task(place), recorded)


def _as_called(turns: TurnTaker, task: CompiledTask, recorded: dict[str, Any] | None) -> Mapping[str, Any]:
    """The parameters of the task's call: as recorded, with the secrets, which a record leaves out, put in again.

    They are what the same parameters come to now. Inputs do not change, so that this holds for secret ones.
    """
    if recorded is not None and not _holds_mask(recorded):
        return recorded
    now: Any = None
    try:
        now = task.parameters.render(names_of_template(turns.run, task.parameters), turns.services.evaluators.mine)
    except ConditionError as error:
        if recorded is None:
            raise TurnFailed(TaskError("parameters", error.message, type(error).__name__)) from None
    if recorded is None:
        return dict(now)
    try:
        unmasked: dict[str, Any] = _unmasked(recorded, now, turns.secrets)
    except _Lost:
        message = (
            "the task's own parameters held a secret, and cannot be worked out again: "
            "give its compensation parameters of its own"
        )
        raise TurnFailed(TaskError("parameters", message)) from None
    return unmasked


def _holds_mask(value: Any) -> bool:
    if isinstance(value, str):
        return MASK in value
    if isinstance(value, Mapping):
        return any(_holds_mask(key) or _holds_mask(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_holds_mask, value))


def _unmasked(recorded: Any, now: Any, secrets: Secrets) -> Any:
    """What was recorded, with the parts that hold a mask taken from `now`, where that is recorded as the same."""
    if not _holds_mask(recorded):
        return recorded
    if now is not None and secrets.out_of(now) == recorded:
        return now
    if isinstance(recorded, dict) and isinstance(now, dict):
        return {key: _member(key, item, now, secrets) for key, item in recorded.items()}
    if isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        return [_unmasked(item, other, secrets) for item, other in zip(recorded, now, strict=True)]
    raise _Lost


def _member(key: str, item: Any, now: dict[str, Any], secrets: Secrets) -> Any:
    """One parameter: that it is masked may be due to its name."""
    if key in now and secrets.out_of({key: now[key]}) == {key: item}:
        return now[key]
    if MASK in key:
        raise _Lost
    return _unmasked(item, now.get(key), secrets)
