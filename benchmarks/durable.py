"""What it costs that a run is kept: in SQLite, against a floor that makes one INSERT and one COMMIT a task."""

import json
import sqlite3
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

from fsm_agent import PlannerEngine, load_plan
from fsm_agent.journal.archive import Archive
from fsm_agent.journal.opening import open_store

from .contestants import Field
from .floor import Events, Stack
from .results import Row, Table, Target
from .timing import interleaved, prepare, ratio
from .workloads import Once, Tally, Workload, chain, skills

TIMED = "timed: one whole run with a store, from the call to its result, in a SQLite file (WAL, synchronous=NORMAL)"
SIZE = 1_000


class KeptEvents:
    """Each event is a row of its own, and durable before anything goes on."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def append(self, event: dict[str, Any], /) -> None:
        self._connection.execute("INSERT INTO events (body) VALUES (?)", (json.dumps(event),))
        self._connection.commit()


class StackNormal(Stack):
    """The floor with a store."""

    name = "stack-normal"

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "floor.db")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, body TEXT)")

    def events(self) -> Events:
        return KeptEvents(self._connection)

    def close(self) -> None:
        self._connection.close()


class OursStored:
    """The engine with a store; each contestant has a file of its own."""

    name = "ours"

    def __init__(self, folder: Path, name: str = "ours.db") -> None:
        self.path = folder / name
        self._engines: list[PlannerEngine] = []

    def prepare(self, workload: Workload, tally: Tally) -> Once:
        engine = PlannerEngine(skills(tally), store=self.path)
        self._engines.append(engine)
        plan = load_plan(workload.plan)

        async def once() -> object:
            result = await engine.run(plan, goal=workload.shape)
            if result.phase != "completed":
                raise RuntimeError(f"the engine ended {result.phase}: {result.reason}")
            return result

        return once

    async def close(self) -> None:
        for engine in self._engines:
            await engine.aclose()


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fsm-agent-bench-") as name:
        yield Path(name)


async def durable_chain(rounds: int) -> Table:
    """A chain of 1,000 tasks."""
    with folder() as place:
        floor, ours = StackNormal(place), OursStored(place)
        workload = chain(SIZE)
        samples = await interleaved({each.name: prepare(each, workload) for each in (floor, ours)}, rounds)
        floor.close()
        await ours.close()
    rows = [
        Row(who, statistics.median(seconds) / SIZE * 1e6, ratio(samples, who, floor.name))
        for who, seconds in samples.items()
    ]
    title = "chain of 1,000 in a store, against stack-normal"
    return Table("durable-chain", title, "µs/task", TIMED, Target(must=3.0, goal=1.7), rows=rows)


async def durable_bytes() -> Table:
    """The file after a chain of 10,000 tasks, without the plan, with a small and with a large context."""
    small, large = await _bytes_a_task(""), await _bytes_a_task("x" * 100_000)
    return Table(
        "durable-bytes",
        "bytes a task in the store, beside the plan: chain of 10,000; also with 100 kB of context",
        "bytes",
        "counted: the file after a checkpoint",
        Target(must=400, goal=300),
        judged="value",
        rows=[Row("ours", max(small, large)), Row("empty context", small), Row("100 kB context", large)],
    )


async def _bytes_a_task(filler: str) -> float:
    workload = chain(10_000)
    plan = {**workload.plan, "context": {**workload.plan["context"], "filler": filler}}
    with folder() as place:
        ours = OursStored(place)
        await ours.prepare(Workload("chain", workload.size, workload.visits, plan), Tally())()
        await ours.close()
        connection = sqlite3.connect(ours.path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        size = ours.path.stat().st_size
    return (size - len(json.dumps(plan, separators=(",", ":")).encode())) / workload.size


async def durable_resume(rounds: int) -> Table:
    """A chain of 1,000 whose process died in the middle: until the first call, and what is called again."""
    with folder() as place:
        tally = Tally()
        began = [0.0]
        first: list[float] = []

        async def work() -> dict[str, Any]:
            tally.calls += 1
            if began[0]:
                first.append(perf_counter() - began[0])
                began[0] = 0.0
            return {"ok": True}

        engine = PlannerEngine({"work": work}, store=place / "ours.db")
        await engine.run(load_plan(chain(SIZE).plan), run_id="whole")
        store = open_store(place / "ours.db")
        archive = Archive(store)
        started = [event.seq for event in archive.events("whole") if event.type == "task_started"]
        for number in count():
            if number == rounds:
                break
            archive.fork("whole", started[SIZE // 2], f"torn {number}")
            calls, began[0] = tally.calls, perf_counter()
            result = await engine.resume(f"torn {number}")
            waits = result.phase == "paused"  # the call that was under way is of no idempotent skill
            if not waits or tally.calls != calls:
                raise RuntimeError("a call was made that should have waited for a person")
            await engine.decide(f"torn {number}", f"t{SIZE // 2}", "rerun")
            began[0] = perf_counter()
            result = await engine.resume(f"torn {number}")
            if result.phase != "completed" or tally.calls - calls != SIZE // 2:
                raise RuntimeError(f"{tally.calls - calls} calls after the resume, where {SIZE // 2} were left")
        store.close()
        await engine.aclose()
    return Table(
        "durable-resume",
        "resume at 500 of 1,000, until the first call",
        "ms",
        "timed: from `resume` to the first call of a skill; 500 of 500 calls are then made",
        Target(must=30, goal=10),
        judged="value",
        rows=[Row("ours", statistics.median(first) * 1e3)],
    )


async def durable(field: Field, short: int, long: int) -> list[Table]:
    """All figures of the store."""
    if field.ours is None:
        return []
    return [await durable_chain(short), await durable_bytes(), await durable_resume(long)]
