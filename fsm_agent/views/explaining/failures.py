"""What became of a failure: an edge took it up, its recovery did, or it ended the run."""

from __future__ import annotations

from fsm_agent.core import events as ev
from fsm_agent.core.nodes import EdgeState
from fsm_agent.plan.graph import NONE
from fsm_agent.views.explaining.case import Case
from fsm_agent.views.explaining.endings import how_it_ended
from fsm_agent.views.explaining.facts import Fact, Telling


def failed(case: Case) -> Telling:
    """A FAILED task: its error, and what became of that."""
    node = case.node
    seq = case.settled_at(case.now, case.place)
    became = _what_became(case, seq)
    if node.false_decision:
        return Telling(became.text, [became])
    error = case.error(node.error) if node.error is not None else "failed"
    return Telling(f"{error}; {became.text}", [became])


def skipped_as_optional(case: Case) -> Telling:
    """A task that failed, and whose recovery is to skip it."""
    node = case.node
    seq = case.settled_at(case.now, case.place)
    error = case.error(node.error) if node.error is not None else "its verification was false"
    text = f"no edge took that up, and its recovery is skip ({_whose_word(case)}): the flow goes on"
    facts = [*_used_up(case, seq), Fact("failure", text, seq)]
    return Telling(f"it failed ({error}), and its recovery is skip ({_whose_word(case)})", facts)


def _what_became(case: Case, seq: int | None) -> Fact:
    run, place, graph = case.now, case.place, case.graph
    ending, ended = run.ending, case.history.ended
    if ending is not None and ending.kind == "abort" and ending.task == case.task:
        whose = f"its recovery is abort ({_whose_word(case)})" if not _left_failed(case) else "a person let it fail"
        return Fact("failure", f"no edge took that up, and {whose}: it ended the run", seq)
    if ended is not None and seq is not None and seq > ended.seq:
        how = how_it_ended(case).text
        return Fact("failure", f"{how}, and how a task ends then changes nothing: no edge fires", ended.seq)
    if case.node.failure_edge is EdgeState.FIRED:
        return _by_edge(case, seq, graph.on_failure[place])
    if case.node.false_decision:
        return Fact("failure", "that is no failure: its on_success is not taken, and there is no else branch", seq)
    return Fact("failure", "nothing has taken that up", seq)


def _left_failed(case: Case) -> bool:
    turn = case.history.last
    last = turn.events[-1] if turn is not None else None
    return isinstance(last, ev.ApprovalDecided) and last.decision == "fail"


def _by_edge(case: Case, seq: int | None, target: int) -> Fact:
    to = case.name(target)
    if case.graph.failure_back[case.place]:
        return Fact("failure", f"its on_failure jumped back to {to}", seq)
    handler = case.now.schedule.nodes[target]
    stands = case.standing(case.now, target)
    if case.node.false_decision:
        return Fact(
            "failure", f"that is no failure: its on_failure is the else branch, and leads to {to} ({stands})", seq
        )
    if handler.reason in ("not_taken", "upstream_failed"):
        return Fact("failure", f"its on_failure led to {to}, but that is {stands}: it is not handled after all", seq)
    return Fact("failure", f"it is handled: its on_failure led to {to} ({stands})", seq)


def _used_up(case: Case, seq: int | None) -> list[Fact]:
    """A jump back that was not taken because its target has had all its visits."""
    graph, place = case.graph, case.place
    target = graph.on_failure[place]
    if target == NONE or not graph.failure_back[place]:
        return []
    visits, most = case.now.schedule.nodes[target].visits, case.now.task(target).task.max_visits
    if visits < most:
        return []
    text = (
        f"its on_failure did not jump back to {case.name(target)}, which has had {visits} of {most} visits (max_visits)"
    )
    return [Fact("failure", text, seq)]


def _whose_word(case: Case) -> str:
    """Where the recovery of the task is from."""
    task, plan = case.compiled.task, case.now.compiled.plan
    if task.recovery is not None:
        return "the task's own"
    if plan.recovery == "by_priority":
        return f"the plan's by_priority, and the task's priority is {task.priority}"
    if plan.recovery is not None:
        return "the plan's"
    return f"the default for priority {task.priority}"
