"""The peer: Burr, with the three kinds of condition that it offers.

A chain is a chain of actions with a condition on every transition. A loop is one action with a transition to itself.
Burr runs one action at a time; its fan-out is `MapStates`, which makes a small application of every task, in
parallel, and knows no condition per task. Burr has no timeout and no retry, and pays for none.
"""

# Burr is typed in part, its overrides are wider than its bases, and it may not be installed:
# mypy: disable-error-code="no-untyped-call,no-any-return,override,misc,var-annotated,import-not-found"

from collections.abc import AsyncGenerator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from burr.core import ApplicationBuilder, ApplicationContext, Condition, Graph, GraphBuilder, State, action
from burr.core.action import Action
from burr.core.parallelism import MapStates
from burr.core.persistence import SQLitePersister

from .workloads import Once, Tally, Workload, skills

BelowCondition = Callable[[int], Condition]  # "n is below this number", in one of the three ways

KINDS: dict[str, BelowCondition] = {
    "lambda": lambda size: Condition.lmda(lambda state: state["n"] < size, ["n"]),
    "sandboxed": lambda size: Condition.safe_expr(f"n < {size}"),
    "eval": lambda size: Condition.expr(f"n < {size}"),
}


class Burr:
    """Burr as a contestant, with one kind of condition."""

    def __init__(self, kind: str) -> None:
        self.name = f"burr-{kind}"
        self._below = KINDS[kind]

    def prepare(self, workload: Workload, tally: Tally) -> Once:
        step, count = _actions(tally)
        if workload.shape == "chain":
            graph, first, last = _chain(workload.size, step, self._below)
        elif workload.shape == "loop":
            graph, first, last = _loop(workload.size, step, count, self._below)
        else:
            graph, first, last = _fan_out(workload.size, step, self._below)

        async def once() -> object:
            builder = ApplicationBuilder().with_graph(graph).with_state(n=0).with_entrypoint(first)
            application = await builder.abuild()
            ended, _, state = await application.arun(halt_after=[last])
            if ended.name != last:
                raise RuntimeError(f"Burr ended at {ended.name}")
            return state

        return once


class BurrKept:
    """Burr with its SQLite persister, as it comes: the state is written after every action. A lambda condition."""

    name = "burr-sqlite"

    def __init__(self, path: Path) -> None:
        self._persister = SQLitePersister(str(path))
        self._persister.initialize()

    def prepare(self, workload: Workload, tally: Tally) -> Once:
        step, _ = _actions(tally)
        graph, first, last = _chain(workload.size, step, KINDS["lambda"])

        async def once() -> object:
            builder = ApplicationBuilder().with_graph(graph).with_state(n=0).with_entrypoint(first)
            application = builder.with_state_persister(self._persister).build()
            ended, _, state = await application.arun(halt_after=[last])
            if ended.name != last:
                raise RuntimeError(f"Burr ended at {ended.name}")
            return state

        return once


def contestants() -> list[Burr]:
    return [Burr(kind) for kind in KINDS]


def _actions(tally: Tally) -> tuple[Any, Any]:
    work = skills(tally)["work"]

    @action(reads=[], writes=["ok"])
    async def step(state: State[Any]) -> State[Any]:
        data = await work()
        return state.update(ok=data["ok"])

    @action(reads=["n"], writes=["n"])
    async def count(state: State[Any]) -> State[Any]:
        await work()
        return state.update(n=state["n"] + 1)

    return step, count


def _chain(size: int, step: Any, below: BelowCondition) -> tuple[Graph, str, str]:
    names = [f"t{i}" for i in range(size)]
    transitions = [(here, there, below(1)) for here, there in pairwise(names)]
    graph = GraphBuilder().with_actions(**dict.fromkeys(names, step)).with_transitions(*transitions).build()
    return graph, names[0], names[-1]


def _loop(size: int, step: Any, count: Any, below: BelowCondition) -> tuple[Graph, str, str]:
    @action(reads=[], writes=[])
    async def done(state: State[Any]) -> State[Any]:
        return state

    builder = GraphBuilder().with_actions(again=count, done=done)
    graph = builder.with_transitions(("again", "again", below(size)), ("again", "done")).build()
    return graph, "again", "done"


def _fan_out(size: int, step: Any, below: BelowCondition) -> tuple[Graph, str, str]:
    builder = GraphBuilder().with_actions(root=step, middle=_Middle(size, step), join=step, report=step, sorry=step)
    graph = builder.with_transitions(
        ("root", "middle", below(1)),
        ("middle", "join", below(1)),
        ("join", "report", below(1)),
        ("join", "sorry"),
    ).build()
    return graph, "root", "report"


class _Middle(MapStates):
    """Burr's own form of a fan-out: one sub-application per state."""

    def __init__(self, size: int, step: Any) -> None:
        super().__init__()
        self._size = size
        self._step = step

    def action(self, state: State[Any], inputs: dict[str, Any]) -> Action:
        return self._step

    async def states(
        self, state: State[Any], context: ApplicationContext, inputs: dict[str, Any]
    ) -> AsyncGenerator[State[Any], None]:
        for _ in range(self._size):
            yield state

    async def reduce(self, state: State[Any], states: AsyncGenerator[State[Any], None]) -> State[Any]:
        done = 0
        async for each in states:
            done += each["ok"]
        return state.update(done=done)

    def is_async(self) -> bool:
        return True

    @property
    def reads(self) -> list[str]:
        return ["n"]

    @property
    def writes(self) -> list[str]:
        return ["done"]
