"""The project, and the command line in this process."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from fsm_agent.cli.main import execute
from tests.cli.project import SKILLS, Call, Ended, Project
from tests.cli.stored import PAY


@pytest.fixture
def project(tmp_path: Path) -> Project:
    skills = tmp_path / "skills"
    skills.mkdir()
    (skills / "demo.py").write_text(SKILLS, encoding="utf-8")
    return Project(tmp_path)


@pytest.fixture
def call(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """The command line in this process, within the project's folder."""
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "120")
    for name in [name for name in os.environ if name.startswith("FSM_AGENT_")]:
        monkeypatch.delenv(name)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def called(*arguments: str) -> Ended:
        capsys.readouterr()
        code = execute(arguments)
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    yield called
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def shop(project: Project) -> Project:
    project.plan("skills/pay.py", PAY)
    return project
