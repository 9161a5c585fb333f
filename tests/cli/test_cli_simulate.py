"""`simulate`: scripted outcomes in, a run's document out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.project import Call, Project

PLAN = {
    "inputs": {"who": {"default": "Ada"}},
    "tasks": [
        {"id": "a", "skill": "not there", "on_failure": "b", "risk_level": "high"},
        {"id": "b", "skill": "nor this"},
    ],
    "output": "who",
}


def outcomes(project: Project, script: Any) -> list[str]:
    return ["--outcomes", project.plan("outcomes.json", json.dumps(script))]


def test_no_skill_needs_to_exist_and_approvals_count_as_given(call: Call, project: Project) -> None:
    document = call("simulate", project.plan("plan.yaml", PLAN), "--json").document
    assert (document["format"], document["phase"], document["outcome"]) == (1, "completed", "clean")
    assert (document["trace"], document["elapsed_s"]) == ([["a", "ok"]], 0.0)
    assert document["tasks"]["b"]["reason"] == "not_taken"


def test_outcomes_are_played(call: Call, project: Project) -> None:
    plan = project.plan("plan.yaml", PLAN)
    document = call("simulate", plan, "--json", *outcomes(project, {"a": ["fail"]})).document
    assert (document["outcome"], document["trace"]) == ("handled_failures", [["a", "fail"], ["b", "ok"]])


def test_people_get_the_visits_and_a_summary(call: Call, project: Project) -> None:
    ended = call("simulate", project.plan("plan.yaml", PLAN), *outcomes(project, {"a": ["timeout"], "b": ["fail"]}))
    assert ended.code == 1
    assert ended.out.startswith("fail  a\nfail  b\n\nfailed\n")


@pytest.mark.parametrize(
    ("recovery", "code", "phase"), [("abort", 1, "failed"), ("skip", 0, "completed"), ("pause", 3, "paused")]
)
def test_the_exit_code_is_that_of_the_phase(call: Call, project: Project, recovery: str, code: int, phase: str) -> None:
    plan = project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "x", "recovery": recovery}]})
    ended = call("simulate", plan, "--json", *outcomes(project, {"a": ["fail"]}))
    assert (ended.code, ended.document["phase"]) == (code, phase)


def test_goal_and_inputs_are_taken(call: Call, project: Project) -> None:
    document = call("simulate", project.plan("plan.yaml", PLAN), "--json", "--goal", "g", "--set", "who=[1]").document
    assert (document["goal"], document["output"]) == ("g", [1])


def test_a_secret_is_in_no_output(call: Call, project: Project) -> None:
    plan = {"inputs": {"pin": {"secret": True}}, "tasks": [{"id": "a", "skill": "x"}], "output": "inputs.pin"}
    ended = call("simulate", project.plan("plan.yaml", plan), "--set", "pin=hunter-22", "--json")
    assert ended.document["output"] == "***"
    assert "hunter" not in ended.out + ended.err


def test_the_default_of_a_secret_input_is_in_no_output(call: Call, project: Project) -> None:
    inputs = {"pin": {"secret": True, "default": "hunter-22"}}
    plan = project.plan("plan.yaml", {"inputs": inputs, "tasks": [{"id": "a", "skill": "x"}], "output": "inputs.pin"})
    for options in ((), ("--json",)):
        ended = call("simulate", plan, *options)
        assert "***" in ended.out
        assert "hunter-22" not in ended.out + ended.err


@pytest.mark.parametrize(
    "script", [{"nobody": ["ok"]}, {"a": []}, {"a": "ok"}, {"a": ["maybe"]}, {"a": [{"date": 1}]}, ["ok"]]
)
def test_a_script_that_does_not_fit_is_bad_usage(call: Call, project: Project, script: Any) -> None:
    ended = call("simulate", project.plan("plan.yaml", PLAN), "--json", *outcomes(project, script))
    assert (ended.code, ended.document["error"]["code"]) == (2, "usage")


@pytest.mark.parametrize("text", ['{"a": ["ok"], "a": ["fail"]}', '{"a": [{"data": 1e999}]}', '{"a": ', ""])
def test_a_file_of_outcomes_that_cannot_be_read_is_named(call: Call, project: Project, text: str) -> None:
    file = project.plan("outcomes.json", text)
    ended = call("simulate", project.plan("plan.yaml", PLAN), "--outcomes", file)
    assert ended.code == 2
    assert "outcomes.json" in ended.err


def test_a_plan_that_is_not_valid_exits_2_with_its_problems(call: Call, project: Project) -> None:
    ended = call("simulate", project.plan("plan.yaml", {"tasks": [{"id": "a", "subgoal": "more"}]}), "--json")
    assert (ended.code, ended.document["valid"]) == (2, False)
    assert [problem["rule"] for problem in ended.document["problems"]] == ["not_supported"]
