"""A process that runs a natural plan, or goes on with it, and tells what came of it.

`python -m tests.crash.alive NAME`; its folder is the current one.

With a number it hangs once that event was told, until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from fsm_agent import PlannerEngine, RunResult, SkillContext, skill
from fsm_agent.core.machine import FINAL
from fsm_agent.testing import FixedRandom, SimulatedClock
from tests.crash.harness import verdict
from tests.engine.scripted import playable

ROOT = Path(__file__).parents[2]
NATURAL: dict[str, dict[str, Any]] = {
    case["name"]: case
    for case in json.loads((ROOT / "tests" / "data" / "natural_plans.json").read_text(encoding="utf-8"))["cases"]
}


def agree(_: Any) -> bool:
    """Whoever approves of all."""
    return True


def made(name: str) -> tuple[PlannerEngine, dict[str, Any]]:
    """An engine with its skills, and the plan."""
    clock, case = SimulatedClock(time.time()), NATURAL[name]
    plan = case["plan"] if isinstance(case["plan"], dict) else {"goal": "g", "tasks": case["plan"]}
    skills = _stubs(plan, case.get("outcomes", {}), clock)
    words: dict[str, Any] = {"store": "runs.db", "approver": agree, "random": FixedRandom(0.5)}
    return PlannerEngine(skills, clock=clock, default_skill="stub", **words), plan


def _stubs(plan: dict[str, Any], outcomes: Any, clock: SimulatedClock) -> dict[str, Any]:
    script = playable(plan, outcomes)

    @skill(idempotent=True)
    async def stub(context: SkillContext, **_: Any) -> Any:
        entries = script[context.task_id]
        entry = entries[min(context.visit, len(entries)) - 1]
        if entry == "timeout":
            await clock.sleep(1_000)
        if entry == "fail":
            raise OSError("scripted to fail")
        for key, value in (entry.get("context") or {}).items() if isinstance(entry, dict) else ():
            context.set(key, value)
        return entry.get("data") if isinstance(entry, dict) else {}

    return dict.fromkeys({"stub", *(task.get("skill") or "stub" for task in plan["tasks"])}, stub)


async def begin(engine: PlannerEngine, plan: Any, hang_at: int) -> RunResult:
    """A run, which may be hung up on."""
    stream = engine.stream(plan, run_id="r")
    async for event in stream:
        if event.seq == hang_at:
            Path("hung.txt").touch()
            time.sleep(600)
    assert stream.result is not None
    return stream.result


async def go_on(engine: PlannerEngine) -> RunResult:
    """The end of it. A person says of each interrupted call that it is to be made again."""
    result = await engine.resume("r")
    while result.phase not in FINAL:
        for asked in result.waiting:
            await engine.decide("r", asked["approval"], "rerun" if asked["kind"] == "interrupted" else "approve")
        result = await engine.resume("r")
    return result


def main(name: str, hang_at: int) -> None:
    """Begin or go on, and write down what came of it."""
    there = Path("runs.db").exists()
    engine, plan = made(name)
    result = asyncio.run(go_on(engine) if there else begin(engine, plan, hang_at))
    told = {**verdict(result), "trace": result.trace}
    Path("result.json").write_text(json.dumps(told, sort_keys=True, default=str), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
