"""Who drives a run: whether a process is still there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fsm_agent.journal.owners import Owner, is_gone, this_process
from tests.journal import processes

NAME = "from fsm_agent.journal.owners import this_process; print(this_process('it').to_text(), flush=True); input()"


def other() -> tuple[subprocess.Popen[str], Owner]:
    """Another process, and the owner in it."""
    process = subprocess.Popen(
        [sys.executable, "-c", NAME], cwd=processes.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return process, Owner.of_text(processes.line_of(process))


def test_a_process_is_there_until_it_is_killed_and_gone_as_a_zombie_too() -> None:
    process, owner = other()
    assert (owner.id, owner.pid) == ("it", process.pid)
    assert not is_gone(owner)
    processes.kill(process)
    assert is_gone(owner)
    processes.bury(process)
    assert is_gone(owner)


def test_this_process_is_there() -> None:
    assert not is_gone(this_process("me"))


def test_a_process_that_has_the_number_of_one_that_ended_is_another() -> None:
    me = this_process("me")
    assert is_gone(Owner(me.id, me.host, me.pid, "1"))


@pytest.mark.parametrize(
    "owner", [Owner("me"), Owner("me", "another host", 1, "1"), Owner("me", this_process("me").host, 2**22 + 1)]
)
def test_nothing_is_certain_of_other_machines_and_of_processes_without_a_beginning(owner: Owner) -> None:
    assert not is_gone(owner)


@pytest.mark.parametrize("text", ["", "worker 7", "[]", '{"id": 3}', '{"pid": 3}', "\0"])
def test_a_text_that_is_no_owner_is_the_name_of_one(text: str) -> None:
    assert Owner.of_text(text) == Owner(text)
    assert not is_gone(Owner.of_text(text))


def test_an_owner_comes_back_from_its_text() -> None:
    me = this_process("me")
    assert Owner.of_text(me.to_text()) == me
    assert str(me).startswith(f"process {me.pid} on ")
