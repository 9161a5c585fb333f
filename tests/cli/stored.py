"""What the tests of kept runs share: a shop in which one can pay, and looks at its store from outside."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any

from tests.cli.project import Project

PAY = """
from pathlib import Path

from fsm_agent import skill


@skill(risk="high")
def pay(amount: int) -> dict:
    with Path("ledger.txt").open("a") as ledger:
        ledger.write(f"{amount}\\n")
    return {"paid": amount}


@skill
def pay_and_hang(amount: int) -> dict:
    import time

    with Path("ledger.txt").open("a") as ledger:
        ledger.write(f"{amount}\\n")
    time.sleep(60)
    return {"paid": amount}
"""


def wait_for(condition: Callable[[], object], seconds: float = 15) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never became so"
        time.sleep(0.02)


def types_in(project: Project) -> list[str]:
    path = project.folder / ".fsm-agent" / "runs.db"
    if not path.exists():
        return []
    con = sqlite3.connect(path)
    try:
        return [row[0] for row in con.execute("SELECT type FROM events ORDER BY run_id, seq")]
    except sqlite3.OperationalError:
        return []
    finally:
        con.close()


def ledger(project: Project) -> list[str]:
    path = project.folder / "ledger.txt"
    return path.read_text().split() if path.exists() else []


def edit(project: Project, *changes: str) -> None:
    """Change the store by hand, as nobody should."""
    con = sqlite3.connect(project.folder / ".fsm-agent" / "runs.db")
    for (name,) in con.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        con.execute(f"DROP TRIGGER {name}")
    for change in changes:
        con.execute(change)
    con.commit()
    con.close()


def task(name: str, skill: str, after: str | None = None, **parameters: Any) -> dict[str, Any]:
    more = {"dependencies": [after]} if after else {}
    return {"id": name, "skill": skill, "parameters": parameters, **more}


def killed_while_it_pays(project: Project) -> None:
    """The run `r`, whose process died in the middle of a call that may not be made twice."""
    plan = project.plan("plan.yaml", {"goal": "g", "tasks": [task("a", "pay_and_hang", amount=1)]})
    running = project.process("run", plan, "--run-id", "r")
    wait_for(lambda: ledger(project))
    running.kill()
    running.communicate()
