"""The plans that every contestant runs, and the trivial skills that they call."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

CONDITION = "context['n'] >= 0"

Shape = Literal["chain", "fan-out", "loop"]
Once = Callable[[], Awaitable[object]]
Skill = Callable[..., Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Workload:
    """One plan in its normal form. `visits` is how many skill calls one run of it makes."""

    shape: Shape
    size: int
    visits: int
    plan: dict[str, Any]


class Tally:
    """Counts skill calls, so that a contestant that leaves work out is found out."""

    calls = 0


class Contestant(Protocol):
    """Someone who can run a workload. What `prepare` does is outside every timing."""

    name: str

    def prepare(self, workload: Workload, tally: Tally) -> Once:
        """Build plan or graph; the function returned makes one whole run and raises if it did not complete."""
        ...


class Engine(Contestant, Protocol):
    """The contestant whose targets these are; its checking of a plan is a case of its own."""

    def load(self, document: dict[str, Any]) -> object:
        """Bring a parsed document to a plan, or raise with all of its problems."""
        ...


def skills(tally: Tally) -> dict[str, Skill]:
    """`work` returns a constant; `count` also reads and writes the context."""

    async def work() -> dict[str, Any]:
        tally.calls += 1
        return {"ok": True}

    async def count(context: Any) -> dict[str, Any]:
        tally.calls += 1
        context.set("n", context.get("n", 0) + 1)
        return {"ok": True}

    return {"work": work, "count": count}


def chain(size: int) -> Workload:
    """`size` tasks, each with a condition, each after the one before it."""
    tasks = [_task("t0"), *(_task(f"t{i}", dependencies=[f"t{i - 1}"]) for i in range(1, size))]
    return Workload("chain", size, size, _plan("chain", tasks))


def fan_out(size: int) -> Workload:
    """A root, `size` tasks after it, a join after all of these, and a branch: one of two is taken."""
    middle = [f"t{i}" for i in range(size)]
    tasks = [
        _task("root"),
        *(_task(name, dependencies=["root"]) for name in middle),
        _task("join", dependencies=middle, on_success="report", on_failure="sorry"),
        _task("report"),
        _task("sorry"),
    ]
    return Workload("fan-out", size, size + 3, _plan("fan-out", tasks))


def loop(size: int) -> Workload:
    """One task that jumps back to itself until its condition, on what it wrote to the context, is false."""
    room = size + 10
    again = _task("again", skill="count", condition=f"context['n'] < {size}", on_success="again", max_visits=room)
    return Workload("loop", size, size, _plan("loop", [again]) | {"limits": {"max_task_runs": room}})


SHAPES: dict[Shape, Callable[[int], Workload]] = {"chain": chain, "fan-out": fan_out, "loop": loop}


def _plan(goal: str, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"goal": goal, "context": {"n": 0}, "tasks": tasks}


def _task(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "skill": "work", "condition": CONDITION, **more}
