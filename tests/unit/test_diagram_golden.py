"""The text of diagrams, compared with files that were looked at once as pictures.

To accept a wanted change: `WRITE_GOLDEN=1 pytest tests/unit/test_diagram_golden.py`, then look at the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fsm_agent.plan.model import Plan
from fsm_agent.views.diagram import Diagram, of_machine, of_plan, to_dot, to_mermaid

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
PLANS = ["layers", "loops", "odd_text", "sequential", "trip"]
RENDERERS = {"dot": to_dot, "mmd": to_mermaid}


def compare(name: str, ending: str, text: str) -> None:
    path = GOLDEN / f"{name}.{ending}"
    if os.environ.get("WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8", newline="\n")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("ending", RENDERERS)
def test_the_machine_is_drawn_as_it_was_seen_to_be_right(ending: str) -> None:
    compare("machine", ending, RENDERERS[ending](of_machine()))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("ending", RENDERERS)
def test_a_plan_is_drawn_as_it_was_seen_to_be_right(name: str, ending: str) -> None:
    plan = Plan.model_validate_json((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    compare(name, ending, RENDERERS[ending](of_plan(plan)))


@pytest.mark.parametrize("renderer", RENDERERS.values())
def test_the_same_plan_gives_the_same_text_twice(renderer: Callable[[Diagram], str]) -> None:
    plan = Plan.model_validate_json((GOLDEN / "layers.json").read_text(encoding="utf-8"))
    assert renderer(of_plan(plan)) == renderer(of_plan(plan))
