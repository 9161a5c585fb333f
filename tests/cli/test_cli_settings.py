"""Where settings come from, and in which order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fsm_agent._version import __version__
from fsm_agent.cli.settings import Settings, from_environment, from_pyproject, load_settings
from fsm_agent.errors import UsageError
from tests.cli.project import Call, Project

SOURCE = "from fsm_agent import skill\n@skill\ndef {0}(): return '{0}'\n"


@pytest.fixture
def sources(project: Project) -> None:
    for name in ("by_option", "by_variable", "by_pyproject"):
        project.plan(f"{name}.py", SOURCE.format(name))


def loaded(call: Call, *options: str) -> set[str]:
    document = call(*options, "skills", "list", "--json").document
    return {skill["name"] for skill in document["skills"]} & {"by_option", "by_variable", "by_pyproject", "greet"}


@pytest.mark.usefixtures("sources")
def test_an_option_wins_over_a_variable_and_that_over_pyproject_and_that_over_the_default(
    call: Call, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert loaded(call) == {"greet"}
    project.plan("pyproject.toml", '[tool.fsm-agent]\nskills = ["by_pyproject.py"]\n')
    assert loaded(call) == {"by_pyproject"}
    monkeypatch.setenv("FSM_AGENT_SKILLS", os.pathsep.join(["by_variable.py", "skills"]))
    assert loaded(call) == {"by_variable", "greet"}
    assert loaded(call, "--skills", "by_option.py") == {"by_option"}


@pytest.mark.usefixtures("sources")
def test_options_count_before_and_after_the_command(call: Call) -> None:
    before = call("--json", "--skills", "by_option.py", "skills", "show", "by_option")
    between = call("skills", "--json", "--skills", "by_option.py", "show", "by_option")
    after = call("skills", "show", "by_option", "--json", "--skills", "by_option.py")
    assert before.document == between.document == after.document
    both = call("--skills", "by_option.py", "skills", "list", "--skills", "by_variable.py", "--json").document
    assert {"by_option", "by_variable"} <= {skill["name"] for skill in both["skills"]}


def test_workers_and_the_default_skill_do_tasks(call: Call, project: Project) -> None:
    tasks = [{"id": "w", "worker": "greeter"}, {"id": "d", "parameters": {"value": 1}}]
    plan = project.plan("plan.yaml", {"tasks": tasks, "output": "[results.w.data, results.d.data]"})
    options = ["--worker", "greeter=greet", "--default-skill", "echo"]
    assert call("run", plan, "--json", *options).document["output"] == [{"text": "Hello, you!"}, 1]
    assert call("run", plan).code == 2


def test_the_settings_of_the_environment_are_read() -> None:
    settings = from_environment(
        {
            "FSM_AGENT_DEFAULT_SKILL": "llm",
            "FSM_AGENT_WORKER": "a=b, c=d",
            "FSM_AGENT_PLANS": "p",
            "FSM_AGENT_LOG_LEVEL": "INFO",
            "FSM_AGENT_LOG_FORMAT": "json",
            "FSM_AGENT_DEBUG": "1",
            "FSM_AGENT_STORE": "r.db",
            "FSM_AGENT_SKILLS": "",
            "FSM_AGENT_SECRET_X": "y",
        }
    )
    assert settings == Settings(None, "llm", {"a": "b", "c": "d"}, "p", "info", "json", True, "r.db")


def test_the_settings_of_pyproject_are_read(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(
        '[tool.fsm-agent]\nskills = "s"\ndefault_skill = "llm"\nplans = "p"\n'
        'log-level = "debug"\nlog-format = "console"\ndebug = false\nstore = "r.db"\n'
        '[tool.fsm-agent.workers]\na = "b"\n'
    )
    assert from_pyproject(file) == Settings(("s",), "llm", {"a": "b"}, "p", "debug", "console", False, "r.db")


@pytest.mark.parametrize("text", ["", "[tool.other]\nx = 1\n", "[project]\nname = 'x'\n"])
def test_a_pyproject_without_our_table_says_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(text)
    assert from_pyproject(file) == from_pyproject(tmp_path / "none") == Settings()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.fsm-agent]\nskils = []", "did you mean 'skills'"),
        ("[tool.fsm-agent]\nskills = 3", "skills"),
        ("[tool.fsm-agent]\nlog-level = 'loud'", "debug, info, warning, error"),
        ("[tool.fsm-agent]\ndebug = 'yes'", "true or false"),
        ("[tool.fsm-agent]\nworkers = ['a']", "table"),
        ("[tool]\nfsm-agent = 3", "table"),
        ("[tool.fsm-agent", "cannot be read"),
    ],
)
def test_a_pyproject_of_no_use_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_settings(Settings(), {}, file)
    assert says in f"{caught.value.message} {caught.value.hint}"
    assert "pyproject.toml" in caught.value.message


@pytest.mark.parametrize("name", ["DEBUG", "LOG_LEVEL", "LOG_FORMAT", "WORKER"])
def test_a_variable_of_no_use_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=f"FSM_AGENT_{name}"):
        from_environment({f"FSM_AGENT_{name}": "perhaps"})


@pytest.mark.parametrize("arguments", [("--version",), ("run", "--version"), ("--version", "nonsense")])
def test_the_version_is_told_before_and_after_a_command(call: Call, arguments: tuple[str, ...]) -> None:
    ended = call(*arguments)
    assert (ended.code, ended.out) == (0, f"fsm-agent {__version__}\n")
    assert call(*arguments[:1], "--json", *arguments[1:]).document == {"format": 1, "version": __version__}


# Usage ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",), ("run", "--nope"), ("validate",), ("skills",), ("skills", "call", "x"), ("eval",), ("diagram",),
        ("run", "p", "q"), ("run", "--max-parallel", "many"), ("run", "--goal"), ("runs", "lists"), ("run", "--step"),
        ("skills", "list", "--worker", "a"), ("skills", "list", "--log-level", "loud"),
    ],
)  # fmt: skip
def test_bad_usage_is_told_in_words_or_as_json(call: Call, arguments: tuple[str, ...]) -> None:
    ended = call(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "error: " in ended.err
    ended = call("--json", *arguments)
    assert (ended.code, ended.err) == (2, "")
    assert list(ended.document["error"]) == ["code", "message", "hint"]
    assert ended.document["error"]["code"] == "usage"


def test_without_arguments_help_is_shown(call: Call) -> None:
    ended = call()
    assert ended.code == 2
    assert "Commands:" in ended.out


@pytest.mark.parametrize("arguments", [("run",), ("skills",), ("skills", "list"), ("diagram",), ("eval",)])
def test_help_is_there_for_each_command(call: Call, arguments: tuple[str, ...]) -> None:
    ended = call(*arguments, "--help")
    assert (ended.code, "Usage: " in ended.out) == (0, True)


def test_what_should_not_happen_is_told_without_a_traceback(
    call: Call, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise LookupError("hunter2")

    monkeypatch.setattr("fsm_agent.cli.schema.plan_schema", broken)
    ended = call("schema")
    assert ended.code == 1
    assert "internal error: LookupError at fsm_agent/cli/schema.py" in ended.err
    assert "Traceback" not in ended.err
    assert "hunter2" not in ended.err
    assert call("schema", "--json").document["error"]["code"] == "internal"
    assert "Traceback" in call("schema", "--debug").err
    project.plan("pyproject.toml", "[tool.fsm-agent]\ndebug = true\n")
    assert "Traceback" in call("schema").err
    monkeypatch.setenv("FSM_AGENT_DEBUG", "0")
    assert "Traceback" not in call("schema").err


def test_ctrl_c_before_a_run_is_an_interruption(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fsm_agent.cli.schema.plan_schema", pressed)
    assert call("schema").code == 130
    assert call("schema", "--json").document["error"]["code"] == "interrupted"
