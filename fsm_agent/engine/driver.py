"""Drives one run: append an event, let the run evolve, decide, perform, wait for what happens next.

The driver is the only place where a run's events are made, always in one event loop. It is a reactor: whatever brings
news (a call that ended, a timer, a person) takes the run as far as it goes, so that no task of its own need be woken.
For a stream it is the consumer who takes it on, command by command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextvars import Context, copy_context
from typing import Any

import msgspec

from fsm_agent.core import events as ev
from fsm_agent.core import rollback
from fsm_agent.core.commands import (
    AskAboutCompensation,
    AskAboutFailure,
    AskAboutPlan,
    Begin,
    BeginRollback,
    Command,
    Compensate,
    FinishRollback,
    Fire,
    Judge,
    MakePlan,
    Rest,
    StopCalls,
    Wait,
)
from fsm_agent.core.decide import decide
from fsm_agent.core.judging import Outcome, judge
from fsm_agent.core.result import verdict_of
from fsm_agent.core.run import Run
from fsm_agent.engine.acceptance import Acceptor
from fsm_agent.engine.approving import Approver, Approving
from fsm_agent.engine.compensating import compensation_at_turn
from fsm_agent.engine.contexts import context_for
from fsm_agent.engine.judgement import judge_criteria
from fsm_agent.engine.listening import Listener, Listeners
from fsm_agent.engine.planning import Planning
from fsm_agent.engine.secrets import Secrets
from fsm_agent.engine.services import Services
from fsm_agent.engine.timekeeping import Timekeeper
from fsm_agent.engine.turns import Ready, TurnTaker
from fsm_agent.engine.visits import Visit
from fsm_agent.journal.protocol import Journal
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.skills.context import SkillContext, TaskInfo
from fsm_agent.skills.skill import Skill

BREATH = 0.005
"""How long a run may go on before the event loop gets to do other work, in seconds."""

_ROUND = ("executing", "evaluating")
"""The phases between which a run goes to and fro."""

_LOOKS = 16
"""After so many commands the clock is looked at."""


class Driver:
    """One run under way."""

    __slots__ = (
        "_acceptor", "_append", "_approver", "_approving", "_busy", "_evaluators", "_fault", "_inbox", "_now",
        "_planning", "_policies", "_reacting", "_task_infos", "_times", "_turns", "_visits", "_waiter",
        "cancel_grace", "clock", "journal", "listeners", "loop", "random", "run", "secrets", "variables",
    )  # fmt: skip

    def __init__(
        self,
        run: Run,
        services: Services,
        journal: Journal,
        planning: Planning,
        *,
        listeners: Iterable[Listener] = (),
        approver: Approver | None = None,
    ) -> None:
        self.run = run
        self.clock = services.clock
        self.random = services.random
        self.journal = journal
        self._append = journal.append
        self.listeners = Listeners(listeners)
        self.cancel_grace = 0.1
        self.secrets = Secrets()
        self._approver = approver
        self._approving: Approving | None = None
        self._evaluators = services.evaluators
        self._planning = planning
        self._turns = TurnTaker(run, services, self.secrets, has_approver=approver is not None)
        self._acceptor = Acceptor(run, services)
        self._times = Timekeeper(run, self.clock)
        self._policies = services.policies
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop that the run is driven in."""
        self.variables: Context | None = None
        """The context variables of who drives it: each call gets a copy, whichever call it comes after."""
        self._task_infos: dict[str, TaskInfo] | None = None
        self._visits: dict[int, Visit] = {}
        self._inbox: list[tuple[float, int, Outcome]] = []
        self._waiter: asyncio.Future[None] | None = None
        self._reacting = False
        self._busy = False
        self._now = 0.0
        """The time of day in the present reaction: what happens in one has one time."""
        self._fault: BaseException | None = None

    # Driving --------------------------------------------------------------------------------------------------------

    async def drive(self) -> None:
        """Go on until the run is over, or paused with nothing to do before someone resumes it."""
        self._reacting = True
        self.loop, self.variables = asyncio.get_running_loop(), copy_context()
        try:
            self._go_on()
            while not self._resting():
                await self._news()
        finally:
            self._reacting = False

    async def step(self) -> bool:
        """One command; where there is none, wait for news. False once there is nothing more to do."""
        self.loop, self.variables = asyncio.get_running_loop(), copy_context()
        if self._turn():
            return True
        if self._resting():
            return False
        await self._news()
        return True

    def wake(self) -> None:
        """Something happened: go on, or let the consumer of the stream go on."""
        if self._reacting and not self._busy:
            self._go_on()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _go_on(self) -> None:
        """Command after command, until there is something to wait for; now and then the loop gets a breath."""
        self._busy = True
        self._now = self.clock.now()
        try:
            began = self.clock.monotonic()
            count = 0
            while self._turn():
                count += 1
                if count % _LOOKS == 0 and self.clock.monotonic() - began > BREATH:
                    asyncio.get_running_loop().call_soon(self.wake)
                    return
        except BaseException as fault:  # noqa: BLE001 - it is raised where the run is awaited
            self._fault = fault
        finally:
            self._busy = False
        if self.run.phase != "executing" or self._fault is not None:
            self._tell_waiter()

    def _tell_waiter(self) -> None:
        """The reactor has nothing more to do, or cannot go on: whoever awaits the run may go on."""
        if (self._fault is not None or self._resting()) and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _news(self) -> None:
        """Until something happens, or the reactor has nothing more to do."""
        if self._inbox and not self._reacting:
            return
        if self._fault is None:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._fault is not None:
            raise self._fault

    def _resting(self) -> bool:
        """Whether the run is over, or waits for somebody to resume it."""
        run = self.run
        return run.final or (run.phase == "paused" and not self._inbox and type(decide(run)) is Rest)

    def _turn(self) -> bool:
        """One command. False where there is none to be performed now."""
        if self._inbox:
            self._take_in()
        command = decide(self.run)
        kind = type(command)
        if kind is Fire:
            self._fire(command.trigger)  # type: ignore[union-attr] # its kind was just looked at
        elif kind is Begin:
            self._begin(command.place)  # type: ignore[union-attr] # its kind was just looked at
        elif kind is Wait:
            return False
        else:
            return self._perform(command)
        return True

    def _perform(self, command: Command) -> bool:
        """The rarer commands."""
        match command:
            case Judge():
                self.record(judge_criteria(self.run, self._evaluators.mine, self.secrets))
            case StopCalls():
                return self._stop_calls()
            case MakePlan():
                return self._planning.go_on(self)
            case AskAboutPlan():
                self.approving.ask_about_plan()
            case AskAboutFailure(place):
                self.approving.ask_about_failure(place)
            case BeginRollback():
                self.record(rollback.begin(self.run))
            case Compensate(place):
                self._compensate(place)
            case AskAboutCompensation(place):
                self.approving.ask_about_compensation(place)
            case FinishRollback():
                self.record(rollback.finish(self.run))
            case _:
                return False
        return True

    # Recording ------------------------------------------------------------------------------------------------------

    def record(self, event: ev.Event) -> None:
        """An event becomes part of the run: the state evolves, the journal has it, listeners are told."""
        run = self.run
        at = self._now if self._busy else self.clock.now()
        stamped = msgspec.structs.replace(event, seq=run.seq + 1, at=at, run_id=run.run_id)
        run.evolve(stamped)
        self._append(stamped)
        if self.listeners.any:
            self.listeners.tell(stamped)

    def tell(self, event: ev.Event) -> None:
        """Record what came from outside of the driver's own commands, and go on."""
        self.record(event)
        self.wake()

    def tell_later(self, event: ev.Event) -> None:
        """The same for timers: what goes wrong there would be lost."""
        try:
            self.tell(event)
        except BaseException as fault:  # noqa: BLE001 - see above
            self.failed(fault)

    # Performing -----------------------------------------------------------------------------------------------------

    def _fire(self, trigger: ev.Trigger) -> None:
        run = self.run
        event = run.fire(trigger, run.seq + 1, self._now if self._busy else self.clock.now())
        self._append(event)
        if self.listeners.any:
            self.listeners.tell(event)
        if event.dest not in _ROUND:
            self._enter(event.dest)
        elif event.source not in _ROUND:
            self._times.arm(self.tell_later)

    def _enter(self, phase: ev.Phase) -> None:
        if phase == "planning":
            self._times.arm(self.tell_later)
        elif phase == "paused":
            self._times.disarm()
        else:
            self._finish()

    def _finish(self) -> None:
        self._close_all()
        verdict = verdict_of(self.run)
        self.record(ev.RunFinished(phase=self.run.phase, outcome=verdict.outcome, reason=verdict.reason))

    def _begin(self, place: int) -> None:
        taken = self._turns.take(place)
        for event in taken.events:
            self.record(event)
            if isinstance(event, ev.ApprovalAsked):
                self.approving.asked(event)
        if taken.ready is not None:
            if self.run.cleaning == place:
                self._times.begin_cleanup(self.tell_later)
            self._visit(taken.ready, self.run.task(place)).start()

    def _compensate(self, place: int) -> None:
        taken = compensation_at_turn(self._turns, place)
        for event in taken.events:
            self.record(event)
        back, task = self.run.going_back, self.run.task(place).compensation
        if taken.ready is not None and back is not None and task is not None:
            visit = self._visit(taken.ready, task)
            visit.attempts = back.attempts - 1  # those that were interrupted count
            visit.start()

    def _visit(self, ready: Ready, task: CompiledTask) -> Visit:
        place = ready.place
        policy = self._policies.of(task, ready.skill)
        visit = Visit(self, self._acceptor, ready, task, policy, self.run.context.view_of(place))
        self._visits[place] = visit
        return visit

    def _take_in(self) -> None:
        """Judge what has finished, in the order of finishing; ties by place in the plan."""
        arrived, self._inbox = self._inbox, []
        if len(arrived) > 1:
            arrived.sort(key=lambda item: item[:2])
        for _, place, outcome in arrived:
            del self._visits[place]
            for event in judge(self.run, outcome):
                self.record(event)

    def _stop_calls(self) -> bool:
        """Cancel what is under way. True if something has ended by that already."""
        for visit in list(self._visits.values()):
            visit.cancel()
        return bool(self._inbox)

    # What visits need -----------------------------------------------------------------------------------------------

    def finished(self, outcome: Outcome) -> None:
        """A visit is over."""
        self._inbox.append((self.clock.monotonic(), outcome.place, outcome))
        if len(self._visits) == 1:
            self.wake()
        elif len(self._inbox) == 1 and self.loop is not None:
            self.loop.call_soon(self.wake)  # others may finish at the same moment: they are judged by place

    @property
    def faulty(self) -> bool:
        """Whether something is wrong in the engine itself: nothing more can be made of the run."""
        return self._fault is not None

    def failed(self, fault: BaseException) -> None:
        """Something is wrong in the engine itself: the run cannot go on."""
        self._fault = fault
        self._tell_waiter()

    def task_info(self, task: CompiledTask) -> TaskInfo:
        """What a skill may know of its task."""
        words = task.task
        if self._task_infos is None:
            self._task_infos = {}
        known = self._task_infos.get(words.id)
        if known is None:
            known = TaskInfo(words.id, words.name, words.description, words.expected_output)
            self._task_infos[words.id] = known
        return known

    def context_for(self, visit: Visit, skill: Skill) -> SkillContext:
        """A context for one attempt."""
        return context_for(self, visit, skill)

    # What people do -------------------------------------------------------------------------------------------------

    @property
    def approving(self) -> Approving:
        """Who asks people; made when there is something to ask."""
        if self._approving is None:
            self._approving = Approving(self, self._approver)
        return self._approving

    def fire_resume(self) -> None:
        """Leave `paused`. What expired while nobody drove the run has expired."""
        if self.run.approvals.open:
            self.approving.catch_up()
        self._fire("resume")

    def decide(
        self, which: str | None, verdict: ev.Verdict, *, by: str | None, why: str | None, result: Any = None
    ) -> None:
        """Someone decides about what waits. Raises DecisionRefused, NotJson."""
        self.approving.decide(which, verdict, by=by, why=why, result=result)

    def close(self) -> None:
        """Nothing of this run goes on: what is under way is told to stop, and its outcome is not waited for."""
        self._reacting = False
        self._close_all()
        for visit in list(self._visits.values()):
            visit.drop()

    def _close_all(self) -> None:
        self._times.close()
        self._planning.close()
        if self._approving is not None:
            self._approving.close()
            self._approving = None  # the two hold each other: nothing is left for the garbage collector
