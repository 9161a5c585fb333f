"""What a skill can do with its context."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from fsm_agent.errors import NotJson, UndeclaredWrite, VisitClosed
from fsm_agent.skills.context import SkillContext, TaskInfo


class Port:
    """The engine's side, over a dict."""

    def __init__(self, **values: Any) -> None:
        self.values = values
        self.told: list[Any] = []

    def read(self, key: str, default: Any) -> Any:
        return self.values.get(key, default)

    def results(self) -> Mapping[str, Mapping[str, Any]]:
        self.told.append("results")
        return {"a": {"status": "SUCCEEDED"}}

    def tell_progress(self, share: float, text: str) -> None:
        self.told.append((share, text))

    def tell_log(self, message: str, fields: Mapping[str, Any]) -> None:
        self.told.append((message, fields))


def context(port: Port | None = None, declared: tuple[str, ...] | None = None) -> SkillContext:
    return SkillContext(
        port or Port(), TaskInfo("t"), run_id="r", visit=2, attempt=3, idempotency_key="k", declared=declared
    )


def test_it_knows_what_it_is_for() -> None:
    made = context()
    assert (made.task_id, made.run_id, made.visit, made.attempt, made.idempotency_key) == ("t", "r", 2, 3, "k")


def test_reads_see_the_runs_values_and_its_own_writes() -> None:
    made = context(Port(a=1))
    made.set("b", (1, 2))
    assert (made.get("a"), made.get("b"), made.get("c"), made.get("c", 0)) == (1, [1, 2], None, 0)


def test_what_is_read_or_written_is_a_copy() -> None:
    made = context()
    rows = [1]
    made.set("rows", rows)
    rows.append(2)
    made.get("rows").append(3)
    assert made.close() == {"rows": [1]}


def test_after_its_end_nothing_can_be_written_or_told() -> None:
    port = Port()
    made = context(port)
    made.set("a", 1)
    assert made.close() == {"a": 1}
    with pytest.raises(VisitClosed):
        made.set("b", 2)
    made.progress(0.5)
    made.log("late")
    assert (made.close(), port.told) == ({"a": 1}, [])


def test_a_write_that_breaks_a_rule_is_remembered_whatever_the_skill_does() -> None:
    made = context(declared=("a",))
    with pytest.raises(UndeclaredWrite):
        made.set("b", 1)
    with pytest.raises(NotJson):
        made.set("a", object())
    assert isinstance(made.broken, UndeclaredWrite)
    assert made.close() == {}


def test_a_key_is_a_string() -> None:
    with pytest.raises(NotJson):
        context().set(1, 1)


def test_progress_is_a_share() -> None:
    port = Port()
    for share in (-1, 0.5, 7, float("nan")):
        context(port).progress(share, "x")
    assert port.told == [(0.0, "x"), (0.5, "x"), (1.0, "x"), (0.0, "x")]


def test_a_line_in_the_log_never_fails_the_work() -> None:
    port = Port()
    context(port).log("found", rows=(1, 2), handle=object(), message="x")
    assert port.told == [("found", {"rows": [1, 2], "handle": "<object>", "message": "x"})]


def test_the_results_are_asked_for_once() -> None:
    port = Port()
    made = context(port)
    assert made.results is made.results
    assert port.told == ["results"]


def test_a_thread_that_was_left_behind_writes_nothing_after_the_end() -> None:
    for _ in range(50):
        made = context()
        going = threading.Event()

        def write(made: SkillContext = made, going: threading.Event = going) -> None:
            for number in range(1000):
                try:
                    made.set("n", number)
                except VisitClosed:
                    return
                going.set()

        writer = threading.Thread(target=write)
        writer.start()
        going.wait(5)
        written = dict(made.close())
        writer.join()
        assert made.close() == written
