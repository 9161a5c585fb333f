"""What an engine and a run may be given: anything else is refused in words, before anything happens."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent import InvalidPlan, PlannerEngine
from fsm_agent.errors import UsageError

PLAN: dict[str, Any] = {"tasks": [{"id": "a", "skill": "work"}]}
CALLS: list[str] = []


async def work() -> None:
    CALLS.append("called")


@pytest.mark.parametrize(
    "options",
    [
        {"goal": 5},
        {"goal": b"x"},
        {"goal": "\ud800"},
        {"inputs": "abc"},
        {"inputs": [1]},
        {"labels": [1]},
        {"labels": {"a": object()}},
        {"labels": {"a": None}},
        {"labels": {1: "a"}},
        {"grants": 5},
        {"grants": "mail.send"},
        {"grants": [1]},
        {"grants": {"a": 1}},
        {"deadline": "x"},
        {"deadline": True},
        {"deadline": 0},
        {"deadline": float("inf")},
        {"deadline": float("nan")},
        {"max_parallel": 0},
        {"max_parallel": 1.5},
        {"max_parallel": True},
        {"run_id": ""},
        {"run_id": " a"},
        {"run_id": "a\n"},
        {"run_id": 5},
        {"run_id": "x" * 101},
        {"approver": "yes"},
    ],
    ids=lambda options: f"{next(iter(options))}-{type(next(iter(options.values()))).__name__}",
)
def test_an_option_of_no_use_is_refused_by_its_name(options: dict[str, Any]) -> None:
    [name] = options
    engine = PlannerEngine({"work": work})
    CALLS.clear()
    with pytest.raises(UsageError, match=name[:-1]):
        engine.run_sync(PLAN, **options)
    assert (CALLS, engine.run_ids) == ([], ())


def test_an_option_that_there_is_not_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="gaol"):
        PlannerEngine({"work": work}).run_sync(PLAN, gaol="x")  # type: ignore[call-arg] # that is the point


async def listen(event: Any) -> None:
    """Nobody would await it."""


class AsyncListener:
    async def __call__(self, event: Any) -> None:
        """Nobody would await it."""


@pytest.mark.parametrize(
    "listener", [5, None, listen, AsyncListener()], ids=["number", "none", "async", "async object"]
)
def test_what_cannot_listen_is_refused_at_once(listener: Any) -> None:
    with pytest.raises(UsageError, match="listener"):
        PlannerEngine({"work": work}, listeners=[listener])
    with pytest.raises(UsageError, match="listener"):
        PlannerEngine({"work": work}).add_listener(listener)


def test_what_cannot_be_asked_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="approver"):
        PlannerEngine({"work": work}, approver="yes")  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize(
    "odd", [KeyboardInterrupt, SystemExit, GeneratorExit, RuntimeError], ids=lambda odd: odd.__name__
)
@pytest.mark.parametrize("when", ["run_started", "attempt_failed", "task_evaluated", "run_finished"])
def test_whatever_a_listener_raises_is_logged_and_that_is_all(odd: type[BaseException], when: str, caplog: Any) -> None:
    def listener(event: Any) -> None:
        if event.type == when:
            raise odd("odd")

    async def fails() -> None:
        raise OSError("down")

    engine = PlannerEngine({"fails": fails}, listeners=[listener])
    task = {"id": "a", "skill": "fails", "fallback": {"value": 1}}
    result = engine.run_sync({"tasks": [task]})
    assert result.completed
    assert engine.run_ids == ()
    assert f"failed on event {when}" in caplog.text


class OddText(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


@pytest.mark.parametrize("is_async", [False, True])
def test_an_error_that_cannot_be_told_fails_its_task_and_hangs_nothing(is_async: bool) -> None:
    def sync_skill() -> None:
        raise OddText

    async def async_skill() -> None:
        raise OddText

    engine = PlannerEngine({"odd": async_skill if is_async else sync_skill})
    result = engine.run_sync({"tasks": [{"id": "a", "skill": "odd", "recovery": "skip"}]})
    assert result.tasks["a"].error["type"] == "OddText"


def test_a_secret_that_is_given_out_as_the_output_is_masked() -> None:
    plan = {"inputs": {"pw": {"secret": True}}, "tasks": [{"id": "a", "skill": "work"}], "output": "['got', pw]"}
    result = PlannerEngine({"work": work}).run_sync(plan, inputs={"pw": "Zq8-hunter2"})
    assert result.output == ["got", "***"]


def test_a_message_that_is_cut_shows_no_part_of_a_secret() -> None:
    def edge(x: str) -> None:
        raise ValueError("y" * (2000 - len(x)) + x + "zz")

    plan = {
        "inputs": {"pw": {"secret": True}},
        "tasks": [{"id": "a", "skill": "edge", "parameters": {"x": "${pw}"}, "recovery": "skip"}],
    }
    message = PlannerEngine({"edge": edge}).run_sync(plan, inputs={"pw": "Zq8-hunter2"}).tasks["a"].error["message"]
    assert "Zq8" not in message
    assert len(message) <= 2000


def test_a_misspelled_option_is_told_the_right_one() -> None:
    with pytest.raises(TypeError, match="did you mean approver"):
        PlannerEngine({"work": work}).run_sync(PLAN, aprover=None)  # type: ignore[call-arg] # that is the point


def test_listeners_that_are_no_list_are_refused() -> None:
    with pytest.raises(UsageError, match="listeners"):
        PlannerEngine({"work": work}, listeners=print)  # type: ignore[arg-type] # that is the point


def test_what_run_sync_raises_has_no_other_error_before_it() -> None:
    with pytest.raises(InvalidPlan) as refused:
        PlannerEngine({"work": work}).run_sync({"tasks": [{"id": "a", "skill": "nope"}]})
    assert refused.value.__context__ is None


def test_the_traceback_of_a_skill_is_in_the_log_at_debug_level(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        {}["city"]

    with caplog.at_level("DEBUG", "fsm_agent.skills"):
        result = PlannerEngine({"broken": broken}).run_sync({"tasks": [{"id": "a", "skill": "broken"}]})
    assert "line" in caplog.text
    assert "KeyError: 'city'" in caplog.text
    assert result.reason["message"] == "KeyError: 'city'"


@pytest.mark.parametrize("through", ["result", "context"])
def test_a_number_too_large_to_write_down_fails_its_task_and_its_handler_runs(through: str) -> None:
    def huge(context: Any) -> Any:
        if through == "context":
            context.set("n", 10**5000)
        return 10**5000

    tasks = [{"id": "a", "skill": "huge", "on_failure": "b"}, {"id": "b", "skill": "work"}]
    result = PlannerEngine({"huge": huge, "work": work}).run_sync({"tasks": tasks})
    assert (result.tasks["a"].error["kind"], result.tasks["b"].status) == ("not_json", "SUCCEEDED")
