"""Plans to die in, and what their tasks do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def task(name: str, after: str | list[str] = (), **words: Any) -> dict[str, Any]:  # type: ignore[assignment]
    needs = [after] if isinstance(after, str) else list(after)
    skill = {} if {"skill", "verification"} & words.keys() else {"skill": "work"}
    return {"id": name, **skill, **({"dependencies": needs} if needs else {}), **words}


BUSY: dict[str, Any] = {
    "goal": "Everything at once",
    "context": {"total": 0, "seen": [], "round": 0},
    "merge": {"total": "sum", "seen": "append"},
    "limits": {"max_parallel": 3},
    "tasks": [
        task("first"),
        task("left", "first"),
        task("right", "first"),
        task("flaky", "first", max_retries=3),
        task("stands_in", "first", max_retries=0, fallback={"skill": "work"}),
        task("valued", "first", max_retries=0, fallback={"value": {"n": 0}}),
        task("agreed", "left", approval="required"),
        task("join", ["left", "right", "flaky", "stands_in", "valued"]),
        task("draft", "join"),
        task("good", "draft", verification="context['round'] >= 3", on_success="publish", on_failure="draft"),
        task("publish"),
        task("bad", "join", max_retries=0, on_failure="mend"),
        task("mend"),
        task("no", "join", condition="context['total'] < 0"),
        task("last", ["publish", "agreed"], join="all_done", condition="context['total'] == 3"),
    ],
    "output": "context['total']",
}
BUSY_SCRIPT: Mapping[str, Callable[[int, int], Any]] = {
    "left": lambda visit, _: {"n": visit, "writes": {"total": 1, "seen": "左"}},
    "right": lambda visit, _: {"n": visit, "writes": {"total": 2, "seen": "右"}},
    "flaky": lambda visit, attempt: OSError("down") if attempt < 3 else {"n": visit},
    "stands_in": lambda visit, attempt: {"n": "instead"},
    "valued": lambda visit, attempt: ValueError("no"),
    "draft": lambda visit, _: {"n": visit, "writes": {"round": visit}},
    "bad": lambda visit, attempt: RuntimeError("bad"),
}

ABORTED: dict[str, Any] = {
    "goal": "It fails, and cleans up",
    "tasks": [
        task("open"),
        task("slow", "open"),
        task("breaks", "open", max_retries=1),
        task("after", "breaks"),
        task("close", ["open", "after"], join="all_done"),
        task("sweep", "close", join="all_done"),
    ],
}
ABORTED_SCRIPT: Mapping[str, Callable[[int, int], Any]] = {
    "breaks": lambda visit, attempt: OSError("broken"),
}

SEQUENCE: dict[str, Any] = {
    "goal": "One after the other",
    "flow": "sequential",
    "context": {"n": 0},
    "tasks": [
        task("a"),
        task("b", on_failure="c"),
        task("c"),
        task("d", verification="results.a.success", on_success="e"),
        task("e"),
        task("f", priority="low"),
        task("g", soft_dependencies=["f"]),
    ],
    "completion_criteria": [{"check": "results.g.success"}],
}
SEQUENCE_SCRIPT: Mapping[str, Callable[[int, int], Any]] = {
    "b": lambda visit, attempt: OSError("no"),
    "f": lambda visit, attempt: OSError("no"),
}

PLANS = {
    "busy": (BUSY, BUSY_SCRIPT),
    "aborted": (ABORTED, ABORTED_SCRIPT),
    "sequence": (SEQUENCE, SEQUENCE_SCRIPT),
}
