"""Warnings about the order of things: branches upwards, loops, clean-up, and writes at the same time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from fsm_agent.plan.compiled import writes_of
from fsm_agent.plan.findings import Finding, Path, shown, warning
from fsm_agent.plan.graph import NONE
from fsm_agent.plan.precedence import BATCH, Forks, ancestors, ranks
from fsm_agent.plan.rules.subject import Subject

_MOST_TRIED = 100
"""How many tasks are looked at for one that runs at the same time as another one and writes the same key."""


def backward_branches(subject: Subject) -> Iterator[Finding]:
    """A branch to a task listed earlier that is no jump back: it makes that task wait for it."""
    graph = subject.graph
    for field, targets, backs in (
        ("on_success", graph.on_success, graph.success_back),
        ("on_failure", graph.on_failure, graph.failure_back),
    ):
        for place, target in enumerate(targets):
            if NONE != target < place and not backs[place]:
                message = (
                    f"{shown(graph.ids[target])} is listed earlier, but nothing leads from it back here: this is no "
                    "loop, and that task runs only when this branch is taken"
                )
                hint = "list it later; for a loop, let this task depend on it"
                yield warning("backward_branch", ("tasks", place, field), message, hint)


def once_after_loop(subject: Subject) -> Iterator[Finding]:
    """A task that depends on tasks of a loop, none of which jumps: it runs once, when the loop has ended."""
    graph = subject.graph
    if not graph.jumpers:
        return
    for place in range(len(graph.ids)):
        own = graph.component_of[place]
        loops: dict[int, list[int]] = defaultdict(list)
        for source in (*graph.dependencies[place], *graph.soft[place]):
            if graph.in_loop(source) and graph.component_of[source] != own:
                loops[graph.component_of[source]].append(source)
        for loop, sources in loops.items():
            if not any(graph.success_back[source] or graph.failure_back[source] for source in sources):
                jumper = shown(graph.ids[graph.jumpers[loop][0]])
                message = f"{shown(graph.ids[sources[0]])} is on a loop; this task runs once, after the loop has ended"
                hint = f"to run it every round, let {jumper} depend on it; to run it once, depend on {jumper}"
                yield warning("once_after_loop", ("tasks", place, "dependencies"), message, hint)


def cleanup_not_last(subject: Subject) -> Iterator[Finding]:
    """A task that waits for all to be done, as clean-up does, but other work follows it."""
    graph = subject.graph
    if graph.cycle:
        return
    finalizers = set(graph.finalizers)
    for place, join in enumerate(graph.joins):
        if join != "all_done" or not graph.dependencies[place] or place in finalizers:
            continue
        after = list(graph.dependents[place])
        if graph.on_success[place] != NONE and not graph.success_back[place]:
            after.append(graph.on_success[place])
        follower = next(target for target in after if target not in finalizers)
        message = (
            f"{shown(graph.ids[follower])} follows it, so that this is no clean-up task: it does not run when the run "
            "is aborted or cancelled"
        )
        yield warning("cleanup_not_last", ("tasks", place, "join"), message, hint="let only clean-up follow clean-up")


def parallel_writers(subject: Subject) -> Iterator[Finding]:
    """Two tasks that may run at the same time, and both declare that they write one context key."""
    plan = subject.plan
    if subject.graph.cycle or plan.limits.max_parallel == 1:
        return
    writers: dict[str, list[int]] = defaultdict(list)
    for place, task in enumerate(plan.tasks):
        for key in dict.fromkeys(writes_of(task, subject.spec(subject.compilation.doers[place].skill))):
            if key not in plan.merge:
                writers[key].append(place)
    shared = {key: places[:BATCH] for key, places in writers.items() if len(places) > 1}
    if shared:
        yield from _Parallel(subject, shared).warnings()


class _Parallel:
    """Looks for pairs of writers of one key without a path between them, a batch of keys at a time."""

    def __init__(self, subject: Subject, writers: dict[str, list[int]]) -> None:
        self.subject = subject
        self.graph = subject.graph
        self.rank = ranks(subject.graph)
        self.writers = writers
        self.forks: Forks | None = None

    def warnings(self) -> Iterator[Finding]:
        for keys in self._batches():
            places = sorted({place for key in keys for place in self.writers[key]}, key=self.rank.__getitem__)
            bit_of = {place: number for number, place in enumerate(places)}
            before = ancestors(self.graph, places)
            for key in keys:
                members = sum(1 << bit_of[place] for place in self.writers[key])
                for place in self.writers[key]:
                    earlier = members & ((1 << bit_of[place]) - 1) & ~before[place]
                    other = self._clash(place, places, earlier)
                    if other != NONE:
                        yield self._warning(key, place, other)

    def _batches(self) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for key, places in self.writers.items():
            if batch and size + len(places) > BATCH:
                yield batch
                batch, size = [], 0
            batch.append(key)
            size += len(places)
        yield batch

    def _clash(self, place: int, places: Sequence[int], candidates: int) -> int:
        """The first of the candidates (bits of `places`) that can really run at the same time."""
        for other in islice(_bits(candidates), _MOST_TRIED):
            if not self._kept_apart(place, places[other]):
                return places[other]
        return NONE

    def _kept_apart(self, one: int, other: int) -> bool:
        tasks = self.subject.plan.tasks
        if set(tasks[one].locks) & set(tasks[other].locks):
            return True
        if self.forks is None:
            self.forks = Forks(self.graph)
        return self.forks.exclude(one, other)

    def _warning(self, key: str, place: int, other: int) -> Finding:
        path: Path = ("tasks", place) if self.subject.plan.tasks[place].writes is None else ("tasks", place, "writes")
        message = f"this task and {shown(self.graph.ids[other])} may run at the same time, and both write {shown(key)}"
        return warning("parallel_writers", path, message, "let one depend on the other, or give the key a merge rule")


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
