"""The command line as a real process: exit codes, streams, encodings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.project import Project, clean_environment, ended

GREETING = {
    "tasks": [{"id": "你好", "skill": "greet", "parameters": {"name": "世界"}}],
    "output": "results['你好'].data.text",
}
HUNG = {"tasks": [{"id": "hung", "skill": "wait", "parameters": {"seconds": 600}, "timeout": 0.2}]}


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        ({"tasks": [{"id": "a", "skill": "greet"}]}, 0),
        ({"tasks": [{"id": "a", "skill": "fail"}]}, 1),
        ({"tasks": [{"id": "a", "skill": "nothing"}]}, 2),
        ({"tasks": [{"id": "a", "skill": "send", "parameters": {"to": "x"}}]}, 3),
    ],
)
def test_the_exit_code_says_how_it_ended(project: Project, plan: dict[str, object], code: int) -> None:
    done = project.run("run", project.plan("plan.yaml", plan), "--json")
    assert done.code == code
    assert done.document["format"] == 1
    assert "Traceback" not in done.err


def test_what_a_skill_prints_is_not_in_the_document(project: Project) -> None:
    project.plan("skills/greeting.py", "print('hello from the import')")
    plan = project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "loud"}]})
    done = project.run("run", plan, "--json")
    assert (done.code, done.document["phase"]) == (0, "completed")
    assert all(text in done.err for text in ("hello from the import", "loud and", "clear"))
    assert "loud and" in project.run("run", plan).out


def test_a_terminal_that_knows_ascii_only_is_enough(project: Project) -> None:
    plan = project.plan("plan.yaml", GREETING)
    done = project.run("run", plan, env={"PYTHONIOENCODING": "ascii"})
    assert (done.code, "\\u4f60\\u597d" in done.out) == (0, True)
    done = project.run("run", plan, "--json", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (done.code, done.document["output"]) == (0, "Hello, 世界!")


def test_arguments_that_are_no_utf8_break_nothing(project: Project) -> None:
    command = [*map(os.fsencode, project.command("run")), b"\xff\xfe.yaml"]
    done = subprocess.run(command, cwd=project.folder, env=clean_environment(), capture_output=True, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("schema",), ("skills", "list", "--json"), ("run", "plan.yaml"), ("--help",)])
def test_a_reader_who_leaves_is_no_error(project: Project, arguments: tuple[str, ...]) -> None:
    project.plan("plan.yaml", GREETING)
    source, sink = os.pipe()
    os.close(source)
    process = project.process(*arguments, stdout=sink)
    os.close(sink)
    err = process.communicate(timeout=20)[1]
    assert err == b""
    assert process.returncode in (0, 1)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [("schema",), ("run", "plan.yaml"), ("diagram", "machine")])
def test_output_that_cannot_be_written_is_told_and_exits_1(project: Project, arguments: tuple[str, ...]) -> None:
    project.plan("plan.yaml", GREETING)
    with Path("/dev/full").open("wb") as full:
        process = project.process(*arguments, stdout=full)
        err = process.communicate(timeout=20)[1]
    assert process.returncode == 1
    assert (b"the run ended (completed)" in err) is (arguments[0] == "run")
    assert b"error: not all of the output could be written" in err
    assert b"Traceback" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("options", [(), ("--json", "--log-level", "debug")])
def test_a_standard_error_that_cannot_be_written_changes_no_exit_code(
    project: Project, options: tuple[str, ...]
) -> None:
    project.plan("plan.yaml", GREETING)
    with Path("/dev/full").open("wb") as full:
        process = project.process("run", "plan.yaml", *options, stderr=full)
        out = process.communicate(timeout=20)[0]
    assert process.returncode == 0
    assert out


@pytest.mark.parametrize("arguments", [("eval", "1", "--json"), ("run", "plan.yaml", "--json"), ("schema",)])
def test_nothing_is_left_open_that_python_would_warn_of(project: Project, arguments: tuple[str, ...]) -> None:
    project.plan("plan.yaml", GREETING)
    done = project.run(*arguments, env={"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"})
    assert done.code == 0
    assert "Warning" not in done.err


@pytest.mark.skipif(os.name == "nt", reason="needs a locale that knows ASCII only")
def test_where_the_locale_knows_ascii_only_names_and_texts_are_utf8_all_the_same(project: Project) -> None:
    plan = {
        "inputs": {"пароль": {"secret": True}, "é": {}},
        "tasks": [{"id": "a", "skill": "greet", "parameters": {"name": "${inputs['пароль']}"}}],
        "output": "[inputs['é'], len(inputs['пароль'])]",
    }
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    secret = {os.fsdecode("FSM_AGENT_SECRET_ПАРОЛЬ".encode()): "hüü-ß"}
    arguments = ("run", project.plan("plan.json", json.dumps(plan)), "--set", "é=ß", "--goal", "größe", "--json")
    done = project.run(*arguments, env={**ascii_only, **secret})
    assert done.code == 0
    assert (done.document["output"], done.document["goal"]) == (["ß", 5], "größe")


@pytest.mark.skipif(os.name == "nt", reason="a current folder cannot be deleted there")
@pytest.mark.parametrize("arguments", [("run", "plan.yaml"), ("validate", "plan.yaml"), ("skills", "list")])
def test_a_current_folder_that_is_gone_is_told(project: Project, arguments: tuple[str, ...]) -> None:
    gone = project.folder / "gone"
    gone.mkdir()
    project.plan("plan.yaml", GREETING)
    shell = " ".join(f"'{part}'" for part in project.command(*arguments, "--json"))
    done = subprocess.run(
        ["/bin/sh", "-c", f"rmdir ../gone; {shell}"],
        cwd=gone, env=clean_environment(), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "current folder" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.parametrize(
    "arguments", [("run", "--help", "--json"), ("--json", "--help"), ("skills", "--help", "--json")]
)
def test_help_that_was_asked_for_is_text_on_standard_output(project: Project, arguments: tuple[str, ...]) -> None:
    done = project.run(*arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: fsm-agent")


def test_without_standard_streams_it_runs_all_the_same(project: Project) -> None:
    project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "mark", "parameters": {"path": "made"}}]})
    shell = " ".join(f"'{part}'" for part in project.command("run", "plan.yaml"))
    done = subprocess.run(
        ["/bin/sh", "-c", f"{shell} <&- >&- 2>&-"], cwd=project.folder, env=clean_environment(), check=False
    )
    assert done.returncode == 0
    assert (project.folder / "made").exists()


def test_a_call_that_hangs_delays_no_exit(project: Project) -> None:
    done = ended(project.process("run", project.plan("plan.yaml", HUNG), "--json"), timeout=10)
    assert (done.code, done.document["reason"]["kind"]) == (1, "timeout")


def test_an_async_skill_that_swallows_its_cancellation_delays_no_exit(project: Project) -> None:
    plan = project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "stubborn", "timeout": 0.2}]})
    done = ended(project.process("run", plan, "--json"), timeout=10)
    assert (done.code, done.document["reason"]["kind"]) == (1, "timeout")
    assert "Traceback" not in done.err
    assert "destroyed" not in done.err


def test_a_task_that_a_skill_forgot_delays_no_exit(project: Project) -> None:
    done = ended(
        project.process("run", project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "forget"}]})), timeout=10
    )
    assert (done.code, done.err) == (0, "")


def test_the_program_and_the_module_are_the_same(project: Project) -> None:
    code = (
        "import sys; from fsm_agent.cli.main import main; sys.argv = ['fsm-agent', 'eval', '1 + 1', '--json']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["value"]) == (0, 2)
    assert project.run("eval", "1 + 1", "--json").document["value"] == 2


def test_the_version_does_not_wait_for_the_engine() -> None:
    called = "import sys; from fsm_agent.cli.main import execute; execute(['--version'])"
    code = f"{called}; print('fsm_agent.api' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, check=True)
    assert done.stdout.decode().splitlines()[1:] == ["False"]
