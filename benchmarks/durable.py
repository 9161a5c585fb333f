"""The cases with a store: what it costs that nothing is lost, and how soon a run goes on after a crash."""

import gc
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from .contestants import OURS, Field
from .imports import ROOT
from .kept import NORMAL, contestants, folder, ours, pages_of
from .results import Row, Table, Target
from .timing import interleaved, prepare, ratio
from .workloads import Tally, Workload, chain, loop, skills

_TIMED = "timed: one whole run, from the call to its result; not timed: opening the file, checking plan or graph"
_SIZE, _DONE = 1_000, 500
_ROUNDS_OF_LOOP, _EVENTS_A_ROUND = 20_000, 5


async def chain_case(field: Field, rounds: int) -> list[Table]:
    """A chain of 1,000 in a SQLite file."""
    with folder() as place:
        workload = chain(_SIZE)
        timed = {each.name: prepare(each, workload) for each in contestants(field, place)}
        samples = await interleaved(timed, rounds)
    rows = [
        Row(who, statistics.median(seconds) / _SIZE * 1e6, ratio(samples, who, NORMAL))
        for who, seconds in samples.items()
    ]
    title = f"chain in a SQLite file, {_SIZE:,} task visits"
    return [Table("durable-chain", title, "µs/task", _TIMED, Target(must=3, goal=1.7), rows=rows, floor=NORMAL)]


async def growth_case(field: Field, rounds: int) -> list[Table]:
    """The cost of a task in a plan of 10,000 against one of 1,000; ten runs of that are timed together."""
    small, large = chain(1_000), chain(10_000)
    with folder() as place:
        timed = {}
        for each in [contestants(field, place)[0], *ours(field, place)]:
            timed[f"{each.name} small"] = prepare(each, small, repeat=10)
            timed[f"{each.name} large"] = prepare(each, large)
        samples = await interleaved(timed, rounds)
    names = dict.fromkeys(name.rpartition(" ")[0] for name in samples)
    rows = [Row(who, ratio(samples, f"{who} large", f"{who} small")) for who in names]
    title = "chain in a SQLite file, µs/task at 10,000 against 1,000"
    target = Target(must=1.3, goal=1.15)
    return [Table("durable-growth", title, "× its own at 1,000", _TIMED, target, judged="value", rows=rows)]


async def bytes_case(field: Field) -> list[Table]:
    """What a task leaves in the file, whatever the size of the context."""
    found = []
    for name, text in (("durable-bytes", ""), ("durable-bytes-100k", "x" * 100_000)):
        workload = chain(_SIZE)
        workload.plan["context"] = {"n": 0, "text": text}
        with folder() as place:
            rows = [Row(who, size / _SIZE) for who, size in (await _sizes(field, place, workload)).items()]
        title = f"bytes a task in the file, its data of 11 bytes among them; a context of {len(text):,} bytes"
        counted = "counted: the whole file with one chain of 1,000, its log brought in, less the plan"
        target = Target(must=400, goal=300)
        found.append(Table(name, title, "bytes/task", counted, target, judged="value", rows=rows))
    return found


async def _sizes(field: Field, place: Path, workload: Workload) -> dict[str, int]:
    for each in (contestants(field, place)[0], *ours(field, place)):
        await prepare(each, workload).act()
    sizes = {NORMAL: pages_of(place / "stack.db")}
    if field.ours is not None:
        from fsm_agent.journal.opening import open_store  # noqa: PLC0415 - a broken engine must not hide the floor

        store = open_store(place / "ours.db")
        digest = store.heads()[0].plan
        plan = len(store.plan(digest or "").body.encode())
        store.close()
        sizes[OURS] = pages_of(place / "ours.db") - plan
    return sizes


async def resume_case(field: Field, rounds: int) -> list[Table]:
    """From `engine.resume` to the first skill call, after a process was killed in the call 500 of 1,000."""
    seconds: list[float] = []
    if field.ours is not None:
        with folder() as place:
            _leave_behind(place / "left.db")
            for number in range(rounds + 1):
                again = place / f"again-{number}.db"
                for end in ("", "-wal"):
                    shutil.copyfile(place / f"left.db{end}", f"{again}{end}")
                seconds.append(await _resumed(again))
    rows = [Row(OURS, statistics.median(seconds[1:]) * 1e3)] if seconds else []
    title = f"resume at {_DONE} of {_SIZE:,}, after SIGKILL"
    timed = "timed: from `engine.resume` to the first skill call, in an engine that is new; nothing settled runs again"
    return [Table("durable-resume", title, "ms", timed, Target(must=30, goal=10), judged="value", rows=rows)]


def _leave_behind(path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.crash", str(path), str(_SIZE), str(_DONE)]
    subprocess.run(command, cwd=ROOT, check=False)


async def _resumed(path: Path) -> float:
    from fsm_agent import PlannerEngine, skill  # noqa: PLC0415 - a broken engine must not hide the floor

    from .crash import RUN  # noqa: PLC0415 - as above

    calls: list[float] = []

    @skill(idempotent=True)
    async def work() -> dict[str, bool]:
        calls.append(perf_counter())
        return {"ok": True}

    engine = PlannerEngine([work], store=path)
    gc.collect()
    start = perf_counter()
    result = await engine.resume(RUN)
    await engine.aclose()
    wanted = _SIZE - _DONE + 1
    if result.phase != "completed" or len(calls) != wanted:
        raise RuntimeError(f"it ended {result.phase} after {len(calls)} calls where {wanted} were left")
    return calls[0] - start


async def open_case(field: Field, rounds: int) -> list[Table]:
    """A long run is looked at. Only shown: the time is absolute."""
    rows = [Row(OURS, await _seconds_to_open(rounds))] if field.ours is not None else []
    events = _ROUNDS_OF_LOOP * _EVENTS_A_ROUND
    timed = "timed: `engine.show` of a finished loop, in an engine that is new"
    title = f"open a run of {events:,} events"
    target = Target(must=1, goal=0.3)
    return [Table("durable-open", title, "s", timed, target, judged="value", asserted=False, rows=rows)]


async def _seconds_to_open(rounds: int) -> float:
    from fsm_agent import PlannerEngine, load_plan  # noqa: PLC0415 - a broken engine must not hide the floor

    functions: dict[str, Any] = skills(Tally())
    seconds = []
    with folder() as place:
        engine = PlannerEngine(functions, store=place / "long.db")
        made = await engine.run(load_plan(loop(_ROUNDS_OF_LOOP).plan), run_id="long")
        await engine.aclose()
        for _ in range(rounds):
            gc.collect()
            engine = PlannerEngine(functions, store=place / "long.db")
            start = perf_counter()
            shown = await engine.show("long")
            seconds.append(perf_counter() - start)
            if shown.context != made.context:
                raise RuntimeError("the run was not read as it was written")
            await engine.aclose()
    return statistics.median(seconds)
