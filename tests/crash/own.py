"""The repository's own plans, in a folder of the test's own, and what must be the same however often a process died."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OWN = ("sales_east_china", "business_trip", "umbrella")
DEADLY = Path(__file__).with_name("deadly.py")


def a_copy(folder: Path, *, deadly: bool = False) -> Path:
    """The plans and the skills; where it is to be deadly, with a file among these that may kill their process."""
    for name in ("plans", "skills"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    if deadly:
        (folder / "skills" / "deadly.py").write_text(f"{DEADLY.read_text(encoding='utf-8')}\n\narm()\n", "utf-8")
    return folder


def essence(document: Mapping[str, Any]) -> dict[str, Any]:
    """Of a result as JSON: all but times, how often calls were made, and who was told what."""
    kept = ("phase", "outcome", "reason", "output", "context", "criteria", "waiting")
    tasks = {
        name: {key: task[key] for key in ("status", "reason", "visits", "data", "error", "fallback_used", "verified")}
        for name, task in document["tasks"].items()
    }
    return _without_repeated({**{key: document[key] for key in kept}, "tasks": tasks})


def _without_repeated(value: Any) -> Any:
    """A booking says of itself whether it was there already: after a crash it may have been."""
    if isinstance(value, dict):
        return {key: _without_repeated(item) for key, item in value.items() if key != "repeated"}
    return [_without_repeated(item) for item in value] if isinstance(value, list) else value


def written(folder: Path) -> dict[str, bytes]:
    """What the plan has written, by file."""
    files = [path for path in (folder / "out").rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
