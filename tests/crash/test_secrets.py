"""Secrets in a store whose process was killed: none of its files has one, in whatever form, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fsm_agent.forms import forms_of, leaves_of
from tests.crash.leaky import PLAN, SECRETS, engine, told
from tests.engine.support import drive

ROOT = Path(__file__).parents[2]
WAIT = 60.0


def bytes_that_tell() -> Iterator[tuple[str, bytes]]:
    """Each form of each secret, as it is and as it would stand in JSON."""
    for leaf in leaves_of(SECRETS):
        for form in forms_of(leaf):
            yield form.word, form.text.encode()
            yield form.word, json.dumps(form.text, ensure_ascii=False)[1:-1].encode()
            yield form.word, json.dumps(form.text)[1:-1].encode()


def found_in(folder: Path) -> set[tuple[str, str, str]]:
    """What is told, by which file."""
    files = {path.name: path.read_bytes() for path in folder.glob("runs.db*")}
    assert {"runs.db", "runs.db-wal"} <= files.keys()
    return {
        (name, word, text.decode()) for name, kept in files.items() for word, text in bytes_that_tell() if text in kept
    }


def killed_while_it_hangs(folder: Path) -> None:
    """A run in another process, which dies in the middle of its last call."""
    said = folder / "said.txt"
    with said.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.leaky", str(folder)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stderr=errors,
        )
    assert process.stdin is not None
    process.stdin.write(json.dumps(SECRETS).encode())
    process.stdin.close()
    until = time.monotonic() + WAIT
    while not (folder / "hung.txt").exists():
        assert process.poll() is None, said.read_text()
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=WAIT)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    killed_while_it_hangs(folder)
    return folder


def test_no_file_of_the_store_has_a_secret_in_any_form_and_the_run_comes_to_its_end_with_all_of_them(
    killed: Path,
) -> None:
    assert found_in(killed) == set()

    async def main() -> None:
        async with engine(killed) as made:
            result = await made.resume("r", inputs=SECRETS)
            assert result.phase == "completed", result.reason
            assert result.tasks["tell"].data == told(SECRETS)
            assert result.context["told"] == told(SECRETS)
            assert result.context["total"] == 1 + SECRETS["number"]
            assert result.tasks["hang"].data["as it was"] is True
            assert SECRETS["quoted"] in result.tasks["hang"].data["note"]
            assert found_in(killed) == set(), "nor while another process goes on"
            shown = await made.show("r")
            assert shown.phase == "completed"
            assert "***" in shown.context["total"], "what is not known cannot be added up"
            assert not any(text.decode() in str(shown.to_json()) for _, text in bytes_that_tell())

    drive(main())


def test_the_plan_of_this_page_declares_all_of_them() -> None:
    assert all(PLAN["inputs"][name]["secret"] for name in SECRETS)
