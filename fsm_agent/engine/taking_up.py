"""Going on with a run that another process drove: what it asked for, and what became of the calls it left.

No settled task runs again. A call that was under way when the process died is *interrupted*: what is idempotent is
called again, with the same key; about everything else a person decides. It counts whether the skill was so when the
call was made, and is so still.
"""

from __future__ import annotations

from typing import Literal, Protocol

from fsm_agent.core.calls import Call, interruption
from fsm_agent.core.events import Event, TaskInterrupted
from fsm_agent.core.judging import Outcome, judge
from fsm_agent.core.run import Run
from fsm_agent.engine.compensating import what_became_of
from fsm_agent.engine.policies import Policies
from fsm_agent.engine.turns import Ready, TurnTaker, again
from fsm_agent.engine.visits import Visit
from fsm_agent.plan.policy import after_interruption
from fsm_agent.skills.skill import Skill

Then = Literal["again", "repeat", "fallback", "ask"]


class TakerUp(Protocol):
    """The driver of the run, from now on."""

    run: Run
    turns: TurnTaker
    policies: Policies

    def record(self, event: Event) -> None:
        """Append an event to the run's journal."""

    def visit(self, ready: Ready) -> Visit:
        """A visit under way."""


def take_up_calls(driver: TakerUp, now: float) -> None:
    """Say of each call that was under way what becomes of it. `now` is the time of day, in seconds since 1970."""
    run = driver.run
    undoing = what_became_of(run, driver.turns.services.registry)
    if undoing is not None:
        driver.record(undoing)
    for place in sorted(run.running):
        call = run.calls[place]
        if run.schedule.nodes[place].status != "RUNNING":
            _lost(driver, place, call)
        elif call.calling:
            _interrupt(driver, place, call)
        else:
            _wait_again(driver, place, call, now)


def _lost(driver: TakerUp, place: int, call: Call) -> None:
    """The call counts as failed: a jump has reset its task meanwhile, or the run is ending."""
    error = interruption(call.attempts)
    for event in judge(driver.run, Outcome(place, call.visit, call.attempts, call.retried, error=error)):
        driver.record(event)


def _interrupt(driver: TakerUp, place: int, call: Call) -> None:
    run = driver.run
    ready = driver.turns.recall(place)
    then: Then = "ask" if ready is None else _what_follows(driver, place, call, ready)
    if run.is_ending and (place != run.cleaning or then == "ask"):
        _lost(driver, place, call)
        return
    task = run.compiled.graph.ids[place]
    driver.record(
        TaskInterrupted(task=task, visit=call.visit, attempt=call.attempts, then="again" if then == "repeat" else then)
    )
    if ready is None or then == "ask":
        return
    if then in ("again", "repeat"):
        driver.record(again(run, place, idempotent=True, same=then == "repeat"))
        driver.visit(ready).go_on()
    else:
        driver.visit(ready).wait(0.0)


def _what_follows(driver: TakerUp, place: int, call: Call, ready: Ready) -> Then:
    if not call.idempotent:
        return "ask"
    if not call.fallback:
        policy = driver.policies.of(driver.run.task(place), ready.skill)
        return after_interruption(policy, call.attempts, call.interruptions)
    stand_in = _fallback_skill(driver, place, ready)
    return "again" if stand_in is not None and stand_in.spec.idempotent else "ask"


def _fallback_skill(driver: TakerUp, place: int, ready: Ready) -> Skill | None:
    fallback = driver.policies.of(driver.run.task(place), ready.skill).fallback
    if fallback is None or fallback.skill is None:
        return None
    return driver.turns.services.registry.get(fallback.skill)


def _wait_again(driver: TakerUp, place: int, call: Call, now: float) -> None:
    """Nothing was under way: the visit goes on with its next call, at its time."""
    ready = driver.turns.recall(place)
    if ready is not None:
        driver.visit(ready).wait(max(0.0, call.due - now))
    elif driver.run.is_ending:
        _lost(driver, place, call)
    else:
        task = driver.run.compiled.graph.ids[place]
        driver.record(TaskInterrupted(task=task, visit=call.visit, attempt=call.attempts, then="ask"))
