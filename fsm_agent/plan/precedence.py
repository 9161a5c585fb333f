"""What comes before what: questions about order in a plan whose forward edges have no cycle.

Sets of tasks are kept as the bits of one number, a batch of tasks at a time: a plan of 10,000 tasks takes one pass a
batch, not one a pair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import and_, or_

from fsm_agent.plan.graph import NONE, Graph

BATCH = 2_048
"""How many tasks are looked at in one pass."""

MOST_FORKS = 8_192
"""In a plan with more forks than this, it is not worked out which tasks they keep apart."""


def ranks(graph: Graph) -> list[int]:
    """For each place, its number in the order of the graph."""
    numbers = [0] * len(graph.order)
    for number, place in enumerate(graph.order):
        numbers[place] = number
    return numbers


def jumped_to(graph: Graph) -> set[int]:
    """The places that some back edge leads to."""
    edges = ((graph.on_success, graph.success_back), (graph.on_failure, graph.failure_back))
    return {targets[place] for targets, backs in edges for place, back in enumerate(backs) if back}


def necessarily_after(graph: Graph, pairs: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Of pairs (t, x), those in which x cannot have run before t in any run: it waits for t, directly or not."""
    rank = ranks(graph)
    open_pairs = [(first, second) for first, second in pairs if rank[first] < rank[second]]
    found: set[tuple[int, int]] = set()
    for batch in _batches(dict.fromkeys(first for first, _ in open_pairs)):
        bits = {place: 1 << number for number, place in enumerate(batch)}
        waits = _waits(graph, bits)
        found.update((t, x) for t, x in open_pairs if t in bits and waits[x] & bits[t])
    return found


def ancestors(graph: Graph, places: Sequence[int]) -> list[int]:
    """For each place of the plan, which of the given `places` lead to it; bit n stands for `places[n]`."""
    bits = {place: 1 << number for number, place in enumerate(places)}
    before = [0] * len(graph.ids)
    for place in graph.order:
        mask = before[place] | bits.get(place, 0)
        if mask:
            for target in graph.successors[place]:
                before[target] |= mask
    return before


class Forks:
    """Which branches must have been taken for a task to run: two tasks on both sides of a fork never both run."""

    def __init__(self, graph: Graph) -> None:
        self._jumped_to = jumped_to(graph)
        forks = [place for place in graph.order if _forks(graph, place)]
        self.too_many = len(forks) > MOST_FORKS
        self._bits = {place: 1 << (2 * number) for number, place in enumerate(forks[:MOST_FORKS])}
        self._success_bits = sum(self._bits.values())
        self._taken = [0] * len(graph.ids)
        for place in () if self.too_many else graph.order:
            self._taken[place] = self._activation(graph, place) | self._dependencies(graph, place)

    def exclude(self, first: int, second: int) -> bool:
        """Whether a fork leads to one task or the other. With too many forks to know, any two may be apart."""
        if self.too_many:
            return True
        one, other = self._taken[first], self._taken[second]
        success = self._success_bits
        return bool(((one & success) << 1 & other) | ((other & success) << 1 & one))

    def _activation(self, graph: Graph, place: int) -> int:
        if place in self._jumped_to:
            return 0
        ways = []
        for source in set(graph.branch_sources[place]):
            bit = self._bits.get(source, 0)
            if graph.on_success[source] == place:
                ways.append(self._taken[source] | bit)
            if graph.on_failure[source] == place:
                ways.append(self._taken[source] | bit << 1)
        return _all_of(ways)

    def _dependencies(self, graph: Graph, place: int) -> int:
        return _all_of(self._taken[source] for source in graph.dependencies[place])


def _forks(graph: Graph, place: int) -> bool:
    success, failure = graph.on_success[place], graph.on_failure[place]
    back = graph.success_back[place] or graph.failure_back[place]
    return NONE not in (success, failure) and success != failure and not back


def _waits(graph: Graph, bits: dict[int, int]) -> list[int]:
    """For each place, the bits of the tasks that are settled whenever it is started."""
    waits = [0] * len(graph.ids)
    settled = [0] * len(graph.ids)  # the bits of those that are settled whenever it is settled, its own included
    jumped = jumped_to(graph)
    for place in graph.order:
        sources = [settled[source] for source in graph.branch_sources[place]]
        dependencies = [settled[source] for source in graph.dependencies[place]]
        active = _all_of(sources) if place not in jumped else 0
        needed = _all_of(dependencies) if graph.joins[place] == "any" else _any_of(dependencies)
        waits[place] = active | needed | _any_of(settled[source] for source in graph.soft[place])
        over = waits[place]
        if dependencies:  # it may be skipped, when all of them are settled
            over &= active | _any_of(dependencies)
        if sources:  # nothing may lead to it: then it is skipped without waiting for its dependencies
            over &= _any_of(sources)
        settled[place] = over | bits.get(place, 0)
    return waits


def _all_of(masks: Iterable[int]) -> int:
    found = list(masks)
    return reduce(and_, found) if found else 0


def _any_of(masks: Iterable[int]) -> int:
    return reduce(or_, masks, 0)


def _batches(places: Iterable[int]) -> Iterator[list[int]]:
    rest = iter(places)
    while batch := list(islice(rest, BATCH)):
        yield batch
