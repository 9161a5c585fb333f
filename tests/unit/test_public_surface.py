"""The small public API: what `fsm_agent` gives, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fsm_agent


@pytest.mark.parametrize("name", fsm_agent.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(fsm_agent, name) is not None


def test_all_names_and_homes_agree() -> None:
    assert set(fsm_agent.__all__) == {*fsm_agent._HOMES, "__version__"}
    assert dir(fsm_agent) == sorted(fsm_agent.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="PlanerEngine"):
        fsm_agent.PlanerEngine  # noqa: B018 - reading it is the point


@pytest.mark.parametrize(
    "module", ["httpx", "typer", "rich", "yaml", "structlog", "sqlite3", "numpy", "importlib.metadata"]
)
def test_the_engine_imports_nothing_that_it_does_not_use(module: str) -> None:
    code = f"import sys; from fsm_agent import PlannerEngine; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
