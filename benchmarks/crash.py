"""A process that dies: `python -m benchmarks.crash FILE SIZE CALLS` is killed in a run's skill call of that number."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from fsm_agent import PlannerEngine, load_plan, skill

from .workloads import chain

RUN = "left-behind"


def main(path: Path, size: int, calls: int) -> None:
    made = 0

    @skill(idempotent=True)
    async def work() -> dict[str, bool]:
        nonlocal made
        made += 1
        if made == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"ok": True}

    asyncio.run(PlannerEngine([work], store=path).run(load_plan(chain(size).plan), run_id=RUN))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
