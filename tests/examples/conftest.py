"""Running the example plans as a user would, but in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from example_plans import engine, plan_file

from fsm_agent import RunResult


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunResult]:
    """`run("umbrella", {inputs}, …)`, from within an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_plan(name: str, inputs: Mapping[str, Any], **options: Any) -> RunResult:
        return engine().run_sync(plan_file(name), inputs=inputs, **options)

    return run_plan
