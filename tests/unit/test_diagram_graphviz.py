"""Pictures drawn by Graphviz, where there is one, and what is said where there is none."""

from __future__ import annotations

import shutil
import struct
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from fsm_agent.errors import DiagramError
from fsm_agent.plan.model import Plan
from fsm_agent.views.diagram import FORMATS, format_of, of_machine, of_plan, render, to_dot
from fsm_agent.views.diagram.graphviz_renderer import draw

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz on this machine")


def program(folder: Path, body: str) -> str:
    """A program that stands where Graphviz would."""
    path = folder / "dot"
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@needs_dot
def test_graphviz_draws_the_machine_as_svg_with_every_phase() -> None:
    root = ET.fromstring(render(of_machine(), "svg"))
    shown = {text.strip() for text in root.itertext()}
    assert {"idle", "planning", "executing", "evaluating", "paused", "completed", "failed", "cancelled"} <= shown
    assert "[something_to_judge]" in shown


@needs_dot
def test_graphviz_draws_the_machine_as_png() -> None:
    data = render(of_machine(), "png")
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    wide, high = struct.unpack(">II", data[16:24])
    assert wide > 600
    assert high > 300


@needs_dot
@pytest.mark.parametrize("name", ["layers", "loops", "odd_text", "sequential", "trip"])
def test_graphviz_draws_every_golden_plan_and_shows_every_id(name: str) -> None:
    plan = Plan.model_validate_json((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    root = ET.fromstring(render(of_plan(plan), "svg"))
    # Graphviz writes blanks as no-break spaces, and a long id stands on several lines.
    shown = "".join(root.itertext()).replace("\u00a0", " ").replace("\n", "")
    assert [task.id for task in plan.tasks if task.id not in shown] == []


def test_where_there_is_no_graphviz_the_error_says_what_to_install() -> None:
    with pytest.raises(DiagramError, match="none was found") as caught:
        draw("digraph {}", "svg", programs=["no-such-program"])
    assert "apt-get install graphviz" in caught.value.hint
    assert "pip install graphviz-pure" in caught.value.hint


def test_a_graphviz_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    slow = program(tmp_path, "time.sleep(60)")
    began = time.monotonic()
    with pytest.raises(DiagramError, match=r"did not finish within 0\.5 seconds"):
        draw("digraph {}", "svg", timeout=0.5, programs=[slow])
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("body", ["sys.exit(3)", "pass"])
def test_a_graphviz_that_fails_or_says_nothing_is_an_error(tmp_path: Path, body: str) -> None:
    with pytest.raises(DiagramError, match="failed with exit code"):
        draw("digraph {}", "svg", programs=[program(tmp_path, body)])


def test_a_graphviz_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    path = Path(program(tmp_path, "pass"))
    path.write_text("#!/no/such/interpreter\n", encoding="utf-8")
    with pytest.raises(DiagramError, match="could not be started"):
        draw("digraph {}", "svg", programs=[str(path)])


def test_graphviz_gets_the_text_on_its_standard_input(tmp_path: Path) -> None:
    echo = program(tmp_path, "print(sys.argv[1:], sys.stdin.buffer.read().decode())")
    assert draw("digraph { 中文 }", "png", programs=[echo]).decode() == "['-Tpng', '-Gdpi=144'] digraph { 中文 }\n"


def test_the_first_program_that_is_there_draws(tmp_path: Path) -> None:
    there = program(tmp_path, "print('drawn')")
    assert draw("digraph {}", "svg", programs=["no-such-program", there]) == b"drawn\n"


def test_text_formats_need_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert render(of_machine(), "dot").decode() == to_dot(of_machine())
    assert render(of_machine(), "mermaid").decode().splitlines()[3] == "stateDiagram-v2"


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("a.dot", "dot"),
        ("a.GV", "dot"),
        ("b/a.svg", "svg"),
        ("a.png", "png"),
        ("a.mmd", "mermaid"),
        ("a.x.mermaid", "mermaid"),
    ],
)
def test_the_ending_of_a_file_tells_the_format(path: str, form: str) -> None:
    assert format_of(path) == form
    assert form in FORMATS


@pytest.mark.parametrize("path", ["a.jpg", "a", ".svg"])
def test_another_ending_is_an_error_that_names_those_there_are(path: str) -> None:
    with pytest.raises(DiagramError) as caught:
        format_of(path)
    assert ".mmd" in caught.value.hint
