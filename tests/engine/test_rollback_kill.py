"""Rollback and a process that is killed in the middle of it: a real SQLite file, and a real SIGKILL."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fsm_agent import PlannerEngine, RunResult

WORLD = """
import asyncio, os, signal, sys
from pathlib import Path
from fsm_agent import PlannerEngine, SkillContext, skill

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
IDEMPOTENT = len(sys.argv) > 2 and sys.argv[2] == "yes"


def note(folder, *words):
    with (folder / "calls.txt").open("a") as file:
        file.write(" ".join(map(str, words)) + "\\n")


def skills(folder, idempotent):
    def book(name: str, secret: str = ""):
        note(folder, "book", name)
        return {"name": name}

    @skill(idempotent=idempotent)
    def cancel(name: str, secret: str, context: SkillContext):
        first = not (folder / "killed").exists()
        note(folder, "cancel", name, secret, context.attempt, context.idempotency_key)
        if name == "room" and first:
            (folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def pay(context: SkillContext):
        note(folder, "pay", context.visit)
        if context.visit == 1:
            raise OSError("declined")

    return {"book": book, "cancel": cancel, "pay": pay}


def booking(name, *before):
    parameters = {"name": name, "secret": "${inputs.door}"}
    return {"id": name, "skill": "book", "parameters": parameters, "dependencies": [*before], "compensation": "cancel"}


PLAN = {
    "inputs": {"door": {"secret": True}},
    "tasks": [
        booking("seat"),
        booking("room", "seat"),
        booking("car", "room"),
        {"id": "bill", "skill": "pay", "dependencies": ["car"], "recovery": "rollback"},
    ],
}

if FOLDER is not None:
    engine = PlannerEngine(skills(FOLDER, IDEMPOTENT), store=FOLDER / "runs.db")
    asyncio.run(engine.run(PLAN, run_id="trip", inputs={"door": "open-sesame"}))
"""


def killed_in_the_middle(folder: Path, idempotent: str) -> list[list[str]]:
    """The calls until the process was killed, while it undid the room."""
    (folder / "world.py").write_text(WORLD, encoding="utf-8")
    command = [sys.executable, str(folder / "world.py"), str(folder), idempotent]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    return calls(folder)


def calls(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "calls.txt").read_text(encoding="utf-8").splitlines()]


def taken_up(folder: Path, *, idempotent: bool, decision: str | None = None) -> list[RunResult]:
    """What another process makes of the run."""
    world: dict[str, object] = {"__name__": "world"}
    sys_argv, sys.argv = sys.argv, ["world.py"]
    try:
        exec(compile(WORLD, "world.py", "exec"), world)
    finally:
        sys.argv = sys_argv
    skills = world["skills"](folder, idempotent)  # type: ignore[operator] # a function of the text above

    async def main() -> list[RunResult]:
        engine = PlannerEngine(skills, store=folder / "runs.db")
        results = [await engine.resume("trip", inputs={"door": "open-sesame"})]
        if decision is not None:
            await engine.decide("trip", "room", decision, by="ann")
            results.append(await engine.resume("trip", inputs={"door": "open-sesame"}))
        await engine.aclose()
        return results

    return asyncio.run(main())


BEFORE = ["book seat", "book room", "book car", "pay 1"]
AGAIN = ["book seat", "book room", "book car", "pay 2"]


def words(found: list[list[str]]) -> list[str]:
    return [" ".join(call[:2]) for call in found]


def test_an_idempotent_compensation_is_called_again_under_its_key(tmp_path: Path) -> None:
    before = killed_in_the_middle(tmp_path, "yes")
    assert words(before) == [*BEFORE, "cancel car", "cancel room"]
    [result] = taken_up(tmp_path, idempotent=True)
    assert result.phase == "completed"
    after = calls(tmp_path)
    assert words(after[len(before) :]) == ["cancel room", "cancel seat", *AGAIN]
    first, second = before[-1], after[len(before)]
    assert (first[2], first[4]) == (second[2], second[4]) == ("open-sesame", first[4])
    assert (first[3], second[3]) == ("1", "2")


@pytest.mark.parametrize(("decision", "more"), [("done", []), ("rerun", ["cancel room"])])
def test_about_any_other_a_person_decides(tmp_path: Path, decision: str, more: list[str]) -> None:
    before = killed_in_the_middle(tmp_path, "no")
    paused, result = taken_up(tmp_path, idempotent=False, decision=decision)
    assert [(each["kind"], each["task"]) for each in paused.waiting] == [("compensation", "room")]
    assert result.phase == "completed"
    assert result.rollbacks[0]["compensated"] == ["car", "room", "seat"]
    assert words(calls(tmp_path)[len(before) :]) == [*more, "cancel seat", *AGAIN]


def test_no_secret_is_in_the_file_of_the_store(tmp_path: Path) -> None:
    killed_in_the_middle(tmp_path, "yes")
    for path in tmp_path.glob("runs.db*"):
        assert b"sesame" not in path.read_bytes()
