"""Tasks that had no turn because of what became of others: no branch led to them, or what they need has failed."""

from __future__ import annotations

from collections.abc import Sequence

from fsm_agent.core.nodes import EdgeState
from fsm_agent.views.explaining.case import Case
from fsm_agent.views.explaining.causes import bad, chain, deciders
from fsm_agent.views.explaining.facts import MOST_LISTED, Fact, Telling, listed
from fsm_agent.views.explaining.origins import activity, dependencies, edges_into

_MOST_STEPS = 6
"""So many steps to the root of a skip are named."""


def not_taken(case: Case) -> Telling:
    """No branch led to the task; or nothing that it depends on was taken."""
    run, place = case.now, case.place
    if not case.graph.is_target(place) or run.schedule.is_active(place):
        facts = [*activity(case, run, case.history.jump).facts, *dependencies(case, run)]
        before = deciders(run, place)
        names = listed(map(case.name, before), len(before))
        return Telling(f"its join cannot hold: nothing that it depends on was taken ({names})", [*facts, *_root(case)])
    edges = edges_into(case.graph, run, place)
    facts = [_dead(case, source, key, state) for source, key, state in edges[:MOST_LISTED]]
    if len(edges) > MOST_LISTED:
        facts.append(Fact("omitted", f"… and {len(edges) - MOST_LISTED:,} more branches, none of which fired"))
    whys = (f"{key} of {case.name(source)}, which is {case.standing(run, source)}" for source, key, _ in edges)
    return Telling(f"no branch led to it: not {listed(whys, len(edges))}", [*facts, *_root(case)])


def upstream_failed(case: Case) -> Telling:
    """What the task depends on has failed."""
    run = case.now
    failed = bad(run, case.graph, case.place)
    facts = [*activity(case, run, case.history.jump).facts, *case.standings(run, failed, "skip", "it needs")]
    names = listed((f"{case.name(each)}: {case.standing(run, each)}" for each in failed), len(failed))
    return Telling(f"what it depends on has failed ({names})", [*facts, *dependencies(case, run, failed), *_root(case)])


def _dead(case: Case, source: int, key: str, state: EdgeState) -> Fact:
    what = "fired too late" if state is EdgeState.FIRED else "is dead"
    text = f"{key} of {case.name(source)} {what}: {case.name(source)} is {case.standing(case.now, source)}"
    return Fact("skip", text, case.settled_at(case.now, source))


def _root(case: Case) -> Sequence[Fact]:
    """Where it began, if not right before the task."""
    steps = chain(case.now, case.place)
    if len(steps) < 3:
        return ()
    root = steps[-1]
    between = steps[1:-1]
    way = listed(map(case.name, between[:_MOST_STEPS]), len(between))
    text = f"it began with {case.name(root)}: {case.standing(case.now, root)} (by way of {way})"
    return [Fact("skip", text, case.settled_at(case.now, root))]
