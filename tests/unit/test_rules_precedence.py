"""What is said about before and after holds in every run of the reference interpreter."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import pytest

from fsm_agent.plan.graph import Graph
from fsm_agent.plan.loader import check_plan
from fsm_agent.plan.precedence import Forks, ancestors, jumped_to, necessarily_after
from tests.reference import random_plan
from tests.reference.interpreter import Interpreter, Visit


def graph_of(plan: dict[str, Any]) -> Graph:
    graph = check_plan(plan).graph
    assert graph is not None
    return graph


class Witness(Interpreter):
    """A run that looks, at each visit, for results that are said to be impossible."""

    def __init__(self, plan: dict[str, Any], outcomes: dict[str, list[Any]]) -> None:
        super().__init__(plan, outcomes, "")
        graph = graph_of(plan)
        pairs = necessarily_after(graph, set(permutations(range(len(graph.ids)), 2)))
        self.later = {(graph.ids[first], graph.ids[second]) for first, second in pairs}
        self.contradictions: list[tuple[str, str]] = []

    def _visit(self, name: str, condition: bool | None) -> Visit:
        there = [other for other, status in self.state.status.items() if status in ("SUCCEEDED", "FAILED")]
        self.contradictions += [(name, other) for other in there if (name, other) in self.later]
        return super()._visit(name, condition)


@pytest.mark.parametrize("block", range(4))
def test_a_result_that_is_called_impossible_is_never_there(block: int) -> None:
    claims = 0
    for seed in range(block * 100, block * 100 + 100):
        plan, outcomes = random_plan(random.Random(seed))
        witness = Witness(plan, outcomes)
        witness.run()
        assert witness.contradictions == [], f"seed {seed}"
        claims += len(witness.later)
    assert claims > 100


@pytest.mark.parametrize("block", range(4))
def test_two_tasks_that_a_fork_keeps_apart_never_both_run(block: int) -> None:
    claims = 0
    for seed in range(block * 100, block * 100 + 100):
        plan, outcomes = random_plan(random.Random(seed))
        graph = graph_of(plan)
        forks = Forks(graph)
        apart = [pair for pair in permutations(range(len(graph.ids)), 2) if forks.exclude(*pair)]
        claims += len(apart)
        if jumped_to(graph):
            continue  # over the rounds of a loop both may run, but not at the same time
        ran = {name for name, what in Interpreter(plan, outcomes, "").run().trace if what != "skip"}
        assert [pair for pair in apart if {graph.ids[place] for place in pair} <= ran] == [], f"seed {seed}"
    assert claims > 10


def test_ancestors_are_all_that_lead_to_a_task() -> None:
    for seed in range(100):
        plan, _ = random_plan(random.Random(seed))
        graph = graph_of(plan)
        places = list(range(len(graph.ids)))
        before = ancestors(graph, places)
        for first, second in permutations(places, 2):
            assert bool(before[second] >> first & 1) == (second in graph.reachable(first))
