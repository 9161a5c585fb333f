"""Drives one run: append an event, let the run evolve, decide, perform, wait for what happens next.

The driver is the only place where a run's events are made. All of it happens in one event loop; what comes from
elsewhere (a skill, a timer, a person, a thread) goes through the inbox or is recorded on that loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from fsm_agent.clock import Clock, RandomSource, Timer
from fsm_agent.core import events as ev
from fsm_agent.core.commands import (
    AskAboutFailure,
    AskAboutPlan,
    Begin,
    End,
    Fire,
    Judge,
    MakePlan,
    Rest,
    StopCalls,
    Wait,
)
from fsm_agent.core.decide import decide
from fsm_agent.core.judging import Outcome, judge
from fsm_agent.core.machine import due
from fsm_agent.core.result import verdict_of
from fsm_agent.core.run import Run
from fsm_agent.engine.acceptance import Acceptor
from fsm_agent.engine.approving import Approving
from fsm_agent.engine.contexts import context_for
from fsm_agent.engine.judgement import judge_criteria
from fsm_agent.engine.planning import Planning
from fsm_agent.engine.turns import Ready, TurnTaker, filter_event
from fsm_agent.engine.visits import CANCELLED, Visit
from fsm_agent.journal.protocol import Journal
from fsm_agent.plan.expressions import Evaluator
from fsm_agent.plan.policy import policy_of
from fsm_agent.redaction import Redactor
from fsm_agent.skills.context import SkillContext
from fsm_agent.skills.filters import FilterNote
from fsm_agent.skills.registry import SkillRegistry
from fsm_agent.skills.skill import Skill

Listener = Callable[[ev.Event], object]

BREATH = 0.005
"""How long a run may go on without letting the event loop do other work, in seconds."""

_log = logging.getLogger("fsm_agent.engine")


class Driver:
    """One run under way."""

    def __init__(
        self, run: Run, registry: SkillRegistry, journal: Journal, planning: Planning, *, clock: Clock,
        random: RandomSource, listeners: Iterable[Listener] = (),
        approver: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self.run = run
        self.clock = clock
        self.random = random
        self.journal = journal
        self.cancel_grace = 0.1
        self._registry = registry
        self._redactor = Redactor()
        self._listeners = list(listeners)
        self._evaluator = Evaluator()
        self._planning = planning
        self._turns = TurnTaker(run, registry, self._evaluator, clock, self.redact_value, approver is not None)
        self._acceptor = Acceptor(run, registry, self._evaluator, self._note)
        self._approving = Approving(self, approver)
        self._visits: dict[int, Visit] = {}
        self._launches: list[Visit] = []
        self._inbox: deque[tuple[float, int, Outcome]] = deque()
        self._told: deque[ev.Event] = deque()
        self._telling = False
        self._waiter: asyncio.Future[None] | None = None
        self._deadline: Timer | None = None
        self._cleanup: Timer | None = None
        self._time_left: float | None = None
        self._armed_at = 0.0
        self._breath = 0.0

    # Driving --------------------------------------------------------------------------------------------------------

    async def drive(self) -> None:
        """Go on until the run is over, or paused with nothing to do before someone resumes it."""
        while await self.step():
            pass

    async def step(self) -> bool:
        """One command; waits where there is none. False once there is nothing more to do."""
        if self._inbox:
            self._take_in()
        command = decide(self.run)
        kind = type(command)
        if kind is Fire:
            self._fire(command.trigger)  # type: ignore[union-attr] # its kind was just looked at
        elif kind is Begin:
            self._begin(command.place)  # type: ignore[union-attr] # its kind was just looked at
        elif kind is Wait or (kind is MakePlan and self._planning.under_way):
            await self._wait()
        elif kind is End or kind is Rest:
            return await self._rest()
        else:
            self._perform(command)
        if self._launches:
            await self._launch()
        return True

    def _perform(self, command: object) -> None:
        """The rarer commands."""
        match command:
            case Judge():
                self.record(judge_criteria(self.run, self._evaluator))
            case StopCalls():
                self._stop_calls()
            case MakePlan():
                self._planning.go_on(self)
            case AskAboutPlan():
                self._approving.ask_about_plan()
            case AskAboutFailure(place):
                self._approving.ask_about_failure(place)

    def fire_resume(self) -> None:
        """Leave `paused`."""
        self._fire("resume")

    def decide(
        self,
        which: str | None,
        verdict: ev.Verdict,
        *,
        by: str | None = None,
        why: str | None = None,
        result: Any = None,
    ) -> None:
        """Someone decides about what waits. Raises DecisionRefused, NotJson."""
        self._approving.decide(which, verdict, by=by, why=why, result=result)

    async def _wait(self) -> None:
        """Until something happens."""
        if self._inbox:
            return
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def _rest(self) -> bool:
        self._disarm()
        if self.journal.durable:
            await self.journal.commit()
        return False

    async def breathe(self) -> None:
        """Let others have the event loop once in a while, though this run has more to do."""
        now = self.clock.monotonic()
        if now - self._breath > BREATH:
            await asyncio.sleep(0)
            self._breath = now

    def wake(self) -> None:
        """Something happened."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # Recording ------------------------------------------------------------------------------------------------------

    def record(self, event: ev.Event) -> None:
        """An event becomes part of the run: the state evolves, the journal has it, listeners are told."""
        run = self.run
        stamped = msgspec.structs.replace(event, seq=run.seq + 1, at=self.clock.now(), run_id=run.run_id)
        run.evolve(stamped)
        self.journal.append(stamped)
        if self._listeners:
            self._tell(stamped)

    def tell_from_outside(self, event: ev.Event) -> None:
        """Record what someone outside of the driver's own steps did, and go on."""
        self.record(event)
        self.wake()

    def _tell(self, event: ev.Event) -> None:
        """Tell the listeners, each event in its turn: a listener's own doings come after."""
        self._told.append(event)
        if self._telling:
            return
        self._telling = True
        try:
            while self._told:
                told = self._told.popleft()
                for listener in self._listeners:
                    try:
                        listener(told)
                    except Exception:  # noqa: BLE001 - a listener's fault is not the run's
                        name = getattr(listener, "__qualname__", type(listener).__qualname__)
                        _log.exception("listener %s failed on event %s", name, told.type)
        finally:
            self._telling = False

    def add_listener(self, listener: Listener) -> None:
        """Tell one more."""
        self._listeners.append(listener)

    # Performing -----------------------------------------------------------------------------------------------------

    def _fire(self, trigger: ev.Trigger) -> None:
        row = due(self.run, trigger)
        self.record(ev.PhaseChanged(trigger=trigger, guard=row.guard, source=row.source, dest=row.dest))
        if trigger != "settled" and row.dest != "executing":
            self._enter(row.dest)
        elif row.source != "evaluating":
            self._arm()

    def _enter(self, phase: ev.Phase) -> None:
        if phase == "planning":
            self._arm()
        elif phase == "paused":
            self._disarm()
        elif self.run.final:
            self._disarm()
            self._approving.close()
            self._planning.close()
            verdict = verdict_of(self.run)
            self.record(ev.RunFinished(phase=phase, outcome=verdict.outcome, reason=verdict.reason))

    def _begin(self, place: int) -> None:
        taken = self._turns.take(place)
        for event in taken.events:
            self.record(event)
            if isinstance(event, ev.ApprovalAsked):
                self._approving.asked(event)
        if taken.ready is not None:
            self._launches.append(self._visit(taken.ready))
            if self.run.cleaning == place and self._cleanup is None:
                limit = self.run.compiled.plan.limits.cleanup_timeout
                self._cleanup = self.clock.call_later(limit, lambda: self._cleanup_over(limit))

    def _visit(self, ready: Ready) -> Visit:
        run = self.run
        task = run.task(ready.place)
        policy = policy_of(task.task, ready.skill.spec)
        view = run.context.view_of(ready.place)
        visit = Visit(self, self._acceptor, ready, task, policy, view)
        self._visits[ready.place] = visit
        return visit

    async def _launch(self) -> None:
        """Call what was started, once its start is durable."""
        if self.journal.durable:
            await self.journal.commit()
        launches, self._launches = self._launches, []
        for visit in launches:
            visit.start()
        await self.breathe()

    def _take_in(self) -> None:
        """Judge what has finished, in the order of finishing; ties by place in the plan."""
        arrived = list(self._inbox)
        self._inbox.clear()
        if len(arrived) > 1:
            arrived.sort(key=lambda item: item[:2])
        for _, place, outcome in arrived:
            del self._visits[place]
            for event in judge(self.run, outcome):
                self.record(event)

    def _stop_calls(self) -> None:
        launches, self._launches = self._launches, []
        for visit in launches:  # started on record, never called
            error = ev.TaskError(CANCELLED, "cancelled before it was called")
            self.finished(Outcome(visit.place, visit.number, error=error))
        for visit in list(self._visits.values()):
            visit.cancel()

    # What visits need -----------------------------------------------------------------------------------------------

    def finished(self, outcome: Outcome) -> None:
        """A visit is over."""
        self._inbox.append((self.clock.monotonic(), outcome.place, outcome))
        self.wake()

    def context_for(self, visit: Visit, skill: Skill) -> SkillContext:
        """A context for one attempt."""
        return context_for(self, visit, skill)

    def redact(self, text: str) -> str:
        """The text without anything secret."""
        return self._redactor.text(text)

    def redact_value(self, value: Any) -> Any:
        """Plain data without anything secret."""
        return self._redactor.value(value)

    def keep_secret(self, secrets: dict[str, Any]) -> None:
        """Inputs that no record may hold."""
        self.run.secrets = secrets
        if secrets:
            self._redactor = Redactor(secrets.values())

    def _note(self, visit: Visit, note: FilterNote) -> None:
        self.record(filter_event(visit.id, visit.number, note))

    # Time -----------------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """The deadline's clock runs, but in *paused*."""
        if self._deadline is not None:
            return
        limit = self._limit()
        if limit is None:
            return
        if self._time_left is None:
            self._time_left = limit
        self._armed_at = self.clock.monotonic()
        self._deadline = self.clock.call_later(max(0.0, self._time_left), lambda: self._out_of_time(limit))

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self._time_left = (self._time_left or 0.0) - (self.clock.monotonic() - self._armed_at)
        if self.run.final and self._cleanup is not None:
            self._cleanup.cancel()

    def _limit(self) -> float | None:
        started = self.run.started
        if started is not None and started.deadline is not None:
            return started.deadline
        return self.run.compiled.plan.limits.deadline if self.run.plan_valid else None

    def _out_of_time(self, limit: float) -> None:
        if not self.run.final:
            self.tell_from_outside(ev.LimitPassed(setting="limits.deadline", count=limit))

    def _cleanup_over(self, limit: float) -> None:
        if not self.run.final:
            self.tell_from_outside(ev.LimitPassed(setting="limits.cleanup_timeout", count=limit))

    # The end --------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Nothing of this run goes on: what is under way is told to stop, and its outcome is not waited for."""
        self._disarm()
        if self._cleanup is not None:
            self._cleanup.cancel()
        self._approving.close()
        self._planning.close()
        self._stop_calls()
