"""Runs for tests of the archive: driven by an engine into a store, and what the views show of them."""

from __future__ import annotations

import asyncio
from typing import Any

from fsm_agent import Event, PlannerEngine, RunResult, SkillContext, skill
from fsm_agent.journal.sql_store import SqlStore
from fsm_agent.testing import FixedRandom, SimulatedClock
from tests.journal.test_store_views import rows

LOOPING: dict[str, Any] = {
    "name": "draft",
    "goal": "写一份草稿",
    "context": {"round": 0},
    "tasks": [
        {"id": "read", "skill": "work", "parameters": {"file": "表.csv", "n": 2**70}},
        {"id": "draft", "skill": "work", "dependencies": ["read"]},
        {"id": "check", "skill": "work", "dependencies": ["draft"]},
        {"id": "judge", "skill": "work", "dependencies": ["check"], "on_failure": "draft", "max_retries": 0},
        {"id": "flaky", "skill": "work", "dependencies": ["read"], "max_retries": 2},
        {"id": "odd", "skill": "work", "condition": "context['round'] > 9"},
        {"id": "send", "skill": "pay", "dependencies": ["judge", "flaky"], "parameters": {"to": "Ada"}},
        {"id": "tell", "skill": "work", "dependencies": ["send"], "priority": "low"},
    ],
    "output": "context['round']",
}
"""A loop, retries, a skip, a person who is asked, and Chinese text."""


def engine(store: SqlStore, **words: Any) -> PlannerEngine:
    """With the skills of that plan."""

    @skill(idempotent=True)
    async def work(context: SkillContext, file: str = "", n: int = 0) -> Any:
        if context.task.id == "flaky" and context.attempt == 1:
            raise OSError("down")
        if context.task.id == "judge" and context.visit == 1:
            raise ValueError("not good enough")
        if context.task.id == "draft":
            context.set("round", context.visit)
        return {"visit": context.visit, "file": file}

    @skill(risk="high")
    async def pay(to: str) -> Any:
        return {"paid": to}

    return PlannerEngine([work, pay], store=store, clock=SimulatedClock(), random=FixedRandom(0.5), **words)


def driven(store: SqlStore, plan: Any = LOOPING, **options: Any) -> tuple[RunResult, list[Event]]:
    """A run `r` to its end, or until somebody is asked; with its events."""
    events: list[Event] = []
    made = engine(store, listeners=[events.append])
    return asyncio.run(made.run(plan, run_id="r", labels={"team": "一"}, **options)), events


def shown(store: SqlStore, run_id: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What people see of a run: its row, and those of its tasks, without the id, and without who drove it last."""
    [run] = [row for row in rows(store, "runs", "id") if row["id"] == run_id]
    tasks = [row for row in rows(store, "tasks", "task") if row["run_id"] == run_id]
    return {key: run[key] for key in run if key not in ("id", "driver")}, [
        {key: task[key] for key in task if key != "run_id"} for task in tasks
    ]
