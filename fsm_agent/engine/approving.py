"""Asking people: through a callable of this process, or by leaving the question open until someone decides."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec import structs

from fsm_agent.clock import Timer
from fsm_agent.core.approvals import approval_id, decision_on, digest_of, has_expired
from fsm_agent.core.events import (
    ApprovalAsked,
    ApprovalDecided,
    ApprovalHandedOn,
    ApprovalKind,
    DecisionIgnored,
    Verdict,
)
from fsm_agent.core.rollback import question_about_compensation
from fsm_agent.engine.host import RunHost
from fsm_agent.errors import DecisionRefused
from fsm_agent.jsonable import to_plain
from fsm_agent.skills.isolation import Flight, start
from fsm_agent.skills.outcomes import MAX_RAW, describe


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What an approver is asked. `parameters` are exactly those of the call, secrets shown as ***."""

    run_id: str
    approval: str
    kind: str
    task: str | None
    visit: int
    skill: str | None = None
    name: str | None = None
    description: str | None = None
    risk: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An approver's answer with who and why. A bare True or False will do too; None leaves it to someone else."""

    approved: bool
    by: str | None = None
    why: str | None = None


Approver = Callable[[ApprovalRequest], bool | Answer | Awaitable[bool | Answer | None] | None]
"""Asked for each approval. A sync one runs on a thread, so that it may wait for a person."""


_log = logging.getLogger("fsm_agent.engine")


class Approving:
    """The open questions of one run, and who is being asked."""

    def __init__(self, host: RunHost, approver: Approver | None) -> None:
        self._host = host
        self._approver = approver
        self._flights: dict[str, Flight] = {}
        self._timers: dict[str, Timer] = {}
        self._asking: dict[str, object] = {}
        self._closed = False

    # Questions ------------------------------------------------------------------------------------------------------

    def ask_about_plan(self) -> None:
        """Somebody must agree to the plan."""
        run = self._host.run
        digest = digest_of(run.compiled.plan.to_record())
        name = approval_id(run.run_id, None, run.plan_version, None, digest)
        has_approver = self._approver is not None
        self._ask(ApprovalAsked(approval=name, kind="plan", visit=0, digest=digest, approver=has_approver))

    def ask_about_task(self, place: int) -> None:
        """A task failed, or its call was interrupted, and a person must say what is to become of it."""
        run = self._host.run
        node, task = run.schedule.nodes[place], run.compiled.graph.ids[place]
        call = run.calls.get(place)
        kind: ApprovalKind = "failed" if call is None else "interrupted"
        which = kind if call is None else f"{kind} {call.attempts}"
        name = approval_id(run.run_id, task, node.visits, None, which)
        parameters = None if call is None else call.parameters
        self._ask(
            ApprovalAsked(
                approval=name, kind=kind, task=task, visit=node.visits, parameters=parameters, error=node.error
            )
        )

    def ask_again(self) -> None:
        """Questions that were open when another process left the run: the approver of this one is asked, if any."""
        run = self._host.run
        for event in list(run.approvals.open.values()):
            if self._approver is not None and event.kind in ("task", "plan"):
                self._ask(structs.replace(event, approver=True))
            elif event.approver and event.approval not in run.approvals.handed_on:
                self._host.record(ApprovalHandedOn(approval=event.approval, task=event.task))

    def ask_about_compensation(self, place: int) -> None:
        """A task could not be undone, and a person must say whether it is now, or is to be tried again."""
        self._ask(question_about_compensation(self._host.run, place))

    def _ask(self, event: ApprovalAsked) -> None:
        self._host.record(event)
        self.asked(event)

    def asked(self, event: ApprovalAsked) -> None:
        """A question was recorded: once that is durable start its clock, and ask the approver if there is one."""
        self._host.when_durable(partial(self._put, event))

    def _put(self, event: ApprovalAsked) -> None:
        if self._closed or event.approval not in self._host.run.approvals.open:
            return
        self._forget(event.approval)
        if event.expires_at is not None:
            self._set_timer(event, event.expires_at)
        if event.approver and self._approver is not None:
            request = self._request(event)
            self._ask_approver(event, partial(self._approver, request), is_async=_is_async(self._approver))

    def _set_timer(self, event: ApprovalAsked, expires_at: float) -> None:
        clock = self._host.clock
        wait = max(0.0, expires_at - clock.now())
        self._timers[event.approval] = clock.call_later(wait, partial(self._expire, event))

    def _ask_approver(self, event: ApprovalAsked, ask: Callable[[], Any], *, is_async: bool) -> None:
        host = self._host
        token = self._asking[event.approval] = object()
        on_end = partial(self._answered, event, token)
        self._flights[event.approval] = start(
            ask, {}, on_end, is_async=is_async, timeout=None, clock=host.clock, grace=host.cancel_grace
        )

    def _request(self, event: ApprovalAsked) -> ApprovalRequest:
        run = self._host.run
        task = run.task(run.compiled.graph.index[event.task]) if event.task is not None else None
        return ApprovalRequest(
            run_id=run.run_id,
            approval=event.approval,
            kind=event.kind,
            task=event.task,
            visit=event.visit,
            skill=task.skill if task else None,
            name=task.task.name if task else None,
            description=task.task.description if task else None,
            risk=event.risk,
            parameters=event.parameters or {},
        )

    # Answers --------------------------------------------------------------------------------------------------------

    def _answered(self, event: ApprovalAsked, token: object, value: Any, error: BaseException | None) -> None:
        if self._asking.get(event.approval) is not token:
            return  # asked about what is no longer wanted
        self._flights.pop(event.approval, None)
        del self._asking[event.approval]
        if self._closed or event.approval not in self._host.run.approvals.open:
            return
        if inspect.isawaitable(value):
            self._ask_approver(event, partial(_awaited, value), is_async=True)
            return
        if isinstance(value, bool):
            value = Answer(value, by="approver")
        if isinstance(value, Answer):
            verdict: Verdict = "approved" if value.approved else "rejected"
            self._settle(event, verdict, by=value.by or "approver", why=value.why)
            return
        message = (
            "" if error is None else f"the approver failed: {self._host.secrets.out_of_text(describe(error, MAX_RAW))}"
        )
        if error is None and value is not None:
            message = f"the approver returned {type(value).__name__}, not True, False, None or an Answer"
        if message:
            _log.warning("run %s, task %s: %s; a person must decide", self._host.run.run_id, event.task, message)
        self._host.tell(ApprovalHandedOn(approval=event.approval, task=event.task, message=message))

    def _expire(self, event: ApprovalAsked) -> None:
        if event.approval in self._host.run.approvals.open:
            self._settle(event, "expired", by=None, why=None)

    def catch_up(self) -> None:
        """Look at the time of all open questions anew: their timers were those of an event loop that may be gone."""
        clock = self._host.clock
        for event in list(self._host.run.approvals.open.values()):
            if event.expires_at is not None:
                self._forget(event.approval)
                if clock.now() >= event.expires_at:
                    self._expire(event)
                else:
                    self._set_timer(event, event.expires_at)

    def decide(
        self,
        which: str | None,
        verdict: Verdict,
        *,
        by: str | None = None,
        why: str | None = None,
        result: Any = None,
    ) -> None:
        """Someone decides about an approval: by its id, its task's, or None for the plan.

        Raises DecisionRefused, NotJson.
        """
        event = self._host.run.approvals.find(which, verdict)
        if has_expired(event, self._host.clock.now()):
            self._settle(event, "expired", by=None, why=None)
            raise DecisionRefused(f"the approval of {event.task!r} has expired", hint="it counts as rejected")
        self._settle(event, verdict, by=by, why=why, result=to_plain(result))

    def _settle(
        self, event: ApprovalAsked, verdict: Verdict, *, by: str | None, why: str | None, result: Any = None
    ) -> None:
        self.take(decision_on(event, verdict, by=by, why=why, result=result))

    def take(self, event: ApprovalDecided | DecisionIgnored) -> None:
        """Record a decision: who is asked about it still is not waited for any more."""
        if isinstance(event, ApprovalDecided):
            self._forget(event.approval)
        self._host.tell(event)

    def _forget(self, approval: str) -> None:
        """A question is answered, or put anew: whoever was asked before is not waited for any more."""
        timer = self._timers.pop(approval, None)
        if timer is not None:
            timer.cancel()
        self._asking.pop(approval, None)
        flight = self._flights.pop(approval, None)
        if flight is not None:
            flight.cancel()

    def close(self) -> None:
        """Nobody is asked any more."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for flight in list(self._flights.values()):
            flight.cancel()
        self._flights.clear()


async def _awaited(answer: Awaitable[Any]) -> Any:
    """What a plain function that returned an awaitable meant."""
    return await answer


def _is_async(approver: Approver) -> bool:
    return asyncio.iscoroutinefunction(approver) or inspect.iscoroutinefunction(getattr(approver, "__call__", None))  # noqa: B004 - the method itself is looked at
