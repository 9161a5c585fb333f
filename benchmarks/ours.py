"""The engine itself, by its public API."""

from pathlib import Path
from typing import Any

from fsm_agent import PlannerEngine, load_plan

from .workloads import Once, Tally, Workload, skills


class Ours:
    """The engine as a contestant: one engine, one loaded plan, many runs."""

    name = "ours"

    def __init__(self, store: Path | None = None) -> None:
        self._store = store

    def load(self, document: dict[str, Any]) -> object:
        return load_plan(document)

    def prepare(self, workload: Workload, tally: Tally) -> Once:
        engine = PlannerEngine(skills(tally), store=self._store)
        plan = load_plan(workload.plan)

        async def once() -> object:
            result = await engine.run(plan, goal=workload.shape)
            if result.phase != "completed":
                raise RuntimeError(f"the engine ended {result.phase}")
            return result

        return once
