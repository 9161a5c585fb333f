"""Deciding what a run waits for, by the engine's own door."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fsm_agent import RunResult
from fsm_agent.errors import DecisionRefused, NotJson, UsageError
from tests.engine.support import basic, drive, plan_of, until

NAP: dict[str, Any] = {"skill": "nap", "parameters": {"s": 10}}
ASKS = {"id": "ask", "approval": "required", "recovery": "skip"}


def test_a_live_run_goes_on_by_itself_after_a_decision() -> None:
    made = basic()

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(plan_of(ASKS, {"id": "a", **NAP}), run_id="r"))
        await until(lambda: made.of("approval_asked"))
        await made.engine.decide("r", "ask", "approve", by="Ada")
        return await run

    result = drive(main())
    assert result.completed
    assert "paused" not in {event.dest for event in made.of("phase_changed")}


@pytest.mark.parametrize("decision", ["yes", "", "APPROVE", "expired"])
def test_a_word_that_is_no_decision_is_refused(decision: str) -> None:
    made = basic()

    async def main() -> None:
        await made.engine.run(plan_of(ASKS), run_id="r")
        with pytest.raises(UsageError, match="no decision"):
            await made.engine.decide("r", "ask", decision)

    drive(main())


def test_a_decision_that_fits_nothing_that_waits_is_refused() -> None:
    made = basic()

    async def main() -> None:
        await made.engine.run(plan_of(ASKS, {"id": "other"}), run_id="r")
        for task, decision, words in (("other", "approve", "nothing waits"), ("ask", "rerun", "cannot be decided")):
            with pytest.raises(DecisionRefused, match=words):
                await made.engine.decide("r", task, decision)
        with pytest.raises(NotJson):
            await made.engine.decide("r", "ask", "approve", result={1, object()})
        assert len(made.engine.status("r").waiting) == 1

    drive(main())


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_decision_about_the_plan_never_answers_a_task_even_if_that_is_all_that_waits(decision: str) -> None:
    made = basic()

    async def main() -> RunResult:
        await made.engine.run(plan_of(ASKS), run_id="r")
        with pytest.raises(DecisionRefused, match="nothing waits for a decision about the plan") as refused:
            await made.engine.decide("r", None, decision)
        assert refused.value.hint == "what waits: 'ask'"
        return await made.engine.resume("r")

    result = drive(main())
    assert (result.phase, len(result.waiting)) == ("paused", 1)
    assert made.calls.order == []


def test_a_run_that_is_resumed_before_anybody_decided_pauses_again() -> None:
    made = basic()

    async def main() -> list[RunResult]:
        first = await made.engine.run(plan_of(ASKS), run_id="r")
        return [first, await made.engine.resume("r")]

    first, second = drive(main())
    assert (first.phase, second.phase) == ("paused", "paused")
    assert first.waiting == second.waiting
    assert made.calls.order == []
