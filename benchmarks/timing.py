"""How it is measured: in turn, round by round, after a collection, with medians of ratios taken within a round."""

import asyncio
import gc
import statistics
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from .workloads import Contestant, Once, Tally, Workload

Samples = dict[str, list[float]]


@dataclass(frozen=True)
class Timed:
    """Something to time: `repeat` runs of a workload at a time, one after another or all at once."""

    once: Once
    tally: Tally
    visits: int
    repeat: int = 1
    at_once: bool = False

    async def act(self) -> object:
        """Make the runs; their results are kept until the caller lets go of them."""
        if self.at_once:
            return await asyncio.gather(*(self.once() for _ in range(self.repeat)))
        return [await self.once() for _ in range(self.repeat)]

    def check(self, calls_before: int) -> None:
        """Raise if not every skill was called."""
        made, wanted = self.tally.calls - calls_before, self.visits * self.repeat
        if made != wanted:
            raise RuntimeError(f"{made} skill calls were made where the plan has {wanted}")


def prepare(contestant: Contestant, workload: Workload, repeat: int = 1, at_once: bool = False) -> Timed:
    """Let a contestant build its plan or graph, which no timing counts."""
    tally = Tally()
    return Timed(contestant.prepare(workload, tally), tally, workload.visits, repeat, at_once)


async def interleaved(timed: Mapping[str, Timed], rounds: int) -> Samples:
    """Seconds of every round of each; the first, not counted, warms up. The order moves on by one each round."""
    names = list(timed)
    samples: Samples = {name: [] for name in names}
    for name in names:
        await _seconds(timed[name])
    for turn in range(rounds):
        for name in rotated(names, turn):
            samples[name].append(await _seconds(timed[name]))
    return samples


async def _seconds(timed: Timed) -> float:
    calls = timed.tally.calls
    gc.collect()
    start = perf_counter()
    results = await timed.act()
    seconds = perf_counter() - start
    del results
    timed.check(calls)
    return seconds


async def peak_memory(timed: Timed) -> float:
    """The most that Python's allocator held during the runs, above what it held before, in MB."""
    calls = timed.tally.calls
    gc.collect()
    tracemalloc.start()
    try:
        results = await timed.act()
        peak = tracemalloc.get_traced_memory()[1]
        del results
    finally:
        tracemalloc.stop()
    timed.check(calls)
    return peak / 1e6


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """The names, begun at a later one each turn, so that no one always follows the same neighbour."""
    start = turn % len(names)
    return [*names[start:], *names[:start]]


def ratio(samples: Samples, name: str, base: str) -> float:
    """The median of the ratios of each round: what drifts between rounds falls out."""
    return statistics.median(mine / other for mine, other in zip(samples[name], samples[base], strict=True))
