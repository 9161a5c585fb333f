"""Pictures of runs: what became of each task, and the branches that were not taken."""

from __future__ import annotations

import json

import pytest

from fsm_agent import RunResult
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.testing import ScriptedSkill
from fsm_agent.views.diagram import Diagram, of_run
from fsm_agent.views.diagram.model import Node, Tone
from tests.engine.scripted import compiled
from tests.engine.support import bench, drive, plan_of
from tests.unit.test_diagram_golden import GOLDEN, RENDERERS, compare


def story() -> tuple[CompiledPlan, RunResult]:
    """A run in the middle: one of everything."""
    plan = plan_of(*json.loads((GOLDEN / "run.json").read_text(encoding="utf-8")), context={"n": 0})
    skills = [
        ScriptedSkill("work"),
        ScriptedSkill("flaky", [OSError("down"), {}], idempotent=True),
        ScriptedSkill("down", [OSError("no route")] * 9),
        ScriptedSkill("pay", risk="high"),
    ]
    made = bench([skill.function for skill in skills])
    return compiled(plan), drive(made.engine.run(plan, run_id="r-1"))


def picture() -> Diagram:
    return of_run(*story())


def node(key: str) -> Node:
    return next(each for each in picture().nodes if each.key == key)


@pytest.mark.parametrize("ending", RENDERERS)
def test_a_run_is_drawn_as_it_was_seen_to_be_right(ending: str) -> None:
    compare("run", ending, RENDERERS[ending](picture()))


@pytest.mark.parametrize(
    ("key", "tone", "words"),
    [
        ("取数", Tone.GOOD, "succeeded"),
        ("retry", Tone.GOOD, "succeeded · 2 attempts"),
        ("ship", Tone.BAD, "failed · exception"),
        ("celebrate", Tone.MUTED, "skipped · not taken"),
        ("spare", Tone.GOOD, "succeeded"),
        ("off", Tone.MUTED, "skipped · condition"),
        ("pay", Tone.CAUTION, "waiting approval"),
        ("later", Tone.PLAIN, "pending"),
    ],
)
def test_a_node_tells_what_became_of_its_task(key: str, tone: Tone, words: str) -> None:
    assert (node(key).tone, node(key).notes[0]) == (tone, words)


def test_only_branches_that_were_not_taken_are_pale() -> None:
    assert [(edge.source, edge.target) for edge in picture().edges if edge.faded] == [("ship", "celebrate")]


def test_the_title_says_which_run_it_is_and_in_which_phase() -> None:
    assert picture().title.endswith("— paused, run r-1")
