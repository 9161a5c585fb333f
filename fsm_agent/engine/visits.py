"""One visit under way: its attempts, the waits between them, and the fallback at the end.

A visit is a little state machine of its own, driven by callbacks: a call ended, a wait is over, a cancel was asked.
It decides nothing about the plan; the policy says what follows a failure, and the driver judges the outcome. No more
than one asyncio task (or one thread) exists for an attempt, and none between attempts.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Mapping
from contextvars import Context
from functools import partial
from typing import Any, Literal, Protocol

import msgspec

from fsm_agent.clock import Clock, RandomSource, Timer
from fsm_agent.core.context import View
from fsm_agent.core.events import AttemptFailed, AttemptStarted, CallAbandoned, Event, LoopBlocked, TaskError
from fsm_agent.core.judging import Outcome
from fsm_agent.engine.acceptance import Accepted, Acceptor, StandIn
from fsm_agent.engine.secrets import Secrets
from fsm_agent.engine.turns import Ready, filter_event
from fsm_agent.errors import CallTimeout
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.plan.policy import Failure, Policy, Retry, UseFallback, after_failure
from fsm_agent.skills.context import SkillContext
from fsm_agent.skills.filters import FilterNote
from fsm_agent.skills.isolation import Flight, start
from fsm_agent.skills.outcomes import failure_of
from fsm_agent.skills.skill import Skill

CANCELLED = "cancelled"

_log = logging.getLogger("fsm_agent.skills")


def _traceback_of(error: BaseException) -> str:
    """Where an error was raised, for those who look for it. A hostile error may not even let itself be shown."""
    try:
        return "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001 - see above
        return f"{type(error).__name__}, which cannot be shown"


class VisitHost(Protocol):
    """What a visit needs of the driver that it runs under."""

    clock: Clock
    random: RandomSource
    cancel_grace: float
    secrets: Secrets
    variables: Context | None

    def record(self, event: Event) -> None:
        """Append an event to the run's journal."""

    def tell(self, event: Event) -> None:
        """Append an event, and see to it that it is kept soon."""

    def when_durable(self, step: Callable[[], None]) -> None:
        """Do this once all that is recorded so far is durable."""

    def finished(self, outcome: Outcome) -> None:
        """The visit is over."""

    def context_for(self, visit: Visit, skill: Skill) -> SkillContext:
        """A context for one attempt."""

    def failed(self, fault: BaseException) -> None:
        """The engine itself is at fault."""


class _Call(msgspec.Struct, eq=False):
    """One call of a skill under way."""

    skill: Skill
    timeout: float
    is_fallback: bool
    context: SkillContext | None = None
    flight: Flight | None = None
    cancelled: bool = False


class Visit:
    """One visit of one task."""

    __slots__ = (
        "_acceptor", "_call", "_dropped", "_host", "_is_fallback_due", "_kwargs", "_next", "_waiting", "attempts",
        "first_error", "number", "parameters", "place", "policy", "retried", "skill", "task", "view",
    )  # fmt: skip

    def __init__(
        self, host: VisitHost, acceptor: Acceptor, ready: Ready, task: CompiledTask, policy: Policy, view: View
    ) -> None:
        self._host = host
        self._acceptor = acceptor
        self._kwargs: dict[str, Any] | None = ready.kwargs
        self._call: _Call | None = None
        self._waiting: Timer | None = None
        self.place = ready.place
        self.number = ready.visit
        self.task = task
        self.skill = ready.skill
        self.policy = policy
        self.parameters = ready.parameters
        self.view = view
        self._dropped = False
        self._next: Callable[[], None] | None = None
        """The call to be made once its start is durable."""
        self.attempts = 0
        self.retried = 0
        self.first_error: TaskError | None = None
        """The error of the last attempt, once the fallback has its turn."""
        self._is_fallback_due = ready.call is not None and ready.call.fallback
        if ready.call is not None:
            self.attempts = ready.call.attempts
            self.retried = ready.call.retried
            self.first_error = ready.call.error

    @property
    def id(self) -> str:
        """The task's id."""
        return self.task.task.id

    @property
    def calling(self) -> bool:
        """Whether a call of it is under way."""
        return self._call is not None

    def start(self) -> None:
        """Make an attempt, once its start is durable: the first one, or the next."""
        self._soon(self._attempt)

    def go_on(self) -> None:
        """Take up a visit where it stood when its process died; the start of its next call is on record."""
        self._soon(self._call_fallback if self._is_fallback_due else self._call_skill)

    def wait(self, delay: float) -> None:
        """The same, where the next call is to begin after `delay` seconds, and is not on record yet."""
        step = self._fall_back if self._is_fallback_due else self._try_again
        self._waiting = self._host.clock.call_later(delay, partial(self._guarded, step))

    def _soon(self, step: Callable[[], None]) -> None:
        self._next = step
        self._host.when_durable(self._make_next)

    def _make_next(self) -> None:
        step, self._next = self._next, None
        if step is not None:  # else it was cancelled meanwhile
            self._guarded(step)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException as fault:  # noqa: BLE001 - it may be called by a timer: there it would be lost
            self._host.failed(fault)

    def _try_again(self) -> None:
        """The wait is over."""
        self._waiting = None
        self._next = self._attempt
        attempt, idempotent = self.attempts + 1, self.policy.idempotent
        self._host.tell(AttemptStarted(task=self.id, visit=self.number, attempt=attempt, idempotent=idempotent))
        self._host.when_durable(self._make_next)

    def _attempt(self) -> None:
        self.attempts += 1
        self._call_skill()

    def _call_skill(self) -> None:
        kwargs, self._kwargs = self._kwargs, None
        if kwargs is None:
            # Each attempt gets its own: the one before may have changed what it was given.
            kwargs = self.skill.validate(self.parameters)
        self._make_call(self.skill, kwargs, self.policy.timeout)

    def cancel(self) -> None:
        """Stop it: what it comes to is a failure of kind `cancelled`."""
        if self._waiting is not None or self._next is not None:
            if self._waiting is not None:
                self._waiting.cancel()
            self._waiting = self._next = None
            waited = "while it waited to try again" if self.attempts else "before it was called"
            self._finish(TaskError(CANCELLED, f"cancelled {waited}", attempt=self.attempts or None))
        elif self._call is not None and self._call.flight is not None and not self._call.cancelled:
            self._call.cancelled = True
            self._call.flight.cancel()

    def note(self, note: FilterNote) -> None:
        """A filter did something."""
        self._host.record(filter_event(self.id, self.number, note, self._host.secrets))

    def drop(self) -> None:
        """Stop it, and hear no more of it."""
        self._dropped = True
        self.cancel()

    # Calls ----------------------------------------------------------------------------------------------------------

    def _make_call(self, skill: Skill, kwargs: dict[str, Any], timeout: float, *, is_fallback: bool = False) -> None:
        host = self._host
        call = self._call = _Call(skill, timeout, is_fallback)
        if skill.context_parameter is not None:
            call.context = kwargs[skill.context_parameter] = host.context_for(self, skill)
        call.flight = start(
            skill.function,
            kwargs,
            partial(self._ended, call),
            is_async=skill.is_async,
            timeout=timeout,
            clock=host.clock,
            grace=host.cancel_grace,
            context=host.variables,
        )

    def _ended(self, call: _Call, value: Any, error: BaseException | None) -> None:
        """A call is over. An error in here is the engine's own, and must not be lost in the event loop."""
        try:
            writes = self._close(call, error)
            if self._dropped:
                return
            if call.cancelled:
                self._finish(TaskError(CANCELLED, "cancelled with its run", attempt=self.attempts))
            elif error is not None:
                self._failed(call, self._failure_of(error))
            else:
                self._returned(call, value, writes)
        except BaseException as fault:  # noqa: BLE001 - see above
            self._host.failed(fault)

    def _close(self, call: _Call, error: BaseException | None) -> Mapping[str, Any]:
        """The attempt is over: it can write nothing any more. Returns what it wrote."""
        self._call = None
        flight, call.flight = call.flight, None  # the two hold each other: nothing is left for the garbage collector
        writes = call.context.close() if call.context is not None else {}
        if flight is not None and flight.abandoned and not self._dropped:
            timed_out = issubclass(type(error), CallTimeout)
            why: Literal["timeout", "cancelled"] = "timeout" if timed_out else "cancelled"
            self._host.record(CallAbandoned(task=self.id, visit=self.number, attempt=self.attempts, why=why))
        elif type(error) is CallTimeout and error.blocked:
            self._host.record(LoopBlocked(task=self.id, visit=self.number, seconds=round(error.blocked, 3)))
        return writes

    def _failure_of(self, error: BaseException) -> Failure:
        if issubclass(type(error), asyncio.CancelledError):  # a hostile error may say anything of its class
            return Failure(CANCELLED, None, "the skill cancelled itself", self.attempts)
        if _log.isEnabledFor(logging.DEBUG):
            told = self._host.secrets.out_of(_traceback_of(error))
            _log.debug("task %s, attempt %d: the skill raised\n%s", self.id, self.attempts, told)
        return failure_of(error, self.attempts, self._host.clock.now())

    # Verdicts -------------------------------------------------------------------------------------------------------

    def _returned(self, call: _Call, value: Any, writes: Mapping[str, Any]) -> None:
        broken = call.context.broken if call.context is not None else None
        verdict = (
            failure_of(broken, self.attempts, 0.0)
            if broken is not None
            else self._acceptor.accept(self, value, writes, skill=call.skill, verify=not call.is_fallback)
        )
        if isinstance(verdict, Failure):
            self._failed(call, verdict)
        else:
            self._succeeded(verdict, writes, is_fallback=call.is_fallback)

    def _succeeded(self, accepted: Accepted, writes: Mapping[str, Any], *, is_fallback: bool) -> None:
        outcome = Outcome(self.place, self.number, self.attempts, self.retried, accepted.data, writes=writes)
        outcome.verified = accepted.verified
        if is_fallback:
            outcome.fallback_used = True
            outcome.error = self.first_error
            outcome.verified = False if self.task.verification is not None else None
        self._host.finished(outcome)

    def _failed(self, call: _Call, failure: Failure) -> None:
        if call.is_fallback:
            self._finish(self.first_error)
            return
        message = self._host.secrets.out_of_text(failure.message)
        error = TaskError(failure.kind, message, failure.type, self.attempts)
        decision = after_failure(self.policy, failure, self._host.random.random())
        if isinstance(decision, Retry):
            self.retried += 1
            step = partial(self._guarded, self._try_again)
            self._waiting = self._host.clock.call_later(decision.delay, step)
            self._tell_failed(error, "retry", decision.delay)
        elif isinstance(decision, UseFallback):
            self.first_error = error
            self._tell_failed(error, "fallback", 0.0)
            self._fall_back()
        else:
            self._finish(error)

    def _tell_failed(self, error: TaskError, then: Literal["retry", "fallback"], delay: float) -> None:
        self._host.tell(
            AttemptFailed(
                task=self.id, visit=self.number, attempt=self.attempts, error=error, then=then, delay=round(delay, 6)
            )
        )

    def _fall_back(self) -> None:
        """The fallback has its turn: a call, whose start goes on record first, or a value."""
        self._waiting = None
        stand_in = self._acceptor.stand_in(self)
        if isinstance(stand_in, StandIn):
            self._next = partial(self._stand_in, stand_in)
            idempotent = stand_in.skill.spec.idempotent
            started = AttemptStarted(
                task=self.id, visit=self.number, attempt=self.attempts, fallback=True, idempotent=idempotent
            )
            self._host.tell(started)
            self._host.when_durable(self._make_next)
        else:
            self._without_call(stand_in)

    def _call_fallback(self) -> None:
        """The same, where the start is on record already."""
        stand_in = self._acceptor.stand_in(self)
        if isinstance(stand_in, StandIn):
            self._stand_in(stand_in)
        else:
            self._without_call(stand_in)

    def _stand_in(self, stand_in: StandIn) -> None:
        self._make_call(stand_in.skill, stand_in.kwargs, stand_in.timeout, is_fallback=True)

    def _without_call(self, stand_in: Accepted | None) -> None:
        if stand_in is None:
            self._finish(self.first_error)
        else:
            self._succeeded(stand_in, {}, is_fallback=True)

    def _finish(self, error: TaskError | None) -> None:
        self._host.finished(Outcome(self.place, self.number, self.attempts, self.retried, error=error))
