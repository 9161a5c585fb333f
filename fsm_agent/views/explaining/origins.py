"""Why a task had its turn: what made it active, and how its dependencies stood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fsm_agent.core.nodes import EdgeState
from fsm_agent.core.run import Run
from fsm_agent.plan.graph import Graph, JoinRule
from fsm_agent.views.explaining.case import Case
from fsm_agent.views.explaining.facts import Fact, Telling, counted, listed
from fsm_agent.views.explaining.history import Jump

FIRED: Final = EdgeState.FIRED

_RULES: Final[dict[JoinRule, str]] = {
    "all": "none may fail, and one must be taken",
    "any": "one must go well",
    "all_done": "all must be settled, and one taken",
    "sequential": "the last that was taken must go well",
}
"""What each join asks of the dependencies."""


def origin(case: Case, run: Run, jump: Jump | None) -> Telling:
    """Why the task had its turn, in the run as it was just before."""
    if case.history.ended is not None and run.seq >= case.history.ended.seq:
        text = "the run was ending, and this is a clean-up task: it has its turn however its dependencies stand"
        facts = [Fact("ending", text, case.history.ended.seq), *dependencies(case, run)]
        return Telling("it was due as clean-up of a run that was ending", facts)
    active = activity(case, run, jump)
    facts = [*active.facts, *dependencies(case, run)]
    before = case.graph.dependencies[case.place]
    if not before or (jump is not None and active.facts):
        return Telling(active.summary, facts)
    names = listed(map(case.name, before), len(before))
    after = f"its dependencies let it ({names}; join {case.graph.joins[case.place]})"
    is_entry = not case.graph.is_target(case.place)
    return Telling(after if is_entry else f"{active.summary}, and {after}", facts)


def activity(case: Case, run: Run, jump: Jump | None) -> Telling:
    """What made the task active: a jump, a branch, or nothing but the plan."""
    told = []
    words = ""
    if jump is not None:
        words = f"{case.jumped(jump)} (round {jump.round})"
        reset = "" if jump.target == case.place else ", which reset this task as well"
        told.append(Fact("loop", f"{case.jumped(jump)}{reset}: round {jump.round} began", jump.seq))
    if not case.graph.is_target(case.place):
        if jump is None:
            told.append(Fact("active", "no branch leads to it: its dependencies alone decide"))
        return Telling(words or "nothing is before it", told)
    if run.schedule.nodes[case.place].forced:
        return Telling(words, told)
    fired = [(source, kind) for source, kind, state in edges_into(case.graph, run, case.place) if state is FIRED]
    for source, kind in fired:
        text = f"{kind} of {case.name(source)} led to it: {case.name(source)} was {case.standing(run, source)}"
        told.append(Fact("active", text, case.settled_at(run, source)))
    names = listed((f"{kind} of {case.name(source)}" for source, kind in fired), len(fired))
    branch = f"{names} led to it" if fired else "it counts as active: all that leads to it is clean-up"
    return Telling(f"{words}, and {branch}" if words else branch, told)


def edges_into(graph: Graph, run: Run, place: int) -> list[tuple[int, str, EdgeState]]:
    """The forward branch edges into a task: source, key, and what has become of each."""
    found = []
    nodes = run.schedule.nodes
    for source in dict.fromkeys(graph.branch_sources[place]):
        if graph.on_success[source] == place and not graph.success_back[source]:
            found.append((source, "on_success", nodes[source].success_edge))
        if graph.on_failure[source] == place and not graph.failure_back[source]:
            found.append((source, "on_failure", nodes[source].failure_edge))
    return found


def dependencies(case: Case, run: Run, told: Sequence[int] = ()) -> list[Fact]:
    """Each dependency with its status (but for those that are told already), the join over them, and the soft ones."""
    graph, place = case.graph, case.place
    before = graph.dependencies[place]
    known = set(told)
    facts = case.standings(run, [each for each in before if each not in known], "dependency", "dependency")
    if before:
        nodes = run.schedule.nodes
        settled = sum(nodes[each].settled for each in before)
        rule = graph.joins[place]
        of_all = f"{settled:,} of {counted(len(before), 'dependency', 'dependencies')} settled"
        implied = "; flow: sequential implies them" if graph.implied[place] else ""
        facts.append(Fact("join", f"join {rule} ({_RULES[rule]}): {of_all}{implied}"))
    return [*facts, *case.standings(run, graph.soft[place], "dependency", "soft dependency")]
