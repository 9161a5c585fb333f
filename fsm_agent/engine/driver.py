"""Drives one run: append an event, let the run evolve, decide, perform, wait for what happens next.

The driver is the only place where a run's events are made, always in one event loop. It is a reactor: whatever brings
news (a call that ended, a timer, a person) takes the run as far as it goes, so that no task of its own need be woken.
For a stream it is the consumer who takes it on, command by command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any

import msgspec

from fsm_agent.core import events as ev
from fsm_agent.core import rollback
from fsm_agent.core.commands import (
    AskAboutCompensation,
    AskAboutPlan,
    AskAboutTask,
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
from fsm_agent.engine.ledger import Ledger
from fsm_agent.engine.listening import Listener, Listeners
from fsm_agent.engine.planning import Planning
from fsm_agent.engine.secrets import Secrets
from fsm_agent.engine.services import Services
from fsm_agent.engine.taking_up import take_up_calls
from fsm_agent.engine.timekeeping import Timekeeper
from fsm_agent.engine.turns import Ready, TurnTaker
from fsm_agent.engine.visits import Visit
from fsm_agent.journal.protocol import Journal
from fsm_agent.journal.writer import StoredJournal
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
        "_acceptor", "_append", "_approver", "_approving", "_busy", "_evaluators", "_fault", "_inbox", "_ledger",
        "_now", "_planning", "_reacting", "_steps", "_task_infos", "_times", "_visits", "_waiter",
        "cancel_grace", "clock", "journal", "listeners", "loop", "policies", "random", "run", "secrets", "turns",
        "variables",
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
        secrets: Secrets | None = None,
    ) -> None:
        self.run = run
        self.clock = services.clock
        self.random = services.random
        self.journal = journal
        self._append = journal.append
        self.listeners = Listeners(listeners)
        self.cancel_grace = 0.1
        self.secrets = secrets or Secrets()
        self._approver = approver
        self._approving: Approving | None = None
        self._evaluators = services.evaluators
        self._planning = planning
        self.turns = TurnTaker(run, services, self.secrets, has_approver=approver is not None)
        self._acceptor = Acceptor(run, services)
        self._times = Timekeeper(run, self.clock)
        self.policies = services.policies
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
        self._ledger = Ledger(self, journal, services.executor) if isinstance(journal, StoredJournal) else None
        self._steps: tuple[Callable[[], None], ...] = ()
        """What is to be done once all that is recorded is durable."""

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
        if not self._is_writing:
            seq = self.run.seq
            self._turn()
            is_durable = self._settle()
            if self.run.seq != seq:
                return True
            if is_durable and self._resting():
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
        if self._is_writing:
            return
        self._busy = True
        self._now = self.clock.now()
        try:
            began = self.clock.monotonic()
            count = 0
            while self._turn() or self._has_settled_to_news():
                count += 1
                if count % _LOOKS == 0 and self.clock.monotonic() - began > BREATH:
                    self._settle()
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
        if self._inbox and not (self._reacting or self._is_writing):
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
        if self._is_writing:
            return False
        return run.final or (run.phase == "paused" and not self._inbox and type(decide(run)) is Rest)

    def _turn(self) -> bool:
        """One command. False where there is none to be performed now."""
        if self._fault is not None:
            return False
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
            case AskAboutTask(place):
                self.approving.ask_about_task(place)
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
        if self._ledger is not None:
            if not self._busy:
                self._ledger.later()
        elif self.listeners.any:
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

    # Durability -----------------------------------------------------------------------------------------------------

    @property
    def _is_writing(self) -> bool:
        return self._ledger is not None and self._ledger.is_writing

    def _settle(self) -> bool:
        """Make durable what was recorded, and do what waited for that. False if it takes time.

        A plan that was given comes with the run's first commit: without it nobody could go on with the run.
        """
        run = self.run
        is_begun = run.plan_version or run.phase not in ("idle", "planning")
        if self._ledger is None or (self._planning.prepared is not None and not is_begun):
            return True
        while self._ledger.settle():
            if not self._steps:
                return True
            self._do_steps()
        return False

    def _has_settled_to_news(self) -> bool:
        """Nothing is left to do: it is made durable. True if that has brought more to do."""
        seq = self.run.seq
        return self._ledger is not None and self._settle() and (self.run.seq != seq or bool(self._inbox))

    def when_durable(self, step: Callable[[], None]) -> None:
        """Do this once all that is recorded so far is durable: at once, where nothing is kept."""
        if self._ledger is None:
            step()
            return
        self._steps = (*self._steps, step)
        self.wake()

    def committed(self, events: Sequence[ev.Event]) -> None:
        """All that was recorded is durable."""
        if self.listeners.any:
            for event in events:
                self.listeners.tell(event)
        self._do_steps()

    def _do_steps(self) -> None:
        steps, self._steps = self._steps, ()
        for step in steps:
            step()

    def take_in_ended(self) -> None:
        """The store is in trouble: what calls have come to is recorded, so that it is written with the rest."""
        if self.run.cancel_asked:
            self._stop_calls()
        if self._inbox:
            self._take_in()

    @property
    def calls_under_way(self) -> bool:
        """Whether anything may still end whose outcome would be lost."""
        return any(visit.calling for visit in self._visits.values())

    # Performing -----------------------------------------------------------------------------------------------------

    def _fire(self, trigger: ev.Trigger) -> None:
        run = self.run
        event = run.fire(trigger, run.seq + 1, self._now if self._busy else self.clock.now())
        self._append(event)
        if self._ledger is None and self.listeners.any:
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
        taken = self.turns.take(place)
        for event in taken.events:
            self.record(event)
            if isinstance(event, ev.ApprovalAsked):
                self.approving.asked(event)
        if taken.ready is not None:
            if self.run.cleaning == place:
                self._times.begin_cleanup(self.tell_later)
            visit = self.visit(taken.ready)
            if taken.ready.call is None:
                visit.start()
            else:
                visit.go_on()

    def _compensate(self, place: int) -> None:
        taken = compensation_at_turn(self.turns, place)
        for event in taken.events:
            self.record(event)
        back = self.run.going_back
        if taken.ready is not None and back is not None:
            visit = self.visit(taken.ready)
            visit.attempts = back.attempts - 1  # those that were interrupted count
            visit.start()

    def visit(self, ready: Ready) -> Visit:
        """A visit under way: it is to be started, or goes on."""
        place = ready.place
        task = ready.undoes or self.run.task(place)
        policy = self.policies.of(task, ready.skill)
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
        """Something is wrong in the engine itself, or with its store: the run cannot go on here."""
        self._fault = self._fault or fault
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

    # What another process has left ----------------------------------------------------------------------------------

    @contextmanager
    def one_reaction(self) -> Iterator[None]:
        """All that is recorded meanwhile belongs together: it is made durable at once, before anything is called."""
        self._busy = True
        self._now = self.clock.now()
        try:
            yield
        finally:
            self._busy = False

    def take_up(self, name: str, why: ev.TakenUpFor) -> None:
        """Drive a run from now on that was folded from its journal. `name` tells who does."""
        self.record(ev.RunTakenUp(driver=name, why=why))
        take_up_calls(self, self._now)
        if self.run.approvals.open:
            self.approving.ask_again()

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
        self,
        which: str | None,
        verdict: ev.Verdict,
        *,
        by: str | None,
        why: str | None,
        result: Any = None,
    ) -> None:
        """Someone decides about what waits. Raises DecisionRefused, NotJson."""
        self.approving.decide(which, verdict, by=by, why=why, result=result)

    def decided(self, event: ev.ApprovalDecided | ev.DecisionIgnored) -> None:
        """Someone decided elsewhere."""
        self.approving.take(event)

    def answering(self, request: int) -> None:
        """What is recorded next answers a request from the store."""
        if isinstance(self.journal, StoredJournal):
            self.journal.answer(request)

    def filled(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """What was left in the store, with the secrets that were left out of it."""
        holes = self.journal.holes if isinstance(self.journal, StoredJournal) else None
        filled: Mapping[str, Any] = body if holes is None else holes.filled_record(dict(body))
        return filled

    def close(self) -> None:
        """Nothing of this run goes on: what is under way is told to stop, and its outcome is not waited for."""
        self._reacting = False
        self._close_all()
        self._steps = ()
        if self._ledger is not None:
            self._ledger.close()
        for visit in list(self._visits.values()):
            visit.drop()

    def _close_all(self) -> None:
        self._times.close()
        self._planning.close()
        if self._approving is not None:
            self._approving.close()
            self._approving = None  # the two hold each other: nothing is left for the garbage collector
