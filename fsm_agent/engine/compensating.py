"""Compensations: the calls that undo tasks. Permission, parameters, a visit as any other; nobody is asked again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsm_agent.core.approvals import digest_of
from fsm_agent.core.calls import Call, interruption
from fsm_agent.core.events import Compensated, CompensationStarted, Event, TaskError, TaskInterrupted
from fsm_agent.core.judging import Outcome, judge_compensation
from fsm_agent.core.rollback import Rollback
from fsm_agent.core.run import Run
from fsm_agent.engine.secrets import Secrets
from fsm_agent.engine.turns import TurnFailed, TurnTaken, TurnTaker
from fsm_agent.errors import SkillError
from fsm_agent.plan.catalog import SkillPolicy
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.plan.policy import after_interruption, effective_policy
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
        skill = turns.permitted(task)
        parameters = _parameters(turns, place, task)
        if skill.before:
            parameters = turns.filtered(skill, task, visit, parameters, notes)
        ready = turns.ready(place, visit, skill, parameters)
    except TurnFailed as failure:
        failed = Compensated(task=task.task.id, visit=visit, status="FAILED", error=failure.error)
        return TurnTaken([*notes, failed])
    ready.undoes = task
    attempt = _under_way(run).attempts + 1
    shown = dict(turns.secrets.out_of(ready.parameters))
    idempotent = skill.spec.idempotent
    started = CompensationStarted(
        task=task.task.id, visit=visit, attempt=attempt, parameters=shown, idempotent=idempotent
    )
    return TurnTaken([*notes, started], ready)


def what_became_of(run: Run, registry: SkillRegistry) -> Event | None:
    """What is to be recorded of a compensation whose process has died; None if none was under way.

    One whose call was under way is called again if it is idempotent, and one that waited to be tried again is, too.
    About all others, and where its fallback had its turn, a person decides. In a run that is ending none is called.
    """
    back = run.going_back
    if back is None or back.calling is None or back.call is None:
        return None
    call, task = back.call, _compensation(run, back.calling)
    if run.is_ending:
        error = interruption(call.attempts)
        return judge_compensation(run, Outcome(back.calling, call.visit, call.attempts, call.retried, error=error))
    again = not call.fallback and (not call.calling or _may_be_called_again(registry, task, call))
    return TaskInterrupted(task=task.task.id, visit=call.visit, attempt=call.attempts, then="again" if again else "ask")


def _may_be_called_again(registry: SkillRegistry, task: CompiledTask, call: Call) -> bool:
    try:
        spec = registry.get(task.skill or "").spec
    except SkillError:
        return False
    policy = effective_policy(SkillPolicy(), spec.policy, idempotent=spec.idempotent)
    return call.idempotent and after_interruption(policy, call.attempts, call.interruptions) in ("again", "repeat")


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
    run, rollbacks, own = turns.run, turns.run.rollbacks, task.task.compensation
    if rollbacks is not None and own is not None and own.parameters is not None:
        late = rollbacks.late
        return turns.render(task, result=late[place] if place in late else run.schedule.nodes[place].data)
    call = rollbacks.calls.get(place) if rollbacks is not None else None
    if call is None or call.parameters is None:
        return turns.render(run.task(place))
    return _as_called(turns, run.task(place), call.parameters, call.seal)


def _as_called(turns: TurnTaker, task: CompiledTask, recorded: dict[str, Any], seal: str) -> Mapping[str, Any]:
    """The parameters of the task's call: as recorded, with the secrets, which a record leaves out, put in again.

    They are what the same parts come to now: inputs do not change in a run. The seal tells whether that is right.
    """
    if not seal or digest_of(recorded) == seal:
        return recorded
    try:
        now: Any = turns.render(task)
    except TurnFailed:
        now = None
    try:
        found: dict[str, Any] | None = _unmasked(recorded, now, turns.secrets)
    except _Lost:
        found = None
    if found is None or turns.secrets.digest(found) != seal:
        message = (
            "the task's own parameters held a secret, and cannot be worked out again: "
            "give its compensation parameters of its own"
        )
        raise TurnFailed(TaskError("parameters", message))
    return found


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
