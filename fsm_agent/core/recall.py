"""What the events before a snapshot hold that the snapshot leaves out: data, errors, the context, who decided what.

They are taken in without their consequences for the plan: those are in the snapshot. The context goes through its own
code once more, views, conflicts, merges and all, and so comes out the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from fsm_agent.core import events as ev
from fsm_agent.core.approvals import refusal, refused_plan
from fsm_agent.core.calls import Call, call_of
from fsm_agent.core.failures import limit_error
from fsm_agent.core.run import Run

E = TypeVar("E", bound=ev.Event)


class Recall:
    """The events before one snapshot, taken in by a fresh run."""

    __slots__ = ("_approved", "_asked", "_found", "_index", "_pointed", "_run", "calls", "limited")

    def __init__(self, run: Run, pointed: frozenset[int]) -> None:
        """`pointed` are the events (by `seq`) that the snapshot speaks of."""
        self._run = run
        self._pointed = pointed
        self._found: dict[int, ev.Event] = {}
        self._index: dict[str, int] = {}
        self._asked: dict[str, ev.ApprovalAsked] = {}
        self._approved: dict[int, ev.ApprovalAsked] = {}
        self.calls: dict[int, Call] = {}
        """The last call of each task, as far as the events tell: some are over by what followed from others."""
        self.limited: dict[int, ev.TaskError] = {}
        """What the tasks have for an error whose last visit was refused by a limit."""

    def take_in(self, past: Iterable[ev.Event]) -> None:
        """All of them, in their order. Raises LookupError for one that fits no plan."""
        handlers, pointed = _HANDLERS, self._pointed
        for event in past:
            if event.seq in pointed:
                self._found[event.seq] = event
            handler = handlers.get(type(event))
            if handler is not None:
                handler(self, event)

    # What the snapshot points to ------------------------------------------------------------------------------------

    def of(self, kind: type[E], seq: int | None) -> E | None:
        """The event of that kind and number. Raises LookupError if it is not among them."""
        return self._one(kind, seq) if seq is not None else None

    def asked(self, seq: int) -> ev.ApprovalAsked:
        """A question. Raises LookupError."""
        return self._one(ev.ApprovalAsked, seq)

    def rejection(self, seq: int | None) -> ev.PlanRejected | None:
        """Why there is no plan: none was found, or a person said no. Raises LookupError."""
        if isinstance(decided := self._found.get(seq or 0), ev.ApprovalDecided):
            return refused_plan(decided)
        return self.of(ev.PlanRejected, seq)

    def _one(self, kind: type[E], seq: int) -> E:
        event = self._found[seq]
        if not isinstance(event, kind):
            raise LookupError(f"event {seq} is of another type")
        return event

    # What each of them holds ----------------------------------------------------------------------------------------

    def _run_started(self, event: ev.RunStarted) -> None:
        self._run.evolve(event)

    def _plan_adopted(self, event: ev.PlanAdopted) -> None:
        self._run.adopt(event)
        self._index = self._run.compiled.graph.index

    def _task_started(self, event: ev.TaskStarted) -> None:
        place, context = self._index[event.task], self._run.context
        context.close_view(place)  # a jump may have ended the visit before, and no event says so
        context.open_view(place)
        self.calls[place] = call_of(event, self._approved.pop(place, None))

    def _attempt_failed(self, event: ev.AttemptFailed) -> None:
        if (call := self.calls.get(self._index[event.task])) is not None:
            call.attempt_failed(event)

    def _attempt_started(self, event: ev.AttemptStarted) -> None:
        self.calls[self._index[event.task]].attempt_started(event)

    def _task_interrupted(self, event: ev.TaskInterrupted) -> None:
        place = self._index[event.task]
        self.calls[place].interrupted(event)
        if event.then == "ask":
            self._run.schedule.nodes[place].error = self.calls[place].error

    def _context_changed(self, event: ev.ContextChanged) -> None:
        self._run.context.commit(self._index[event.task], event.changes)

    def _task_evaluated(self, event: ev.TaskEvaluated) -> None:
        run, place = self._run, self._index[event.task]
        run.schedule.nodes[place].learn(event)
        run.context.close_view(place)
        run.trace.append((event.task, "ok" if event.status == "SUCCEEDED" else "fail"))

    def _visit_discarded(self, event: ev.VisitDiscarded) -> None:
        self._run.context.close_view(self._index[event.task])

    def _task_skipped(self, event: ev.TaskSkipped) -> None:
        self._run.trace.append((event.task, "skip"))

    def _visit_refused(self, event: ev.VisitRefused) -> None:
        self.limited[self._index[event.task]] = limit_error(event)

    def _run_forked(self, event: ev.RunForked) -> None:  # noqa: ARG002 - the handlers' signature
        self._approved.clear()

    def _approval_asked(self, event: ev.ApprovalAsked) -> None:
        self._asked[event.approval] = event

    def _approval_decided(self, event: ev.ApprovalDecided) -> None:
        self._run.approvals.decided[event.approval] = event
        asked = self._asked.pop(event.approval)
        if asked.task is None:
            return
        task, place = asked.task, self._index[asked.task]
        node = self._run.schedule.nodes[place]
        if event.decision == "approved":
            self._approved[place] = asked
        elif event.decision != "rerun" and place in self._run.context.owners():
            self._run.context.close_view(place)
        if event.decision == "done":
            node.data, node.error = event.result, None
        elif event.decision == "fail" and asked.kind == "interrupted":
            self._run.trace.append((task, "fail"))
        elif event.decision in ("rejected", "expired"):
            node.error = refusal(event)
            self._run.trace.append((task, "fail"))

    def _only_pointed(self, event: ev.Event) -> None:
        """One that counts only where the snapshot says so."""


_HANDLERS: Final[dict[type[ev.Event], Callable[[Recall, Any], None]]] = {
    ev.RunStarted: Recall._run_started,
    ev.PlanAdopted: Recall._plan_adopted,
    ev.PlanRejected: Recall._only_pointed,
    ev.TaskStarted: Recall._task_started,
    ev.AttemptFailed: Recall._attempt_failed,
    ev.AttemptStarted: Recall._attempt_started,
    ev.TaskInterrupted: Recall._task_interrupted,
    ev.ContextChanged: Recall._context_changed,
    ev.TaskEvaluated: Recall._task_evaluated,
    ev.VisitDiscarded: Recall._visit_discarded,
    ev.TaskSkipped: Recall._task_skipped,
    ev.VisitRefused: Recall._visit_refused,
    ev.RunForked: Recall._run_forked,
    ev.ApprovalAsked: Recall._approval_asked,
    ev.ApprovalDecided: Recall._approval_decided,
    ev.CriteriaJudged: Recall._only_pointed,
    ev.CancelAsked: Recall._only_pointed,
}

CARRIERS: Final[frozenset[str]] = frozenset(str(kind.__struct_config__.tag) for kind in _HANDLERS)
"""The types of the events that are wanted."""
