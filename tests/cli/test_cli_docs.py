"""The page on the command line says what the command line has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from fsm_agent.cli.program import COMMANDS, Commands, app
from fsm_agent.cli.settings import from_environment, from_pyproject

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join(DOCS.joinpath(name).read_text(encoding="utf-8") for name in ("cli.md", "runs.md"))


def options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (option for option in parameter.opts if option.startswith("-"))
    for below in getattr(command, "commands", {}).values():
        yield from options(below)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_on_the_page(name: str) -> None:
    command = Commands().get_command(None, name)
    assert f"`{name}" in PAGE
    found = {*options(command), *options(typer.main.get_command(app))}
    assert found
    assert not [option for option in found if f"`{option}" not in PAGE]


def test_every_document_on_the_page_is_json() -> None:
    blocks = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) >= 5
    for block in blocks:
        json.loads(block)


def test_the_settings_on_the_page_are_settings(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0], encoding="utf-8")
    assert from_pyproject(file).skills == ("skills", "mycompany.skills")
    names = set(re.findall(r"`FSM_AGENT_(?!SECRET)([A-Z_]+)`", PAGE))
    given = {"LOG_LEVEL": "info", "LOG_FORMAT": "json", "DEBUG": "1", "WORKER": "a=b"}
    settings = from_environment({f"FSM_AGENT_{name}": given.get(name, "x") for name in names})
    assert None not in [getattr(settings, name) for name in settings.__slots__]
