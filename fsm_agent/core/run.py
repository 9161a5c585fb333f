"""The state of one run, and `evolve`: what each event changes in it.

`evolve` does no I/O, reads no clock and copies nothing: an event costs what it changes. Folding the journal's events
gives the run as it was; the same events through the same machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Set
from typing import TYPE_CHECKING, Any

from fsm_agent.core import events as ev
from fsm_agent.core import rollback
from fsm_agent.core.approvals import refusal, refused_plan
from fsm_agent.core.calls import Call, call_of
from fsm_agent.core.context import SharedContext
from fsm_agent.core.failures import Ending, Failures, limit_error
from fsm_agent.core.machine import fire, stand
from fsm_agent.core.nodes import Node, SkipReason, Status
from fsm_agent.core.schedule import Schedule
from fsm_agent.core.state import AS_THEY_ARE, RunSnapshot, RunState
from fsm_agent.core.turns import Turns
from fsm_agent.errors import IllegalTransition
from fsm_agent.jsonable import copy_plain

if TYPE_CHECKING:
    from fsm_agent.core.recall import Recall


class Run(RunState):
    """One execution of a plan. Only `evolve` and `fire` change it."""

    __slots__ = ()

    def evolve(self, event: ev.Event) -> None:
        """Take in what happened. Raises IllegalTransition for a transition that the machine does not allow."""
        _CHANGES[type(event)](self, event)
        self.seq = event.seq
        self.at = event.at

    def watch(self, moved: set[int]) -> None:
        """From now on, add to this set the place of each task that comes to stand differently."""
        self.moved = moved
        if self.plan_version:
            self.schedule.moved = moved

    def _run_started(self, event: ev.RunStarted) -> None:
        self.started = event
        if event.grants:
            self.grants = frozenset(event.grants)

    def _plan_adopted(self, event: ev.PlanAdopted) -> None:
        self.adopt(event)
        self.schedule.begin()

    def adopt(self, event: ev.PlanAdopted) -> None:
        """Have this plan, with nothing of it ready yet."""
        compiled = self.compiled = self._plans(event)
        self.plan_version = event.version
        self.plan_digest = event.digest
        plan = compiled.plan
        self.max_task_runs = plan.max_task_runs
        self.inputs = {**event.inputs, **self.secrets}
        most = self.started.max_parallel if self.started is not None else None
        turns = Turns(compiled.graph, most or plan.limits.max_parallel)
        self.running = turns.running
        self.schedule = Schedule(compiled.graph, turns)
        self.schedule.moved = self.moved
        values = {**event.inputs, **copy_plain(plan.context)}
        self.context = SharedContext(values, plan.merge, undoable=compiled.has_rollback)
        self.rollbacks = rollback.Rollbacks(compiled) if compiled.has_rollback else None
        self.failures = Failures(compiled, self.schedule)

    def _plan_rejected(self, event: ev.PlanRejected) -> None:
        self.rejection = event

    def fire(self, trigger: ev.Trigger, seq: int, at: float) -> ev.PhaseChanged:
        """Fire a trigger, and make the record of it. Raises IllegalTransition, with nothing changed."""
        source = self.phase
        guard = fire(self, trigger)
        event = ev.PhaseChanged(
            trigger=trigger, source=source, dest=self.phase, guard=guard, seq=seq, at=at, run_id=self.run_id
        )
        self._entered(event)
        self.seq = seq
        self.at = at
        return event

    def _phase_changed(self, event: ev.PhaseChanged) -> None:
        """The same again: the machine must come to what the record says."""
        source = self.phase
        guard = fire(self, event.trigger)
        if (source, self.phase, guard) != (event.source, event.dest, event.guard):
            record = f"the record says {event.source!r} to {event.dest!r} by {event.guard!r}"
            raise IllegalTransition(source, event.trigger, (), detail=record)
        self._entered(event)

    def _entered(self, event: ev.PhaseChanged) -> None:
        if event.dest == "evaluating":
            self.just_settled = False
        elif event.dest == "executing":
            self.executed = True
        elif event.dest == "paused":
            self.pause_asked = False
            self.active_for = self.active_time(event.at)
            self.active_since = None
        if self.active_since is None and event.dest in ("planning", "executing"):
            self.active_since = event.at

    def _taken_up(self, event: ev.RunTakenUp) -> None:
        """Since the last event of the driver before nobody drove the run: that time does not count."""
        if self.active_since is not None:
            self.active_for = self.active_time(self.at)
            self.active_since = event.at
        if event.why == "resume":
            self.pause_asked = False

    def _task_started(self, event: ev.TaskStarted) -> None:
        place = self.compiled.graph.index[event.task]
        self._count_visit(self.schedule.nodes[place], event.visit)
        self.schedule.start(place)
        self.context.open_view(place)
        self.calls[place] = call_of(event, self._approved.pop(place, None))
        if self.rollbacks is not None:
            self.rollbacks.started(place, self.calls[place])
        if self.is_ending:
            self.cleaning = place

    def _attempt_failed(self, event: ev.AttemptFailed) -> None:
        call = self._call_at(self.compiled.graph.index[event.task])
        if call is not None:
            call.attempt_failed(event)

    def _attempt_started(self, event: ev.AttemptStarted) -> None:
        place = self.compiled.graph.index[event.task]
        call = self._call_at(place)
        if call is not None:
            call.attempt_started(event)
        if place in self.interrupted:
            self.interrupted -= {place}
            if place not in self.running:
                self.schedule.start(place)

    def _task_interrupted(self, event: ev.TaskInterrupted) -> None:
        place = self.compiled.graph.index[event.task]
        if self.going_back is not None and self.going_back.calling == place:
            rollback.interrupted(self, event)
            return
        call = self.calls[place]
        call.interrupted(event)
        self.interrupted |= {place}
        if event.then == "ask":
            self.schedule.nodes[place].error = call.error
            self.schedule.interrupt(place)
            self.to_ask.append(place)

    def _call_at(self, place: int) -> Call | None:
        """The call under way for a task, or for its compensation: never both."""
        back = self.going_back
        return back.call if back is not None and back.calling == place else self.calls.get(place)

    def _task_evaluated(self, event: ev.TaskEvaluated) -> None:
        place = self.compiled.graph.index[event.task]
        node = self.schedule.nodes[place]
        self._end_visit(node, event.visit, event.attempts, event.retried)
        node.learn(event)
        node.false_decision = self.compiled.tasks[place].is_decision and event.status == "FAILED" and not event.error
        succeeded = event.status == "SUCCEEDED"
        self.trace.append((event.task, "ok" if succeeded else "fail"))
        self.just_settled = True
        if self.is_ending:
            self._settle_in_ending(place, event.status)
        elif succeeded:
            self._succeed(place)
        else:
            self._fail(place)

    def _context_changed(self, event: ev.ContextChanged) -> None:
        self.context.commit(self.compiled.graph.index[event.task], event.changes)

    def _task_skipped(self, event: ev.TaskSkipped) -> None:
        place = self.compiled.graph.index[event.task]
        self.trace.append((event.task, "skip"))
        self.just_settled = True
        if self.is_ending:
            self._settle_in_ending(place, "SKIPPED", event.reason)
        else:
            self.schedule.settle(place, "SKIPPED", event.reason)

    def _visit_refused(self, event: ev.VisitRefused) -> None:
        place = self.compiled.graph.index[event.task]
        self._approved.pop(place, None)
        self.just_settled = True
        self._recover(place, limit_error(event), event.setting, event.count)

    def _visit_discarded(self, event: ev.VisitDiscarded) -> None:
        place = self.compiled.graph.index[event.task]
        self._end_visit(self.schedule.nodes[place], event.visit, event.attempts, event.retried)
        self.discarded_calls += event.attempts - event.retried
        if self.rollbacks is not None:
            self.rollbacks.discarded(place, event)
        self.just_settled = True

    def _approval_asked(self, event: ev.ApprovalAsked) -> None:
        self.approvals.ask(event)
        if event.kind == "compensation":
            rollback.asked(self)
        elif event.task is not None:
            place = self.compiled.graph.index[event.task]
            self.schedule.wait(place)
            if event.kind in ("failed", "interrupted"):
                self.to_ask.remove(place)

    def _approval_handed_on(self, event: ev.ApprovalHandedOn) -> None:
        self.approvals.handed_on[event.approval] = None

    def _approval_decided(self, event: ev.ApprovalDecided) -> None:
        asked = self.approvals.decide(event)
        if asked.kind == "plan":
            self._plan_decided(event)
            return
        if asked.kind == "compensation":
            rollback.decided(self, event)
            return
        if asked.task is None:
            return
        place = self.compiled.graph.index[asked.task]
        if event.decision == "approved":
            self._approved[place] = asked
            self.schedule.make_ready(place)
        elif event.decision == "rerun":
            if asked.kind != "interrupted":
                self.schedule.nodes[place].forget()
            self.schedule.make_ready(place)
        else:
            self._decided_end(place, asked, event)

    def _decided_end(self, place: int, asked: ev.ApprovalAsked, event: ev.ApprovalDecided) -> None:
        """A decision that settles the task."""
        node = self.schedule.nodes[place]
        self.just_settled = True
        call = self.calls.get(place)
        if call is not None:
            self._end_visit(node, call.visit, call.attempts, call.retried)
        if event.decision == "skip":
            self.schedule.settle(place, "SKIPPED", "person")
        elif event.decision == "done":
            node.data, node.error = event.result, None
            self._succeed(place)
        elif event.decision == "fail" and asked.kind == "interrupted":
            self.trace.append((self.compiled.graph.ids[place], "fail"))
            self._fail(place)
        elif event.decision == "fail":
            self._abort(place, node.error or ev.TaskError("rejected", "a person let it fail"))
        else:
            node.error = refusal(event)
            self._count_visit(node, asked.visit)
            self.trace.append((self.compiled.graph.ids[place], "fail"))
            self._fail(place)

    def _plan_decided(self, event: ev.ApprovalDecided) -> None:
        if event.decision == "approved":
            self._plan_approved = True
        else:
            self.rejection = refused_plan(event)

    def _criteria_judged(self, event: ev.CriteriaJudged) -> None:
        self.judged = event

    def _pause_wanted(self, _event: ev.PauseAsked) -> None:
        self.pause_asked = True

    def _cancel_wanted(self, event: ev.CancelAsked) -> None:
        self.cancelled = self.cancelled or event
        self._stop()

    def _limit_passed(self, event: ev.LimitPassed) -> None:
        if event.setting == "limits.cleanup_timeout":
            self.cleanup_over = True
        elif self.ending is None:
            message = f"the run took longer than {event.setting} allows ({event.count:g} s)"
            self.ending = Ending("limit", "limit", None, message, event.setting, event.count)
            self._stop()

    def _run_finished(self, event: ev.RunFinished) -> None:
        if event.phase != self.phase:
            detail = f"the record says that the run finished as {event.phase!r}"
            raise IllegalTransition(self.phase, "run_finished", (), detail=detail)

    def _run_forked(self, event: ev.RunForked) -> None:  # noqa: ARG002 - the handlers' signature
        """What people agreed to was for the other run: where nothing had come of it yet, they are asked anew."""
        self._approved.clear()
        for place in sorted(self.interrupted - self.running):
            if self.schedule.nodes[place].status == "READY":
                self.schedule.wait(place)
                self.to_ask.append(place)

    def _nothing(self, event: ev.Event) -> None:
        """A fact that changes nothing in the state."""

    # Consequences ---------------------------------------------------------------------------------------------------

    def _count_visit(self, node: Node, visit: int) -> None:
        if visit > node.visits:
            node.visits = visit
            self.total_visits += 1

    def _end_visit(self, node: Node, visit: int, attempts: int, retried: int) -> None:
        self._count_visit(node, visit)
        node.attempts += attempts
        node.retried += retried
        self._approved.pop(node.place, None)
        self.calls.pop(node.place, None)
        if self.interrupted:
            self.interrupted -= {node.place}
        if node.place in self.schedule.turns.running:
            self.schedule.finish(node.place)
        self.context.close_view(node.place)

    def _succeed(self, place: int) -> None:
        if self.rollbacks is not None:
            self.rollbacks.succeeded(place)
        target = self.compiled.graph.on_success[place]
        if target >= 0 and self.compiled.graph.success_back[place]:
            self._jump(place, target, "SUCCEEDED")
        else:
            self.schedule.settle(place, "SUCCEEDED")

    def _fail(self, place: int) -> None:
        """Section 4 of the plan's meaning: the edge, else the recovery."""
        target = self.failures.jump_target(place)
        if target is not None:
            self._jump(place, target, "FAILED")
        elif self.failures.is_handled(place):
            self.schedule.settle(place, "FAILED")
        else:
            self._recover(place, self.failures.error_of(place))

    def _recover(self, place: int, error: ev.TaskError, setting: str | None = None, count: int | None = None) -> None:
        """A failure, or a visit that is refused by the limit `setting`, which no edge takes up."""
        recovery = "abort" if setting == "limits.max_task_runs" else self.failures.recovery(place)
        if recovery == "skip":
            self._keep_limit(place, error, setting)
            self.schedule.settle(place, "SKIPPED", "optional")
        elif recovery == "pause":
            self._keep_limit(place, error, setting)
            self.pause_asked = True
            self.schedule.wait(place)
            self.to_ask.append(place)
        elif recovery == "rollback" and setting is None:
            self._roll_back(place, error)
        elif setting is not None:
            self.ending = Ending("limit", "limit", self.compiled.graph.ids[place], error.message, setting, count)
            self._stop()
        else:
            self._abort(place, error)

    def _roll_back(self, place: int, error: ev.TaskError) -> None:
        why = rollback.refusal(self, place) if self.going_back is None else None  # else it is judged at its turn
        if why is None:
            self._withdraw(rollback.fall_due(self, place).members)
        else:
            self._abort(place, error.with_words(why))

    def _rolled_back(self, _event: ev.RolledBack) -> None:
        rollback.go_back(self)
        self._withdraw(set(self.schedule.reset))
        self.schedule.reset.clear()
        refused = rollback.next_due(self)
        if refused is not None:
            place, why = refused
            self._abort(place, self.failures.error_of(place).with_words(why))

    def _keep_limit(self, place: int, error: ev.TaskError, setting: str | None) -> None:
        """A task that a limit ends shows that, and not what its last visit came to."""
        if setting is not None:
            self.schedule.nodes[place].error = error

    def _abort(self, place: int, error: ev.TaskError) -> None:
        message = f"{error.type}: {error.message}" if error.kind == "exception" and error.type else error.message
        self.ending = Ending("abort", error.kind, self.compiled.graph.ids[place], message)
        self.schedule.settle_quietly(place, "FAILED")
        self._stop()

    def _stop(self) -> None:
        """Nothing new starts but finalizers; what waits for a person no longer does."""
        self.is_ending = True
        if not self.plan_version:
            return
        self.schedule.stop()
        self._approved.clear()
        for place in self.to_ask:
            self.schedule.put_back(place)
        self.to_ask.clear()
        for task in self.approvals.withdraw_all():
            self.schedule.put_back(self.compiled.graph.index[task])
        self._let_go(self.interrupted - self.running)
        if self.going_back is not None and self.going_back.calling is None:
            rollback.leave(self)

    def _settle_in_ending(self, place: int, status: Any, reason: SkipReason | None = None) -> None:
        self.schedule.settle_quietly(place, status, reason)
        if self._cleanup and self._cleanup[0] == place:
            self._cleanup.popleft()
        if self.cleaning == place:
            self.cleaning = None

    def _jump(self, place: int, target: int, status: Status) -> None:
        self.schedule.jump(place, target, status)
        if self.approvals.open or self._approved or self.to_ask or self.interrupted:
            self._withdraw(set(self.schedule.reset))
        self.schedule.reset.clear()
        if self.rollbacks is not None:
            self.context.jumped(target)

    def _withdraw(self, reset: Set[int]) -> None:
        """What was asked or answered about tasks that run again does not count any more."""
        self.approvals.withdraw({self.compiled.graph.ids[place] for place in reset})
        self.to_ask = [place for place in self.to_ask if place not in reset]
        self._approved = {place: asked for place, asked in self._approved.items() if place not in reset}
        self._let_go((self.interrupted & reset) - self.running)

    def _let_go(self, places: Iterable[int]) -> None:
        """Visits that were interrupted, and that nobody goes on with."""
        for place in places:
            call = self.calls[place]
            self._end_visit(self.schedule.nodes[place], call.visit, call.attempts, call.retried)

    # Snapshots ------------------------------------------------------------------------------------------------------

    def restore(self, kept: RunSnapshot, recall: Recall) -> None:
        """Stand as the snapshot says, once the events before it were recalled. Raises LookupError, ValueError."""
        for name in AS_THEY_ARE:
            setattr(self, name, getattr(kept, name))
        self._cleanup = deque(kept.cleanup) if kept.cleanup is not None else None
        self.started = recall.of(ev.RunStarted, kept.started)
        self.rejection = recall.rejection(kept.rejection)
        self.judged = recall.of(ev.CriteriaJudged, kept.judged)
        self.cancelled = recall.of(ev.CancelAsked, kept.cancelled)
        for seq in kept.open:
            self.approvals.ask(recall.asked(seq))
        self.approvals.handed_on.update(dict.fromkeys(kept.handed_on))
        self._approved = {place: recall.asked(seq) for place, seq in kept.approved}
        self.calls = {place: recall.calls[place] for place in kept.calls}
        self.interrupted = frozenset(kept.interrupted)
        if kept.schedule is not None:
            self.schedule.restore(kept.schedule)
            self.context.keep_views(kept.views)
        for place in kept.limited:
            self.schedule.nodes[place].error = recall.limited[place]
        stand(self, kept.phase)


_CHANGES: dict[type[ev.Event], Callable[[Run, Any], None]] = {
    ev.RunStarted: Run._run_started,
    ev.PlanAdopted: Run._plan_adopted,
    ev.PlanRejected: Run._plan_rejected,
    ev.PhaseChanged: Run._phase_changed,
    ev.TaskStarted: Run._task_started,
    ev.TaskEvaluated: Run._task_evaluated,
    ev.ContextChanged: Run._context_changed,
    ev.TaskSkipped: Run._task_skipped,
    ev.VisitRefused: Run._visit_refused,
    ev.VisitDiscarded: Run._visit_discarded,
    ev.ApprovalAsked: Run._approval_asked,
    ev.ApprovalHandedOn: Run._approval_handed_on,
    ev.ApprovalDecided: Run._approval_decided,
    ev.CriteriaJudged: Run._criteria_judged,
    ev.PauseAsked: Run._pause_wanted,
    ev.CancelAsked: Run._cancel_wanted,
    ev.LimitPassed: Run._limit_passed,
    ev.AttemptFailed: Run._attempt_failed,
    ev.AttemptStarted: Run._attempt_started,
    ev.TaskInterrupted: Run._task_interrupted,
    ev.RunTakenUp: Run._taken_up,
    ev.RunForked: Run._run_forked,
    ev.DecisionIgnored: Run._nothing,
    ev.CallAbandoned: Run._nothing,
    ev.LoopBlocked: Run._nothing,
    ev.Progress: Run._nothing,
    ev.TaskLogged: Run._nothing,
    ev.FilterApplied: Run._nothing,
    ev.RunFinished: Run._run_finished,
    ev.RolledBack: Run._rolled_back,
    **rollback.CHANGES,
}
