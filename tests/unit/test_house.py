"""The house rules that no linter knows: the core is pure."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "fsm_agent" / "core"
FORBIDDEN = {
    "asyncio", "concurrent", "httpx", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets",
    "shutil", "socket", "sqlite3", "structlog", "subprocess", "sys", "tempfile", "threading", "time", "uuid",
}  # fmt: skip
CLOCKS = {"now", "today", "utcnow"}


def modules() -> list[Path]:
    return sorted(CORE.glob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.stem)
def test_the_core_imports_no_world(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        assert not FORBIDDEN & {name.split(".")[0] for name in names}, f"line {node.lineno}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.stem)
def test_the_core_waits_for_nothing_opens_no_file_and_reads_no_clock(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        assert not isinstance(node, (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith))
        if isinstance(node, ast.Call):
            called = node.func
            assert not (isinstance(called, ast.Name) and called.id in {"open", "print", "input"}), f"line {node.lineno}"
            assert not (isinstance(called, ast.Attribute) and called.attr in CLOCKS), f"line {node.lineno}"


@pytest.mark.parametrize("floor", ["core", "engine", "journal", "planner", "plan", "skills"])
def test_nothing_but_a_runs_beginning_assigns_a_phase(floor: str) -> None:
    for path in (CORE.parent / floor).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for target in targets_of(node):
                if isinstance(target, ast.Attribute) and target.attr == "phase":
                    assert path.name == "state.py", f"{path}: line {node.lineno}"  # type: ignore[attr-defined]


def targets_of(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else []
