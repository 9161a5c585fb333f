"""What a task waits for that is not settled: other tasks, a loop, its turn, a person, the end of its call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fsm_agent.core import events as ev
from fsm_agent.core.approvals import ALLOWED
from fsm_agent.core.nodes import EdgeState
from fsm_agent.plan.graph import NONE
from fsm_agent.views.explaining.case import Case, moment
from fsm_agent.views.explaining.facts import MOST_LISTED, Fact, Telling, counted, listed
from fsm_agent.views.explaining.origins import activity, edges_into
from fsm_agent.views.explaining.values import parameters_of
from fsm_agent.views.explaining.walks import above

_VERBS: Final[dict[ev.Verdict, str]] = {"approved": "approve", "rejected": "reject"}


# PENDING --------------------------------------------------------------------------------------------------------------


def pending(case: Case) -> Telling:
    """What a task that has not had its turn waits for."""
    run, graph, place = case.now, case.graph, case.place
    told = [*_not_begun(case), *_own_call(case)]
    active = activity(case, run, case.history.jump)
    if not run.schedule.is_active(place):
        told.append(_branches(case))
        facts = [fact for fact in active.facts if fact.kind == "loop"]
    else:
        nodes = run.schedule.nodes
        facts = list(active.facts)
        for words, places in (("dependency", graph.dependencies[place]), ("soft dependency", graph.soft[place])):
            left = [each for each in places if not nodes[each].settled]
            if left:
                told.append(_unsettled(case, words, left, len(places)))
        told += [*_loops(case), *_holds(case)]
    facts += [fact for each in told for fact in each.facts]
    root = _root(case)
    if root is not None:
        facts.append(Fact("wait", f"at the root of it, {case.name(root)} is {case.standing(run, root)}"))
    return Telling("it waits: " + "; ".join(each.summary for each in told) if told else "it has not run yet", facts)


def _not_begun(case: Case) -> list[Telling]:
    run = case.now
    if run.executed:
        return []
    text = f"the plan is not taken up yet, the run is {run.phase}"
    asked = next((asked for asked in run.approvals.open.values() if asked.kind == "plan"), None)
    if asked is not None:
        text = f"a person must agree to the plan first (approval {asked.approval})"
    return [Telling(text, [Fact("wait", text, asked.seq if asked is not None else None)])]


def _own_call(case: Case) -> list[Telling]:
    if case.place not in case.now.running:
        return []
    text = (
        f"a call of its visit {case.node.visits} still runs, though a jump has reset the task; its outcome is dropped"
    )
    return [Telling(text, [Fact("wait", text)])]


def _branches(case: Case) -> Telling:
    """Which branches could still lead to the task."""
    edges = edges_into(case.graph, case.now, case.place)
    live = [(source, key) for source, key, state in edges if state is EdgeState.UNDECIDED]
    facts = []
    for source, key, state in edges[:MOST_LISTED]:
        dead = state is EdgeState.DEAD
        what = "does not lead here any more" if dead else "could still lead here"
        text = f"{key} of {case.name(source)} {what}: {case.name(source)} is {case.standing(case.now, source)}"
        facts.append(Fact("wait", text, case.settled_at(case.now, source) if dead else None))
    if len(edges) > MOST_LISTED:
        facts.append(Fact("omitted", f"… and {len(edges) - MOST_LISTED:,} more branches"))
    names = listed((f"{key} of {case.name(source)}" for source, key in live), len(live))
    return Telling(f"no branch has led to it yet ({names} still could)", facts)


def _unsettled(case: Case, words: str, left: Sequence[int], total: int) -> Telling:
    run = case.now
    names = (f"{case.name(each)} ({run.schedule.nodes[each].status})" for each in left)
    plural = words.removesuffix("y") + "ies"
    rule = f", join {case.graph.joins[case.place]}" if words == "dependency" else ""
    text = f"{len(left):,} of {counted(total, words, plural)} not settled{rule}"
    facts = [Fact("join" if rule else "wait", text), *case.standings(run, left, "wait", f"it waits for {words}")]
    return Telling(f"for {words if len(left) == 1 else plural} {listed(names, len(left))}", facts)


def _loops(case: Case) -> list[Telling]:
    """Loops before the task that may still jump, and the tasks that could make them."""
    graph, run = case.graph, case.now
    if not graph.jumpers:
        return []
    own = graph.component_of[case.place]
    loops = dict.fromkeys(graph.component_of[each] for each in sorted(above(graph, case.place)))
    told = []
    for loop in loops:
        loud = [each for each in graph.jumpers.get(loop, ()) if not run.schedule.nodes[each].settled]
        if loud and loop != own:
            names = listed((f"{case.name(each)} ({run.schedule.nodes[each].status})" for each in loud), len(loud))
            text = f"a loop before it may still jump back, by {names}"
            told.append(Telling(text, [Fact("loop", text)]))
    return told


def _holds(case: Case) -> list[Telling]:
    others = [each for each in case.now.schedule.held_by(case.place) if each != case.place]
    if not others:
        return []
    text = f"a jump waits for the end of what ran when it happened: {listed(map(case.name, others), len(others))}"
    return [Telling(text, [Fact("loop", text)])]


def _root(case: Case) -> int | None:
    """The task that is not merely waiting for others, some steps above one that is waited for; None if it is that."""
    nodes = case.now.schedule.nodes
    seen: set[int] = set()
    here: int | None = case.place
    while here is not None and here not in seen and nodes[here].status == "PENDING":
        seen.add(here)
        here = _next_above(case, here)
    return here if here is not None and here not in seen and len(seen) > 1 else None


def _next_above(case: Case, place: int) -> int | None:
    graph, nodes = case.graph, case.now.schedule.nodes
    if not case.now.schedule.is_active(place):
        edges = edges_into(graph, case.now, place)
        return next((source for source, _, state in edges if state is EdgeState.UNDECIDED), None)
    before = (*graph.dependencies[place], *graph.soft[place])
    return next((each for each in before if not nodes[each].settled), None)


# READY ----------------------------------------------------------------------------------------------------------------


def ready(case: Case) -> Telling:
    """What keeps a task that could run from its turn."""
    told = [*_not_begun(case), *_paused(case), *_slots(case), *_locks(case)] or [_queue(case)]
    facts = [fact for each in told for fact in each.facts]
    consent = case.now.approved(case.place)
    if consent is not None:
        facts.insert(0, Fact("approval", f"a person has agreed to its next visit (approval {consent.approval})"))
    return Telling("it is ready, and waits: " + "; ".join(each.summary for each in told), facts)


def _paused(case: Case) -> list[Telling]:
    run, asked = case.now, case.history.pause
    if not run.pause_asked and run.phase != "paused":
        return []
    state = "the run is paused" if run.phase == "paused" else "a pause was asked for"
    by = case.by(asked.by, asked.why) if asked is not None else ""
    text = state + (f"{by}" if by else "")
    return [Telling(text, [Fact("wait", text, asked.seq if asked is not None else None)])]


def _slots(case: Case) -> list[Telling]:
    turns = case.now.schedule.turns
    if len(turns.running) < turns.max_parallel:
        return []
    names = listed(map(case.name, sorted(turns.running)), len(turns.running))
    text = f"{len(turns.running):,} of {counted(turns.max_parallel, 'slot')} taken, by {names}"
    return [Telling(text, [Fact("wait", text)])]


def _locks(case: Case) -> list[Telling]:
    graph, told = case.graph, []
    for lock in graph.locks.get(case.place, ()):
        holder = next((each for each in case.now.running if lock in graph.locks.get(each, ())), NONE)
        if holder != NONE:
            text = f"lock {lock!r} is held by {case.name(holder)}"
            told.append(Telling(text, [Fact("wait", text)]))
    return told


def _queue(case: Case) -> Telling:
    ranks = case.graph.ranks
    nodes = case.now.schedule.nodes
    earlier = [each.place for each in nodes if each.status == "READY" and ranks[each.place] < ranks[case.place]]
    names = listed(map(case.name, sorted(earlier, key=ranks.__getitem__)), len(earlier))
    text = f"before it, by priority and place in the plan, are {names}" if earlier else "its turn is next"
    return Telling(text, [Fact("wait", text)])


# RUNNING, WAITING_APPROVAL --------------------------------------------------------------------------------------------


def running(case: Case) -> Telling:
    """Which call is under way. Its facts are those of the turn."""
    turn = case.history.last
    started = turn.started if turn is not None else None
    if turn is None or started is None:
        return Telling("it is running")
    calls = [event for event in turn.events if isinstance(event, _CALLS)]
    words = f"it has been running since {moment(started.at)}: visit {started.visit}"
    return Telling(f"{words}, {_attempt(calls[-1] if calls else None)}")


_CALLS: Final = (ev.AttemptStarted, ev.AttemptFailed, ev.TaskInterrupted)


def _attempt(last: ev.Event | None) -> str:
    match last:
        case ev.AttemptStarted(attempt=attempt, fallback=fallback):
            return f"attempt {attempt}" + (", its fallback" if fallback else "")
        case ev.AttemptFailed(then="retry", attempt=attempt, delay=delay, at=at):
            return f"attempt {attempt + 1}, due at {moment(at + delay)}"
        case ev.AttemptFailed():
            return "its fallback"
        case ev.TaskInterrupted(attempt=attempt):
            return f"attempt {attempt} was interrupted"
        case _:
            return "attempt 1"


def approval(case: Case) -> Telling:
    """Which question waits, since when and until when, who is asked and what may be said."""
    run = case.now
    asked = next((each for each in run.approvals.open.values() if each.task == case.task), None)
    if asked is None:
        text = "it failed, and a person is about to be asked"
        return Telling(text, [Fact("wait", text)])
    words = [_VERBS.get(verdict, verdict) for verdict in ALLOWED[asked.kind] if verdict != "expired"]
    asks_approver = asked.approver and asked.approval not in run.approvals.handed_on
    who = "the approver of the process that drives the run" if asks_approver else "a person"
    until = f", until {moment(asked.expires_at)}" if asked.expires_at is not None else ""
    text = f"it waits for {who} since {moment(asked.at)}{until}: {' | '.join(words)} ({asked.kind}, {asked.approval})"
    values = case.values(parameters_of(asked.parameters))
    failed = [Fact("failure", case.error(asked.error), asked.seq)] if asked.error is not None else []
    return Telling(text, [*failed, Fact("wait", text, asked.seq, values)])
