"""The floor, `stack`: an engine's duties by hand and nothing else.

Readiness counters, an asteval condition on a cached tree, two triggers on one shared `Machine`, the skill under
`asyncio.timeout` and a retry loop, buffered context writes, one event appended, branches that fire or die, and a jump
back. A task that is alone is awaited in place; up to eight that are ready together overlap. What it leaves out is what
an engine adds: other joins, failed dependencies, recovery, checks of parameters and results, logs, a plan's own values.
"""

import ast
import asyncio
import inspect
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from asteval import Interpreter
from transitions import Machine

from .workloads import Once, Skill, Tally, Workload, skills

PENDING, SUCCEEDED, FAILED, SKIPPED, NOT_TAKEN = "PENDING", "SUCCEEDED", "FAILED", "SKIPPED", "NOT_TAKEN"
TIMEOUT, ATTEMPTS, BACKOFF, PARALLEL = 60.0, 2, 0.5, 8


@dataclass(slots=True)
class Task:
    """A task with its edges as places in the plan; `branches` are its forward branch edges."""

    id: str
    place: int
    condition: str
    tree: ast.expr
    skill: Skill
    takes_context: bool
    max_visits: int
    on_success: int | None
    on_failure: int | None
    branches: tuple[int, ...]
    dependents: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Plan:
    """Tasks, their counts of dependencies, and how many forward branch edges lead to each."""

    tasks: list[Task]
    waits: list[int]
    ways: list[int]
    context: dict[str, Any]


Outcome = tuple[Task, str, Any, dict[str, Any] | None]


class Events(Protocol):
    """Where events go: a list, or a table."""

    def append(self, event: dict[str, Any], /) -> None: ...


class Buffer:
    """What a skill sees of the context: it reads what is committed and its own writes."""

    __slots__ = ("_committed", "writes")

    def __init__(self, committed: dict[str, Any]) -> None:
        self._committed = committed
        self.writes: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return self.writes[key] if key in self.writes else self._committed.get(key, default)

    def set(self, key: str, value: Any) -> None:
        self.writes[key] = value


class Run:
    """One run, and the model of the machine, which keeps `state` and gives the two triggers."""

    state: str
    settled: Callable[[], bool]
    evaluated: Callable[[], bool]

    def __init__(self, plan: Plan, events: Events) -> None:
        self.tasks = plan.tasks
        self.waits = plan.waits.copy()
        self.ways = plan.ways.copy()
        self.active = [not ways for ways in plan.ways]
        self.status = [PENDING] * len(plan.tasks)
        self.visits = [0] * len(plan.tasks)
        self.left = len(plan.tasks)
        self.ready = deque(i for i, waits in enumerate(plan.waits) if not waits and self.active[i])
        self.context = plan.context.copy()
        self.events = events
        self.failure: str | None = None
        self.last: str | None = None
        self.flying: set[asyncio.Task[Outcome]] = set()
        self.landed: deque[asyncio.Task[Outcome]] = deque()
        self.wake: asyncio.Future[None] | None = None
        self.conditions = Interpreter(minimal=True, use_numpy=False)
        self.conditions.symtable["context"] = self.context

    def land(self, job: asyncio.Task[Outcome]) -> None:
        self.flying.discard(job)
        self.landed.append(job)
        if self.wake is not None and not self.wake.done():
            self.wake.set_result(None)

    def one_has_settled(self) -> bool:
        return self.last is not None

    def work_is_left(self) -> bool:
        return self.left > 0 and self.failure is None

    def all_settled(self) -> bool:
        return self.left == 0 and self.failure is None

    def failed(self) -> bool:
        return self.failure is not None


def build_machine() -> Machine:
    """The one machine of all runs."""
    machine = Machine(
        model=None, states=["executing", "evaluating", "completed", "failed"], initial=None, auto_transitions=False
    )
    machine.add_transition("settled", "executing", "evaluating", conditions="one_has_settled")
    machine.add_transition("evaluated", "evaluating", "executing", conditions="work_is_left")
    machine.add_transition("evaluated", "evaluating", "completed", conditions="all_settled")
    machine.add_transition("evaluated", "evaluating", "failed", conditions="failed")
    return machine


async def drive(run: Run) -> None:
    while run.state == "executing":
        task, status, data, writes = await next_outcome(run)
        run.events.append({"type": "task_settled", "task": task.id, "status": status, "data": data, "writes": writes})
        if writes:
            run.context.update(writes)
        run.last = task.id
        run.settled()
        settle(run, task, status)
        run.evaluated()


async def next_outcome(run: Run) -> Outcome:
    """Start what is ready and wait for the first to finish; a task that is alone is awaited in place."""
    while run.ready and len(run.flying) < PARALLEL:
        task = run.tasks[run.ready.popleft()]
        if not holds(run, task):
            return task, SKIPPED, None, None
        if not run.ready and not run.flying:
            return await visit(run, task)
        job = asyncio.create_task(visit(run, task))
        run.flying.add(job)
        job.add_done_callback(run.land)
    if not run.landed:
        run.wake = asyncio.get_running_loop().create_future()
        await run.wake
    return run.landed.popleft().result()


def holds(run: Run, task: Task) -> bool:
    run.conditions.error = []
    run.conditions.expr = task.condition  # without it asteval swallows the error and gives None
    return bool(run.conditions.run(task.tree))


async def visit(run: Run, task: Task) -> Outcome:
    run.visits[task.place] += 1
    if run.visits[task.place] > task.max_visits:
        return task, FAILED, "too many visits", None
    for attempt in range(1, ATTEMPTS + 1):
        buffer = Buffer(run.context) if task.takes_context else None
        try:
            async with asyncio.timeout(TIMEOUT):
                data = await (task.skill(buffer) if buffer else task.skill())
            return task, SUCCEEDED, data, buffer.writes if buffer else None
        except Exception as error:  # noqa: BLE001 - whatever a skill raises is its failure
            if attempt == ATTEMPTS:
                return task, FAILED, repr(error), None
        await asyncio.sleep(BACKOFF)
    raise AssertionError("the last attempt returns")


def settle(run: Run, task: Task, status: str) -> None:
    taken = None if status is NOT_TAKEN else task.on_failure if status is FAILED else task.on_success
    if taken == task.place and status is not SKIPPED:  # a skip never jumps back
        run.ready.append(task.place)
        return
    run.status[task.place] = status
    run.left -= 1
    for place in task.dependents:
        run.waits[place] -= 1
        if not run.waits[place] and run.active[place]:
            run.ready.append(place)
    for place in task.branches:
        (fire if place == taken else die)(run, place)
    if status is FAILED and taken is None:
        run.failure = task.id


def fire(run: Run, place: int) -> None:
    if not run.active[place]:
        run.active[place] = True
        if not run.waits[place]:
            run.ready.append(place)


def die(run: Run, place: int) -> None:
    run.ways[place] -= 1
    if not run.ways[place] and not run.active[place]:
        settle(run, run.tasks[place], NOT_TAKEN)


async def execute(plan: Plan, machine: Machine, events: Events) -> tuple[str, dict[str, Any]]:
    """One whole run: its last phase and its context."""
    run = Run(plan, events)
    machine.add_model(run, initial="executing")
    try:
        await drive(run)
    finally:
        machine.remove_model(run)
    return run.state, run.context


def load(document: dict[str, Any], functions: dict[str, Skill]) -> Plan:
    """Bring a plan to places and counters; it is taken to be valid, with loops of one task only."""
    entries = document["tasks"]
    places = {entry["id"]: i for i, entry in enumerate(entries)}
    tasks = [_load_task(entry, places, functions) for entry in entries]
    ways = [0] * len(tasks)
    for task, entry in zip(tasks, entries, strict=True):
        for name in entry.get("dependencies", []):
            tasks[places[name]].dependents.append(task.place)
        for place in task.branches:
            ways[place] += 1
    waits = [len(entry.get("dependencies", [])) for entry in entries]
    return Plan(tasks, waits, ways, document["context"])


def _load_task(entry: dict[str, Any], places: dict[str, int], functions: dict[str, Skill]) -> Task:
    place, skill = places[entry["id"]], functions[entry["skill"]]
    on_success, on_failure = (places.get(entry.get(key, "")) for key in ("on_success", "on_failure"))
    return Task(
        id=entry["id"],
        place=place,
        condition=entry["condition"],
        tree=ast.parse(entry["condition"], mode="eval").body,
        skill=skill,
        takes_context=bool(inspect.signature(skill).parameters),
        max_visits=entry.get("max_visits", 10),
        on_success=on_success,
        on_failure=on_failure,
        branches=tuple(target for target in (on_success, on_failure) if target not in (None, place)),
    )


class Stack:
    """The floor as a contestant."""

    name = "stack"

    def prepare(self, workload: Workload, tally: Tally) -> Once:
        plan = load(workload.plan, skills(tally))
        machine = build_machine()

        async def once() -> object:
            events: list[dict[str, Any]] = []
            phase, context = await execute(plan, machine, events)
            if phase != "completed":
                raise RuntimeError(f"the floor ended {phase}")
            return phase, context, events

        return once
