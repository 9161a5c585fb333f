"""The cases, each a table of contestants with what the engine must reach and should."""

import gc
import statistics
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from time import perf_counter

from . import durable
from .contestants import FLOOR, OURS, Field
from .imports import import_samples
from .results import Row, Table, Target
from .timing import Timed, interleaved, peak_memory, prepare, ratio
from .workloads import SHAPES, Contestant, Engine, Shape, Workload, chain, fan_out, loop

TIMED = "timed: one whole run, from the call to its result; not timed: building and checking plan or graph"


@dataclass(frozen=True)
class Effort:
    """How many rounds the short, the long and the process cases get."""

    short: int
    long: int
    processes: int


FULL = Effort(short=31, long=7, processes=15)
QUICK = Effort(short=11, long=3, processes=7)

Case = Callable[[Field, Effort], Coroutine[None, None, list[Table]]]


async def chain_short(field: Field, effort: Effort) -> list[Table]:
    return [await _per_task("chain", chain(1_000), field.everyone(), effort.short)]


async def chain_long(field: Field, effort: Effort) -> list[Table]:
    return [await _per_task("chain-10k", chain(10_000), field.few(), effort.long)]


async def fan_out_case(field: Field, effort: Effort) -> list[Table]:
    return [await _per_task("fan-out", fan_out(1_000), field.few(), effort.short)]


async def loop_case(field: Field, effort: Effort) -> list[Table]:
    return [await _per_task("loop", loop(1_000), field.everyone(), effort.short)]


async def _per_task(name: str, workload: Workload, contestants: list[Contestant], rounds: int) -> Table:
    samples = await interleaved({each.name: prepare(each, workload) for each in contestants}, rounds)
    rows = [
        Row(who, statistics.median(seconds) / workload.visits * 1e6, ratio(samples, who, FLOOR))
        for who, seconds in samples.items()
    ]
    title = f"{workload.shape}, {workload.visits:,} task visits"
    return Table(name, title, "µs/task", TIMED, Target(must=2.5, goal=1.5), rows=rows)


async def many_runs(field: Field, effort: Effort) -> list[Table]:
    """1,000 runs of ten tasks at once: how many a second, and the memory that they take together."""
    runs = 1_000
    timed = {each.name: prepare(each, chain(10), repeat=runs, at_once=True) for each in field.few()}
    samples = await interleaved(timed, effort.long)
    speed = Table(
        "many-runs",
        f"{runs:,} runs × 10 tasks at once on one engine",
        "runs/s",
        TIMED,
        Target(must=0.5, goal=0.65, least=True),
        rows=[
            Row(who, runs / statistics.median(seconds), 1 / ratio(samples, who, FLOOR))
            for who, seconds in samples.items()
        ],
    )
    return [speed, await _memory(timed, runs)]


async def _memory(timed: dict[str, Timed], runs: int) -> Table:
    grown = {who: await peak_memory(each) for who, each in timed.items()}
    return Table(
        "many-runs-memory",
        f"the same {runs:,} runs, peak of memory above what was held before",
        "MB",
        "counted: what Python allocates while they run, with the results that are kept",
        Target(must=25, goal=12),
        judged="value",
        rows=[Row(who, value, value / grown[FLOOR]) for who, value in grown.items()],
    )


async def growth(field: Field, effort: Effort) -> list[Table]:
    return [await _growth_of(shape, field, effort.long) for shape in SHAPES]


async def _growth_of(shape: Shape, field: Field, rounds: int) -> Table:
    """The cost of a task in a plan of 10,000 against one of 100; ten small runs are timed together."""
    small, large = SHAPES[shape](100), SHAPES[shape](10_000)
    timed: dict[str, Timed] = {}
    for each in field.pair():
        timed[f"{each.name} 100"] = prepare(each, small, repeat=10)
        timed[f"{each.name} 10000"] = prepare(each, large)
    samples = await interleaved(timed, rounds)
    visits = large.visits / (10 * small.visits)
    found = {who.name: ratio(samples, f"{who.name} 10000", f"{who.name} 100") / visits for who in field.pair()}
    return Table(
        f"growth-{shape}",
        f"{shape}, µs/task at 10,000 against 100",
        "× its own at 100",
        TIMED,
        Target(must=1.3, goal=1.15),
        judged="value",
        rows=[Row(who, value) for who, value in found.items()],
    )


async def imports(field: Field, effort: Effort) -> list[Table]:
    statements = {FLOOR: "import asyncio, sqlite3, transitions, asteval, pydantic"}
    if field.peers:
        statements["burr"] = "import burr.core"
    if field.ours is not None:
        statements[OURS] = "import fsm_agent"
        statements["all of ours"] = "from fsm_agent import PlannerEngine"  # the names are loaded when they are used
    samples = import_samples(statements, effort.processes)
    rows = [Row(who, statistics.median(seconds) * 1e3, ratio(samples, who, FLOOR)) for who, seconds in samples.items()]
    return [
        Table(
            "import",
            "import, against `asyncio, sqlite3, transitions, asteval, pydantic` bare",
            "ms",
            "timed: a whole process, from its start to its end",
            Target(must=1.5, goal=1.25),
            rows=rows,
        )
    ]


async def validate(field: Field, effort: Effort) -> list[Table]:
    """Only shown: the target is an absolute time, and no check may depend on one."""
    rows = [] if field.ours is None else [Row(OURS, statistics.median(_validation_seconds(field.ours, effort.long)))]
    return [
        Table(
            "validate",
            "validate a plan of 10,000 tasks",
            "s",
            "timed: `load_plan` of a document that is already parsed",
            Target(must=1.0, goal=0.5),
            judged="value",
            asserted=False,
            rows=rows,
        )
    ]


def _validation_seconds(engine: Engine, rounds: int) -> list[float]:
    document = chain(10_000).plan
    seconds = []
    for _ in range(rounds):
        gc.collect()
        start = perf_counter()
        plan = engine.load(document)
        seconds.append(perf_counter() - start)
        del plan
    return seconds


async def durable_chain(field: Field, effort: Effort) -> list[Table]:
    return await durable.chain_case(field, effort.short)


async def durable_growth(field: Field, effort: Effort) -> list[Table]:
    return await durable.growth_case(field, effort.long)


async def durable_bytes(field: Field, effort: Effort) -> list[Table]:
    return await durable.bytes_case(field)


async def durable_resume(field: Field, effort: Effort) -> list[Table]:
    return await durable.resume_case(field, effort.processes)


async def durable_open(field: Field, effort: Effort) -> list[Table]:
    return await durable.open_case(field, effort.long)


CASES: dict[str, Case] = {
    "chain": chain_short,
    "chain-10k": chain_long,
    "fan-out": fan_out_case,
    "loop": loop_case,
    "many-runs": many_runs,
    "growth": growth,
    "import": imports,
    "validate": validate,
    "durable-chain": durable_chain,
    "durable-growth": durable_growth,
    "durable-bytes": durable_bytes,
    "durable-resume": durable_resume,
    "durable-open": durable_open,
}
