"""Where the example plans and their data are, and what tests want to know of a run and of a folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fsm_agent import PlannerEngine, Problem, RunResult
from fsm_agent.plan.loader import check_plan

ROOT = Path(__file__).parents[2]
DATA = ROOT / "plans" / "data"


def plan_file(name: str) -> Path:
    return ROOT / "plans" / f"{name}.yaml"


def engine() -> PlannerEngine:
    """An engine with the skills of the repository, all of which load."""
    found = PlannerEngine(str(ROOT / "skills"))
    assert found.skills.errors == ()
    return found


def problems_of(name: str) -> tuple[Problem, ...]:
    """Errors and warnings of a plan, where the skills of the repository are known."""
    return check_plan(plan_file(name), engine().catalog).problems


def statuses(result: RunResult) -> dict[str, str]:
    """The tasks of a run with their statuses; of a skipped one the reason, and `not_taken` ones not at all."""
    tasks = result.to_json()["tasks"]
    found = {name: task["reason"] or task["status"] for name, task in tasks.items()}
    return {name: status for name, status in found.items() if status != "not_taken"}


def data_of(result: RunResult, task: str) -> object:
    return result.to_json()["tasks"][task]["data"]


def files_of(folder: Path) -> dict[str, str]:
    """The files below a folder, with checksums of what is in them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
