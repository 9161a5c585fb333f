"""Every block of the README and of the pages in `docs` does what it says."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
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
TABLES = {
    f"{page.relative_to(ROOT).as_posix()}:{table.line}": (page, table)
    for page in pages()
    for table in tables_of(page)
    if table.head[0] == "outcomes"
}
READERS = ("cat", "head", "ls")
"""Programs, besides our own, that a page may show at work."""


@pytest.fixture
def _settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No settings from outside, and none left behind."""
    for name in [name for name in os.environ if name.startswith("FSM_AGENT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "path", list(sys.path))
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _settled: None) -> Path:
    """A copy of the example plans and skills, as the current folder."""
    for name in ("plans", "skills"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_block_does_what_it_says(block: Block, project: Path) -> None:
    for other in BLOCKS.values():
        if other.page == block.page and other.file is not None:
            target = project / other.file
            target.parent.mkdir(exist_ok=True)
            target.write_text(other.text + "\n", encoding="utf-8")
    if "not run" in block.notes:
        return
    if "output of" in block.notes:
        _, printed = _command(block.notes["output of"])
        assert_same(block.text, printed)
        return
    assert block.language in KINDS, f"nobody knows how to try a block of {block.language or 'no language'}"
    KINDS[block.language](block)


@pytest.mark.parametrize("place", TABLES)
def test_a_plan_comes_to_what_the_table_below_it_says(place: str) -> None:
    page, table = TABLES[place]
    plan = [block for block in blocks_of(page) if block.language == "yaml" and block.line < table.line][-1]
    compiled = check_plan(yaml.safe_load(plan.text)).compiled
    assert compiled is not None
    for row in table.rows:
        outcomes = yaml.safe_load(row[0].strip("`")) if row[0] != "none" else {}
        assert row[1:] == row_of(simulate(compiled, outcomes))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_is_short_and_its_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 230
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    left_out = [block.place for block in BLOCKS.values() if "not run" in block.notes]
    assert len(left_out) * 20 <= len(BLOCKS), left_out


# Kinds of blocks ------------------------------------------------------------------------------------------------------


def _python(block: Block) -> None:
    """Run in a namespace of its own; whatever it prints stands below it."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    if name := block.notes.get("setup"):
        (setup,) = (other for other in BLOCKS.values() if (other.page, other.notes.get("name")) == (block.page, name))
        _run(setup, namespace)
    assert_same(block.output or "", _run(block, namespace))


def _run(block: Block, namespace: dict[str, Any]) -> str:
    stream = io.StringIO()
    with redirect_stdout(stream):
        exec(compile(block.text, block.place, "exec", dont_inherit=True), namespace)
    return stream.getvalue()


def _console(block: Block) -> None:
    """Commands after `$`, and below each what it prints; `echo $?` shows the exit code of the one before."""
    code = 0
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, expected = part.replace("\\\n", "").partition("\n")
        code, printed = (code, f"{code}\n") if line == "echo $?" else _command(line)
        assert_same(expected, printed)


def _bash(block: Block) -> None:
    """Commands to type. The one that makes the environment for these tests has been run before them."""
    for line in block.text.replace("\\\n", "").splitlines():
        if line and not line.startswith(("#", "python3 -m venv ")):
            code, printed = _command(line)
            assert code == 0, printed


def _command(line: str) -> tuple[int, str]:
    """The exit code of a command, and all that it prints."""
    program, *arguments = shlex.split(line, comments=True)
    if program in READERS:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
        return done.returncode, done.stdout
    assert Path(program).name == "fsm-agent", f"{program} is not run here"
    stream = io.StringIO()
    with redirect_stdout(stream), redirect_stderr(stream):
        code = execute(arguments)
    return code, stream.getvalue()


def _data(block: Block) -> None:
    """Data that can be read; a plan, if a list of tasks is in it, without problems or with those that are named."""
    data = _READ[block.language](block.text)
    is_plan = isinstance(data, dict) and any(
        isinstance(data.get(key), list) for key in ("tasks", *PLAN_SPELLINGS["tasks"])
    )
    if is_plan:
        name = f"block.{block.language}"
        Path(name).write_text(block.text, encoding="utf-8")
        rules = sorted(problem.rule for problem in check_plan(name).problems)
        assert rules == sorted(block.notes.get("invalid", "").split())


_READ: dict[str, Callable[[str], Any]] = {"yaml": yaml.safe_load, "json": json.loads, "toml": tomllib.loads}

KINDS: dict[str, Callable[[Block], None]] = {
    "python": _python,
    "console": _console,
    "bash": _bash,
    **dict.fromkeys(_READ, _data),
}


# What is compared -----------------------------------------------------------------------------------------------------


def assert_same(expected: str, printed: str) -> None:
    """Line by line; `…` stands for anything within a line, and alone on its line for any number of lines."""
    wanted = [line.rstrip() for line in expected.strip("\n").splitlines()]
    got = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in wanted
    )
    if re.fullmatch(pattern, got + "\n" if got else "") is None:
        assert got == "\n".join(wanted)


def row_of(result: RunResult) -> tuple[str, str, str]:
    """What a table says of a run: its visits, what did not succeed, and how it ended."""
    visits = " · ".join(f"{task} {word}" for task, word in result.trace)
    others = ", ".join(
        f"{task} {each.status}" + (f" {each.reason}" if each.reason else "")
        for task, each in result.tasks.items()
        if each.status != "SUCCEEDED"
    )
    return visits or "–", others or "–", _end_of(result)


def _end_of(result: RunResult) -> str:
    if result.reason is not None:
        where = f" of {result.reason['task']}" if result.reason["task"] else ""
        limit = f" ({result.reason['setting']} {result.reason['count']})" if "setting" in result.reason else ""
        return f"{result.phase}: {result.reason['kind']}{where}{limit}"
    output = f", output `{json.dumps(result.output)}`" if result.output is not None else ""
    return f"{result.phase}, {result.outcome}{output}" if result.phase == "completed" else result.phase


def test_a_table_has_all_that_is_compared() -> None:
    assert {table.head for _, table in TABLES.values()} <= {HEAD}


HEAD = ("outcomes", "visits in order", "all but SUCCEEDED", "the run")

_ = Table
