"""A process that begins one of the plans here, or goes on with it: `python -m tests.crash.worker FOLDER PLAN`.

It says what the run came to, as JSON. With `DIES_AT` set (see `deadly.py`) it is killed at one of its writes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from fsm_agent import PlannerEngine, RunResult
from fsm_agent.testing import FixedRandom
from tests.crash import deadly
from tests.crash.harness import Call, World, verdict
from tests.crash.plans import PLANS


class Notes(list[Call]):
    """A ledger of calls that outlives its process."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = folder / "calls.txt"

    def append(self, call: Call) -> None:
        with self._file.open("a") as file:
            file.write(f"{call.task} {call.visit} {call.attempt} {call.key}\n")


async def live(folder: Path, name: str) -> RunResult:
    plan, script = PLANS[name]
    world = World(folder, script, ledger=Notes(folder))
    store = folder / "runs.db"
    engine = PlannerEngine(world.skills(), store=store, approver=lambda _: True, random=FixedRandom(0.0))
    async with engine:
        if deadly.has_begun(store):
            return await engine.resume("r")
        stream = engine.stream(plan, run_id="r")
        async for _ in stream:
            pass
        assert stream.result is not None
        return stream.result


if __name__ == "__main__":
    deadly.arm()
    print(json.dumps(verdict(asyncio.run(live(Path(sys.argv[1]), sys.argv[2]))), ensure_ascii=False))
