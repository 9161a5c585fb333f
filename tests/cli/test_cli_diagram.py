"""`diagram` and `schema`: what is drawn and published."""

from __future__ import annotations

import jsonschema
import pytest

from fsm_agent.views.diagram import graphviz_renderer
from tests.cli.project import Call, Project

PLAN = {"tasks": [{"id": "a", "skill": "greet"}, {"id": "b", "skill": "send", "parameters": {"to": "x"}}]}


def test_the_machine_is_drawn_as_dot_by_default(call: Call) -> None:
    ended = call("diagram", "machine")
    assert ended.code == 0
    assert ended.out.startswith("digraph")
    assert "evaluating" in ended.out


def test_a_plan_is_drawn_with_the_risk_of_its_skills(call: Call, project: Project) -> None:
    ended = call("diagram", project.plan("plan.yaml", PLAN), "--format", "mermaid")
    assert (ended.code, "flowchart" in ended.out, "high risk" in ended.out) == (0, True, True)


def test_the_ending_of_a_file_tells_the_format(call: Call, project: Project) -> None:
    assert call("diagram", "machine", "-o", "machine.mmd").out == ""
    assert "stateDiagram" in (project.folder / "machine.mmd").read_text()
    assert call("diagram", "machine", "-o", "machine.txt", "--format", "dot").code == 0
    assert (project.folder / "machine.txt").read_text().startswith("digraph")


def test_an_ending_that_tells_no_format_is_an_error(call: Call, project: Project) -> None:
    ended = call("diagram", "machine", "-o", "machine.txt", "--json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "diagram")
    assert not (project.folder / "machine.txt").exists()


def test_without_graphviz_a_picture_is_a_clear_error(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphviz_renderer.shutil, "which", lambda *_, **__: None)
    ended = call("diagram", "machine", "-o", "machine.svg")
    assert ended.code == 2
    assert "need Graphviz" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("arguments", [("--format", "gif"), ("-o", "nowhere/machine.dot"), ("--format", "png")])
def test_what_cannot_be_written_is_an_error(call: Call, arguments: tuple[str, ...]) -> None:
    assert call("diagram", "machine", *arguments, "--json").document["error"]["code"] == "usage"


def test_with_json_a_picture_comes_in_a_document(call: Call) -> None:
    document = call("diagram", "machine", "--json").document
    assert (document["format"], document["diagram"]["format"]) == (1, "dot")
    assert document["diagram"]["text"].startswith("digraph")
    document = call("diagram", "machine", "-o", "m.dot", "--json").document
    assert document == {"format": 1, "diagram": {"format": "dot", "file": "m.dot"}}


def test_a_plan_that_is_not_valid_is_drawn_and_still_not_valid(call: Call, project: Project) -> None:
    ended = call("diagram", project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "x", "dependencies": ["b"]}]}))
    assert ended.code == 2
    assert ended.out.startswith("digraph")
    assert "unknown_dependency" in ended.err


def test_a_file_that_is_no_plan_is_told_as_problems(call: Call, project: Project) -> None:
    ended = call("diagram", project.plan("plan.yaml", "tasks: 3"), "--json")
    assert (ended.code, ended.document["valid"]) == (2, False)


def test_the_schema_is_a_schema_that_takes_plans(call: Call) -> None:
    schema = call("schema").document
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(PLAN, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"tasks": [{"id": 3}]}, schema)
    assert call("schema", "--json").document == schema


def test_a_run_of_the_store_is_drawn_with_what_became_of_its_tasks(call: Call, project: Project) -> None:
    call("run", project.plan("plan.yaml", {"goal": "问候", **PLAN}), "--run-id", "r")
    drawn = call("diagram", "--run", "r")
    assert (drawn.code, "paused, run r" in drawn.out, "waiting approval" in drawn.out) == (0, True, True)
    for words in ((), ("machine", "--run", "r"), ("--run", "gone")):
        assert call("diagram", *words, "--json").code == 2
