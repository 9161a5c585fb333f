"""What follows from other tasks is no event: here it is traced to the events that it follows from."""

from __future__ import annotations

from collections.abc import Sequence

from fsm_agent.core.run import Run
from fsm_agent.plan.graph import Graph
from fsm_agent.views.explaining.history import History


def follows_from_others(run: Run, place: int) -> bool:
    """Whether the task was skipped for what became of others."""
    return run.schedule.nodes[place].reason in ("not_taken", "upstream_failed")


def deciders(run: Run, place: int) -> Sequence[int]:
    """The tasks that decide about one which had no turn: those whose branches lead to it, else its dependencies."""
    graph = run.compiled.graph
    if graph.is_target(place) and not run.schedule.is_active(place):
        return tuple(dict.fromkeys(graph.branch_sources[place]))
    return graph.dependencies[place]


def bad(run: Run, graph: Graph, place: int) -> list[int]:
    """The dependencies for which a task is `upstream_failed`: failed or so themselves, and not its own to handle."""
    nodes = run.schedule.nodes
    return [
        each
        for each in graph.dependencies[place]
        if (nodes[each].status == "FAILED" or nodes[each].reason == "upstream_failed")
        and graph.on_failure[each] != place
    ]


def chain(run: Run, place: int) -> list[int]:
    """From a task that was skipped for what became of others, one step up after the other, to one that had its turn."""
    found = [place]
    while follows_from_others(run, found[-1]):
        above = _first_cause(run, found[-1])
        if above is None:
            break
        found.append(above)
    return found


def _first_cause(run: Run, place: int) -> int | None:
    """The one to blame among those that decided: one that had its turn, if there is one."""
    among = bad(run, run.compiled.graph, place) if run.schedule.nodes[place].reason == "upstream_failed" else []
    among = among or list(deciders(run, place))
    return next((each for each in among if not follows_from_others(run, each)), among[0] if among else None)


def settled_at(run: Run, place: int, history: History, known: dict[int, int | None]) -> int | None:
    """The event by which a task stands as it does; where that follows from others, the last of theirs.

    `known` keeps what was found for this moment of the run.
    """
    todo = [place]
    while todo:
        here = todo[-1]
        if here in known:
            todo.pop()
            continue
        if not follows_from_others(run, here):
            known[here] = history.settled_before(run.compiled.graph.ids[here], run.seq + 1)
            continue
        above = [each for each in deciders(run, here) if run.schedule.nodes[each].settled]
        missing = [each for each in above if each not in known]
        if missing:
            todo.extend(missing)
        else:
            known[here] = max((seq for each in above if (seq := known[each]) is not None), default=None)
    return known[place]
