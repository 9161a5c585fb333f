"""`validate`: problems, for people and for programs."""

from __future__ import annotations

import json

import pytest

from fsm_agent.cli.problems import line_of
from fsm_agent.errors import Problem
from tests.cli.project import Call, Project

BAD = """\
tasks:
  - id: a
    skill: gret
    dependencies: [c]
  - id: b
    skill: greet
    condition: contxt.x > 1
"""

PROBLEM_KEYS = {"file", "rule", "severity", "task", "field", "line", "column", "message", "hint"}


def test_a_valid_plan_exits_0(call: Call, project: Project) -> None:
    ended = call("validate", project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "greet"}]}))
    assert (ended.code, ended.out) == (0, "1 plan checked: valid\n")


def test_the_document_has_all_problems_with_all_keys_in_order(call: Call, project: Project) -> None:
    ended = call("validate", project.plan("bad.yaml", BAD), "--json")
    assert ended.code == 2
    assert list(ended.document) == ["format", "valid", "problems"]
    assert ended.document["valid"] is False
    assert all(set(problem) == PROBLEM_KEYS for problem in ended.document["problems"])
    places = [(problem["line"], problem["rule"], problem["task"]) for problem in ended.document["problems"]]
    assert places == [(3, "unknown_skill", "a"), (4, "unknown_dependency", "a"), (7, "unknown_name", "b")]


def test_people_get_a_line_for_each_problem(call: Call, project: Project) -> None:
    lines = call("validate", project.plan("bad.yaml", BAD)).out.splitlines()
    assert lines[0] == "bad.yaml:3: error unknown_skill a skill: there is no skill 'gret' (did you mean 'greet'?)"
    assert lines[2].startswith("bad.yaml:7: error unknown_name b condition column 1: ")
    assert lines[-1] == "1 plan checked: not valid, 3 errors"


def test_problems_of_several_files_are_in_the_order_of_file_and_line(call: Call, project: Project) -> None:
    files = [project.plan("z.yaml", BAD), project.plan("a.json", '{"tasks": [}')]
    ended = call("validate", *files, "--json")
    problems = ended.document["problems"]
    assert [problem["file"] for problem in problems] == ["a.json", "z.yaml", "z.yaml", "z.yaml"]
    assert (problems[0]["rule"], problems[0]["line"]) == ("bad_syntax", 1)
    assert "2 plans checked: not valid, 4 errors" in call("validate", *files).out


def test_any_skill_leaves_skills_unchecked_and_loads_none(call: Call, project: Project) -> None:
    (project.folder / "skills" / "broken.py").write_text("raise OSError('no')")
    plan = project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "whatever", "worker": "w"}, {"id": "b"}]})
    ended = call("validate", plan, "--any-skill")
    assert (ended.code, ended.err) == (0, "")
    assert call("validate", plan).code == 2


def test_warnings_leave_a_plan_valid(call: Call, project: Project) -> None:
    task = {"id": "a", "skill": "send", "parameters": {"to": "x"}, "risk_level": "low"}
    ended = call("validate", project.plan("plan.yaml", {"tasks": [task]}), "--json")
    assert (ended.code, ended.document["valid"]) == (0, True)
    assert [problem["severity"] for problem in ended.document["problems"]] == ["warning"]


def test_a_file_that_is_not_there_is_an_error_and_no_problem(call: Call) -> None:
    ended = call("validate", "nowhere.yaml", "--json")
    assert (ended.code, list(ended.document)) == (2, ["format", "error"])


@pytest.mark.parametrize("options", [(), ("--any-skill",)])
def test_a_file_that_cannot_be_read_hides_nothing_of_the_others(
    call: Call, project: Project, options: tuple[str, ...]
) -> None:
    plan = project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "greet", "dependencies": ["lost"]}]})
    ended = call("validate", "nowhere.yaml", plan, ".", "--json", *options)
    assert ended.code == 2
    found = [(problem["file"], problem["rule"]) for problem in ended.document["problems"]]
    assert found == [(".", "bad_syntax"), ("nowhere.yaml", "bad_syntax"), ("plan.yaml", "unknown_dependency")]


def test_where_a_skill_file_failed_an_unknown_skill_names_it(call: Call, project: Project) -> None:
    (project.folder / "skills" / "broken.py").write_text("import nowhere_to_be_found")
    plan = project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "lost"}]})
    ended = call("validate", plan, "--json")
    [problem] = ended.document["problems"]
    assert problem["rule"] == "unknown_skill"
    assert "broken.py could not be loaded" in problem["hint"]
    assert "broken.py could not be loaded" in ended.err


def test_hostile_text_in_a_plan_cannot_command_the_terminal(call: Call, project: Project) -> None:
    hostile = "\x1b]0;owned\x07\x9b31m\u202egnp\r\n"
    plan = {"tasks": [{"id": "a", "skill": f"x{hostile}"}, {"id": "b", "skill": "greet", "dependencies": [hostile]}]}
    file = project.plan("plan.json", json.dumps(plan))
    for ended in (call("validate", file), call("validate", file, "--json")):
        assert ended.code == 2
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r"} & set(ended.out)


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (Problem("empty_plan", "it is empty"), "error empty_plan: it is empty"),
        (Problem("bad_syntax", "no", file="p.yaml", line=2, column=5), "p.yaml:2:5: error bad_syntax: no"),
        (
            Problem("bad_expression", "no", file="p", line=2, column=5, task="t", field="condition", hint="x"),
            "p:2: error bad_expression t condition column 5: no (x)",
        ),
        (Problem("risk_raised", "a\nb", severity="warning", task="t"), "warning risk_raised t: a b"),
    ],
)
def test_a_line_says_what_is_known(problem: Problem, line: str) -> None:
    assert line_of(problem) == line


def test_where_there_is_no_folder_of_skills_an_unknown_skill_says_so(call: Call, project: Project) -> None:
    (project.folder / "skills").rename(project.folder / "my_skills")
    plan = project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "greet"}]})
    assert "there is no ./skills here: use --skills" in call("validate", plan).out
    assert "there is no ./skills here: use --skills" in call("run", plan).out
    assert call("validate", plan, "--skills", "my_skills").code == 0
