"""Every block of the README and of the pages in `docs` does what it says."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml

from fsm_agent.cli.main import execute
from fsm_agent.core.result import RunResult
from fsm_agent.engine.simulation import simulate
from fsm_agent.plan.loader import check_plan
from fsm_agent.plan.spellings import PLAN_SPELLINGS
from tests.docs.pages import ROOT, Block, Table, blocks_of, pages, tables_of

BLOCKS = {block.place: block for page in pages() for block in blocks_of(page)}
OUTCOMES = [
    pytest.param(page, table, id=f"{page.name}:{table.line}")
    for page in pages()
    for table in tables_of(page)
    if table.head[0] == "outcomes"
]
READERS = ("cat", "head", "ls")
"""Programs, besides our own, that a page may show at work."""

MOST_LINES = 230


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example plans and skills as the current folder, without settings from outside."""
    for name in ("plans", "skills"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in os.environ if name.startswith(("FSM_AGENT_", "LLM_"))]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_block_does_what_it_says(block: Block, project: Path) -> None:
    for file, other in ((other.file, other) for other in BLOCKS.values() if other.page == block.page):
        if file is not None:
            (project / file).parent.mkdir(exist_ok=True)
            (project / file).write_text(other.text + "\n", encoding="utf-8")
    if "not run" not in block.notes:
        assert block.language in KINDS, f"nothing is known of blocks of {block.language or 'no language'}"
        KINDS[block.language](block)


@pytest.mark.parametrize(("page", "table"), OUTCOMES)
def test_a_plan_comes_to_what_the_table_below_it_says(page: Path, table: Table) -> None:
    plan = [block for block in blocks_of(page) if block.language == "yaml" and block.line < table.line][-1]
    compiled = check_plan(yaml.safe_load(plan.text)).compiled
    assert compiled is not None
    assert table.head == ("outcomes", "visits in order", "all but SUCCEEDED", "the run")
    for outcomes, *told in table.rows:
        script = {} if outcomes == "none" else yaml.safe_load(outcomes.strip("`"))
        assert told == row_of(simulate(compiled, script))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_is_short_and_its_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    ("expected", "same"),
    [
        ("a\nb\nc", True), ("a\n…\nc", True), ("…\na\nb\nc", True), ("a\n…b\nc", True), ("a\n…", True),
        ("a\nc", False), ("…b", False), ("", False),
    ],
)  # fmt: skip
def test_an_ellipsis_stands_for_what_may_differ_and_nothing_else_does(expected: str, same: bool) -> None:
    with nullcontext() if same else pytest.raises(AssertionError):
        assert_same(expected, "a\nb \nc\n")


def test_hardly_any_block_is_left_out() -> None:
    left_out = [block.place for block in BLOCKS.values() if "not run" in block.notes]
    assert len(left_out) * 20 <= len(BLOCKS), left_out


# Kinds of blocks ------------------------------------------------------------------------------------------------------


def run_python(block: Block) -> None:
    """Run in a namespace of its own; whatever it prints stands below it."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    if name := block.notes.get("setup"):
        (setup,) = (other for other in BLOCKS.values() if (other.page, other.notes.get("name")) == (block.page, name))
        execute_python(setup, namespace)
    assert_same(block.output or "", execute_python(block, namespace))


def execute_python(block: Block, namespace: dict[str, Any]) -> str:
    """Execute a block; returns what it prints."""
    stream = io.StringIO()
    with redirect_stdout(stream):
        exec(compile(block.text, block.place, "exec", dont_inherit=True), namespace)
    return stream.getvalue()


def run_console(block: Block) -> None:
    """Commands after `$`, and below each what it prints; `echo $?` shows the exit code of the one before."""
    code = 0
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, expected = part.replace("\\\n", "").partition("\n")
        code, printed = (code, f"{code}\n") if line == "echo $?" else run_command(line)
        assert_same(expected, printed)


def run_bash(block: Block) -> None:
    """Commands to type. Those that make an environment and run something in it come before these tests, not in them."""
    for line in block.text.replace("\\\n", "").splitlines():
        if line and not line.startswith(("#", "python3 -m venv ")):
            code, printed = run_command(line)
            assert code == 0, printed


def run_shell(block: Block) -> None:
    """A script for a real shell, with real processes and real signals."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    script = ["bash", "-c", block.text]
    done = subprocess.run(script, check=True, capture_output=True, text=True, env=environment, timeout=90)
    assert_same(block.output or "", done.stdout)


def run_sql(block: Block) -> None:
    """Questions to a store with a run in it."""
    assert run_command("fsm-agent run plans/umbrella.yaml --run-id r")[0] in (0, 3)
    con = sqlite3.connect(".fsm-agent/runs.db")
    for statement in filter(str.strip, block.text.split(";")):
        con.execute(statement).fetchall()
    con.close()


def run_command(line: str) -> tuple[int, str]:
    """The exit code of a command, and all that it prints."""
    program, *arguments = shlex.split(line, comments=True)
    if program in READERS:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
        return done.returncode, done.stdout
    assert Path(program).name == "fsm-agent", f"{program} is not run here"
    root, stream = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    try:
        with redirect_stdout(stream), redirect_stderr(stream):
            return execute(arguments), stream.getvalue()
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()


def read_data(block: Block) -> None:
    """Data that can be read. Where it holds a list of tasks it is a plan, with no problems but those that are named."""
    data = _READERS[block.language](block.text)
    if isinstance(data, dict) and any(isinstance(data.get(key), list) for key in _TASKS):
        file = Path(f"plan.{block.language}")
        file.write_text(block.text, encoding="utf-8")
        rules = [problem.rule for problem in check_plan(file).problems]
        assert sorted(rules) == sorted(block.notes.get("invalid", "").split())


def compare_picture(block: Block) -> None:
    """The machine, as it is drawn from its table."""
    code, printed = run_command("fsm-agent diagram machine --format mermaid")
    assert code == 0
    assert_same(block.text, printed)


_TASKS = ("tasks", *PLAN_SPELLINGS["tasks"])
_READERS: Mapping[str, Callable[[str], Any]] = {"yaml": yaml.safe_load, "json": json.loads, "toml": tomllib.loads}

KINDS: Mapping[str, Callable[[Block], None]] = {
    "python": run_python,
    "console": run_console,
    "bash": run_bash,
    "shell": run_shell,
    "sql": run_sql,
    "mermaid": compare_picture,
    **dict.fromkeys(_READERS, read_data),
}


# What is compared -----------------------------------------------------------------------------------------------------


def assert_same(expected: str, printed: str) -> None:
    """Line by line; `…` stands for anything within a line, and alone on its line for any number of lines."""
    wanted, got = ([line.rstrip() for line in text.strip("\n").splitlines()] for text in (expected, printed))
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in wanted
    )
    if re.fullmatch(pattern, "".join(f"{line}\n" for line in got)) is None:
        assert got == wanted


def row_of(result: RunResult) -> list[str]:
    """What a table says of a run: its visits, what did not succeed, and how it ended."""
    visits = " · ".join(f"{task} {word}" for task, word in result.trace)
    others = ", ".join(
        " ".join(filter(None, (task, each.status, each.reason)))
        for task, each in result.tasks.items()
        if each.status != "SUCCEEDED"
    )
    return [visits or "–", others or "–", end_of(result)]


def end_of(result: RunResult) -> str:
    """How a run ended: its outcome and its output, or the reason, with the setting where it was a limit."""
    if result.reason is not None:
        where = f" of {result.reason['task']}" if result.reason["task"] else ""
        limit = f" ({result.reason['setting']} {result.reason['count']})" if "setting" in result.reason else ""
        return f"{result.phase}: {result.reason['kind']}{where}{limit}"
    output = f", output `{json.dumps(result.output)}`" if result.output is not None else ""
    return f"{result.phase}, {result.outcome}{output}" if result.completed else result.phase
