"""Questions at a terminal, which here is a pseudo-terminal."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")

PROMPT = "Approve? [y/n] "


def mail(task: str = "mail", **more: Any) -> dict[str, Any]:
    return {"id": task, "skill": "send", "parameters": {"to": task}, **more}


class Terminal:
    """A process at a terminal of its own, and someone who types there."""

    def __init__(self, project: Project, *arguments: str) -> None:
        self._near, far = pty.openpty()
        options: dict[str, Any] = {"stdin": far, "stdout": far, "stderr": far, "preexec_fn": os.setsid}
        self.process: subprocess.Popen[bytes] = project.process(*arguments, **options)
        os.close(far)
        self.screen = ""

    def read_until(self, text: str, within: float = 10) -> str:
        """All that has come since the last time, up to this text."""
        end = time.monotonic() + within
        while text not in self.screen:
            assert time.monotonic() < end, f"{text!r} did not come: {self.screen!r}"
            if not self._read():
                raise AssertionError(f"{text!r} did not come: {self.screen!r}")
        before, self.screen = self.screen.split(text, 1)
        return before + text

    def type(self, text: str) -> None:
        os.write(self._near, text.encode())

    def end(self) -> tuple[int, str]:
        """The exit code, and what came last."""
        while self._read():
            pass
        return self.process.wait(timeout=10), self.screen

    def close(self) -> None:
        os.close(self._near)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _read(self) -> bool:
        try:
            content = os.read(self._near, 65536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self.screen += content.decode(errors="replace")
        return bool(content)


@pytest.fixture
def at_terminal(project: Project) -> Iterator[Any]:
    opened: list[Terminal] = []

    def start(plan: dict[str, Any], *options: str) -> Terminal:
        opened.append(Terminal(project, "run", project.plan("plan.yaml", plan), *options))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def test_a_yes_lets_the_task_run(at_terminal: Any) -> None:
    terminal = at_terminal({"tasks": [mail(description="Tell Ada")]})
    question = terminal.read_until(PROMPT)
    assert re.search(r"task +mail", question)
    assert re.search(r"skill +send", question)
    assert re.search(r"risk +high", question)
    assert "Tell Ada" in question
    assert '"to": "mail"' in question
    terminal.type("maybe\n")
    terminal.read_until(PROMPT)
    terminal.type("y\n")
    code, rest = terminal.end()
    assert code == 0
    assert "completed" in rest


def test_keys_that_were_pressed_before_the_question_are_no_answer(at_terminal: Any) -> None:
    slow = {"id": "slow", "skill": "wait", "parameters": {"seconds": 0.3}}
    terminal = at_terminal({"tasks": [slow, mail(dependencies=["slow"])]})
    terminal.read_until("started")
    terminal.type("y\ny\n")
    terminal.read_until(PROMPT)
    terminal.type("n\n")
    assert terminal.end()[0] == 1


def test_an_answer_that_was_pasted_twice_answers_one_question(at_terminal: Any) -> None:
    terminal = at_terminal({"tasks": [mail("one"), mail("two")]})
    terminal.read_until(PROMPT)
    terminal.type("y\ny\n")
    terminal.read_until(PROMPT)
    terminal.type("n\n")
    code, rest = terminal.end()
    assert code == 1
    assert "rejected" in rest


def test_a_default_that_is_secret_is_masked_in_the_question(at_terminal: Any) -> None:
    plan = {
        "inputs": {"pin": {"secret": True, "default": "hunter-22"}},
        "tasks": [mail(parameters={"to": "x", "body": "${inputs.pin}"})],
    }
    terminal = at_terminal(plan)
    question = terminal.read_until(PROMPT)
    assert '"body": "***"' in question
    terminal.type("n\n")
    assert "hunter-22" not in question + terminal.end()[1]


def test_a_no_fails_the_task(at_terminal: Any) -> None:
    terminal = at_terminal({"tasks": [mail()]})
    terminal.read_until(PROMPT)
    terminal.type("No\n")
    code, rest = terminal.end()
    assert code == 1
    assert "rejected" in rest


def test_no_answer_leaves_the_question_to_someone_else(at_terminal: Any) -> None:
    terminal = at_terminal({"tasks": [mail()]})
    terminal.read_until(PROMPT)
    terminal.type("\x04")
    code, rest = terminal.end()
    assert code == 3
    assert "waiting for a person" in rest


def test_ctrl_c_at_a_question_pauses(at_terminal: Any) -> None:
    terminal = at_terminal({"tasks": [mail()]})
    terminal.read_until(PROMPT)
    terminal.process.send_signal(2)
    code, rest = terminal.end()
    assert code == 130
    assert "pausing" in rest
    assert "fsm-agent resume" in rest
    assert "Traceback" not in rest


def test_questions_come_one_at_a_time_and_hold_up_nothing_else(at_terminal: Any, project: Project) -> None:
    busy = {"id": "busy", "skill": "mark", "parameters": {"path": "made"}, "dependencies": ["slow"]}
    slow = {"id": "slow", "skill": "wait", "parameters": {"seconds": 0.3}}
    terminal = at_terminal({"tasks": [mail("one"), mail("two"), slow, busy]})
    terminal.read_until(PROMPT)
    end = time.monotonic() + 10
    while not Path(project.folder, "made").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    assert terminal.screen == ""
    terminal.type("y\n")
    between = terminal.read_until(PROMPT)
    assert '"to": "two"' in between
    terminal.type("y\n")
    assert terminal.end()[0] == 0


def test_secrets_are_masked_and_control_characters_are_shown(at_terminal: Any) -> None:
    tricky = "\x1b[2J\x1b]0;owned\x07\r\nrisk  low \u202eetar\x9b1m"
    plan = {
        "inputs": {"pin": {"secret": True}},
        "tasks": [
            mail(
                name=tricky, description=tricky, parameters={"to": tricky, "body": "${inputs.pin}", "password": "pw-1"}
            )
        ],
    }
    terminal = at_terminal(plan, "--set", "pin=hunter-22")
    question = terminal.read_until(PROMPT)
    assert not {"\x07", "\u202e", "\x9b"} & set(question)
    assert "\x1b[2J" not in question
    assert "\x1b]" not in question
    assert '"body": "***"' in question
    assert '"password": "***"' in question
    assert "\\u001b[2J\\u001b]0;owned\\u0007\\r\\nrisk  low \\u202eetar\\u009b1m" in question
    terminal.type("n\n")
    code, rest = terminal.end()
    assert code == 1
    assert "hunter-22" not in question + rest


def test_with_json_nobody_is_asked(at_terminal: Any) -> None:
    code, screen = at_terminal({"tasks": [mail()]}, "--json").end()
    assert code == 3
    assert PROMPT not in screen


def test_what_was_approved_beforehand_is_not_asked(at_terminal: Any) -> None:
    code, screen = at_terminal({"tasks": [mail()]}, "--approve", "mail").end()
    assert code == 0
    assert PROMPT not in screen
