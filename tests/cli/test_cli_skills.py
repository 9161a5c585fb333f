"""`skills`: what is there, where it is from, and what could not be loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.project import Call, Project

KEYS = ["name", "description", "risk", "permissions", "idempotent", "writes", "parameters", "policy", "source"]
POLICY = ["timeout", "max_retries", "retry_on", "backoff", "fallback"]


def names(call: Call, *options: str) -> set[str]:
    return {skill["name"] for skill in call("skills", "list", "--json", *options).document["skills"]}


def test_the_list_has_the_projects_skills_and_the_built_in_ones(call: Call) -> None:
    assert {"greet", "send", "read_file", "http_request"} <= names(call)


def test_people_get_a_table(call: Call) -> None:
    lines = call("skills", "list").out.splitlines()
    assert lines[0].split() == ["name", "risk", "permissions", "from", "description"]
    [line] = [line for line in lines if line.startswith("send ")]
    assert "high" in line
    assert str(Path("skills", "demo.py")) in line
    assert line.endswith("Send a mail.")


def test_a_skill_is_shown_with_schema_and_policy(call: Call, project: Project) -> None:
    document = call("skills", "show", "send", "--json").document
    assert list(document) == ["format", *KEYS]
    assert list(document["policy"]) == POLICY
    assert document["parameters"]["required"] == ["to"]
    assert document["source"].startswith(str(project.folder))
    assert '"required"' in call("skills", "show", "send").out


def test_an_unknown_skill_is_an_error_that_names_the_nearest(call: Call) -> None:
    ended = call("skills", "show", "gret", "--json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "unknown_skill")
    assert "greet" in ended.document["error"]["hint"]


def test_a_file_that_fails_to_import_is_named_and_the_others_are_there(call: Call, project: Project) -> None:
    (project.folder / "skills" / "broken.py").write_text("1 / 0\n")
    ended = call("skills", "list", "--json")
    assert ended.code == 0
    assert "greet" in {skill["name"] for skill in ended.document["skills"]}
    [failed] = ended.document["errors"]
    assert failed["file"].endswith("broken.py")
    assert "ZeroDivisionError" in failed["message"]
    assert "broken.py" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("where", ["broken.py", "broken_module", "nowhere", "nowhere.py"])
def test_a_file_or_module_that_was_named_and_fails_is_an_error(call: Call, project: Project, where: str) -> None:
    for name in ("broken.py", "broken_module.py"):
        (project.folder / name).write_text("raise OSError('no')")
    ended = call("skills", "list", "--skills", where, "--json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "skill_load")
    assert where in ended.document["error"]["message"]


@pytest.mark.parametrize(
    ("where", "words"), [("nofolder", "no such file, folder"), ("no/where", "no such file"), ("data.yaml", ".py")]
)
def test_what_is_no_source_of_skills_is_told_as_that(call: Call, project: Project, where: str, words: str) -> None:
    project.plan("data.yaml", "a: 1")
    error = call("skills", "list", "--skills", where, "--json").document["error"]
    assert words in error["message"]
    assert "Error" not in error["message"]
    assert "what other files hold" not in error["hint"]


def test_two_skills_of_one_name_are_an_error_that_names_both_files(call: Call, project: Project) -> None:
    (project.folder / "skills" / "twin.py").write_text("from fsm_agent import skill\n@skill\ndef greet(): ...\n")
    ended = call("skills", "list", "--json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "duplicate_skill")
    assert "demo.py" in ended.document["error"]["message"]
    assert "twin.py" in ended.document["error"]["message"]


def test_skills_come_from_files_folders_and_modules(call: Call, project: Project) -> None:
    source = "from fsm_agent import skill\n@skill\ndef {0}(): ...\n"
    for path, name in (
        ("one.py", "from_file"),
        ("more/two.py", "from_folder"),
        ("cli_project_three.py", "from_module"),
    ):
        project.plan(path, source.format(name))
    found = names(call, "--skills", "one.py", "--skills", "more", "--skills", "cli_project_three")
    assert {"from_file", "from_folder", "from_module"} <= found
    assert "greet" not in found
