"""Ctrl-C and SIGTERM: pause, cancel, leave."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Ended, Project, clean_environment, ended

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals as POSIX has them")


CLEANS_UP = {"skill": "mark", "parameters": {"path": "clean"}}
CLEANS_UP_FOR_LONG = {"skill": "wait", "parameters": {"seconds": 60}}


def plan_of(seconds: float, cleanup: dict[str, Any] = CLEANS_UP) -> dict[str, Any]:
    """The first task leaves a mark when it begins, the second takes its time, the third must not begin."""
    return {
        "tasks": [
            {"id": "first", "skill": "mark", "parameters": {"path": "begun"}},
            {
                "id": "second", "skill": "wait", "dependencies": ["first"],
                "parameters": {"seconds": seconds, "mark": "finished"},
            },
            {"id": "third", "skill": "mark", "dependencies": ["second"], "parameters": {"path": "too far"}},
            {"id": "cleanup", "dependencies": ["second", "third"], "join": "all_done", **cleanup},
        ]
    }  # fmt: skip


def eventually(holds: Callable[[], bool], within: float = 10) -> None:
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.02)


class Running:
    """A run under way, as a real process, whose standard error is read while it goes on."""

    def __init__(self, project: Project, content: dict[str, Any], *options: str) -> None:
        self.folder = project.folder
        self._err = project.folder / "err"
        plan = project.plan("plan.yaml", content)
        with self._err.open("wb") as err:
            self.process: subprocess.Popen[bytes] = project.process("run", plan, *options, stderr=err)
        eventually(self.exists("begun"))
        time.sleep(0.1)

    def exists(self, name: str) -> Callable[[], bool]:
        return Path(self.folder, name).exists

    def said(self, text: str) -> Callable[[], bool]:
        return lambda: text in self._err.read_text()

    def press(self, number: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(number)

    def end(self) -> Ended:
        done = ended(self.process, timeout=10)
        return Ended(done.code, done.out, self._err.read_text())


def test_the_first_ctrl_c_lets_what_runs_finish_and_begins_nothing_new(project: Project) -> None:
    running = Running(project, plan_of(1.0), "--json")
    running.press()
    done = running.end()
    assert done.code == 130
    assert (done.document["phase"], done.document["resumable"]) == ("paused", True)
    assert "waiting for second to finish" in done.err
    assert "fsm-agent resume" in done.err
    assert running.exists("finished")()
    assert not running.exists("too far")()


def test_the_second_ctrl_c_cancels_and_what_cleans_up_still_runs(project: Project) -> None:
    running = Running(project, plan_of(60), "--json")
    running.press()
    eventually(running.said("pausing"))
    running.press()
    done = running.end()
    assert (done.code, done.document["phase"]) == (130, "cancelled")
    assert running.exists("clean")()
    assert not running.exists("finished")()
    assert "Traceback" not in done.err


def test_the_third_ctrl_c_ends_it_where_it_stands(project: Project) -> None:
    running = Running(project, plan_of(60, CLEANS_UP_FOR_LONG))
    for word in ("pausing", "cancelling"):
        running.press()
        eventually(running.said(word))
    time.sleep(0.3)
    running.press()
    assert running.end().code == 130


def test_sigterm_cancels(project: Project) -> None:
    running = Running(project, plan_of(60), "--json")
    running.press(signal.SIGTERM)
    done = running.end()
    assert (done.code, done.document["phase"], done.document["outcome"]) == (4, "cancelled", "cancelled")
    assert running.exists("clean")()


def test_people_are_told_the_same(project: Project) -> None:
    running = Running(project, plan_of(0.5))
    running.press()
    done = running.end()
    assert done.code == 130
    assert "\npaused\n" in done.out


# While an async skill holds up the event loop ------------------------------------------------------------------------

BLOCK = """
import time
from pathlib import Path
from fsm_agent import skill

@skill
async def block():
    Path("begun").write_text("")
    time.sleep(60)
"""


def blocked(project: Project, *options: str) -> Running:
    project.plan("skills/block.py", BLOCK)
    return Running(project, {"tasks": [{"id": "a", "skill": "block"}]}, *options)


def test_a_second_sigterm_ends_a_process_whose_event_loop_is_held_up(project: Project) -> None:
    running = blocked(project, "--json")
    running.press(signal.SIGTERM)
    eventually(running.said("cancelling"))
    running.press(signal.SIGTERM)
    done = running.end()
    assert (done.code, done.document["error"]["code"]) == (4, "cancelled")


def test_a_third_ctrl_c_ends_a_process_whose_event_loop_is_held_up(project: Project) -> None:
    running = blocked(project)
    for word in ("pausing", "cancelling", "error: interrupted"):
        running.press()
        eventually(running.said(word))
    assert running.end().code == 130


# Before and after a run ----------------------------------------------------------------------------------------------

EARLY = """
import os, sys

class Sends:
    def find_spec(self, name, *rest):
        if name == module:
            os.kill(os.getpid(), int(number))

module, number, *sys.argv[1:] = sys.argv[1:]
sys.meta_path.insert(0, Sends())
from fsm_agent.cli.main import main
main()
"""
"""The command line, with a signal at the moment at which a module is loaded."""


@pytest.mark.parametrize("module", ["fsm_agent.cli.output", "typer", "fsm_agent.api", "signalled"])
@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 4, "cancelled")]
)
def test_a_signal_before_the_run_ends_the_program_with_one_message(
    project: Project, module: str, number: signal.Signals, code: int, word: str
) -> None:
    project.plan("skills/first.py", "try:\n    import signalled\nexcept BaseException:\n    pass\n")
    plan = project.plan("plan.yaml", plan_of(0))
    command = [sys.executable, "-c", EARLY, module, str(int(number)), "run", plan, "--json"]
    done = subprocess.run(command, cwd=project.folder, env=clean_environment(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (code, b"")
    assert json.loads(done.stdout)["error"]["code"] == word
    assert not (project.folder / "begun").exists()


def test_people_get_the_message_of_an_early_signal_on_standard_error(project: Project) -> None:
    project.plan("skills/first.py", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    done = project.run("skills", "list")
    assert (done.code, done.out, done.err) == (4, "", "error: ended by SIGTERM\n")


def test_a_signal_after_the_run_takes_nothing_from_its_result(project: Project) -> None:
    source = "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
    project.plan("skills/late.py", source)
    done = project.run("run", project.plan("plan.yaml", {"tasks": [{"id": "a", "skill": "greet"}]}), "--json")
    assert (done.code, done.document["phase"]) == (0, "completed")
    assert "the run has ended" in done.err


def test_a_skill_module_cannot_take_the_signals_away(project: Project) -> None:
    project.plan("skills/greedy.py", "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n")
    running = Running(project, plan_of(60), "--json")
    running.press(signal.SIGTERM)
    assert running.end().code == 4
