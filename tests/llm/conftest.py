"""No server, model or key from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def nothing_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a test says is set."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("LLM_")]:
        monkeypatch.delenv(name)
