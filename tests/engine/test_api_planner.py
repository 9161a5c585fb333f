"""Planners: they propose, the program checks, and what is wrong with a proposal fails the run and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import PlanRequest, Proposal, RunResult, StaticPlanner, TemplatePlanner, load_plan
from fsm_agent.errors import UsageError
from fsm_agent.testing import ScriptedPlanner
from tests.engine.support import basic, drive, others_end, plan_of, until

GOOD = plan_of({"id": "a"}, goal="of the plan")


def test_without_a_plan_and_without_a_planner_nothing_can_be_run() -> None:
    with pytest.raises(UsageError, match="no planner"):
        basic().run(goal="anything")


@pytest.mark.parametrize("plan", [GOOD, load_plan(GOOD)], ids=["data", "a plan"])
def test_a_static_planner_gives_the_plan_that_it_has(plan: Any) -> None:
    result = basic(planner=StaticPlanner(plan)).run(goal="of the run")
    assert (result.phase, result.plan_version, result.goal) == ("completed", 1, "of the run")


def test_a_plan_that_is_given_wins_over_the_planner() -> None:
    planner = ScriptedPlanner([GOOD])
    assert list(basic(planner=planner).run(plan_of({"id": "given"})).tasks) == ["given"]
    assert planner.requests == []


def test_a_planner_is_asked_with_the_goal_and_the_names_of_the_inputs() -> None:
    planner = ScriptedPlanner([{**GOOD, "inputs": {"budget": {"secret": True}}}])
    made = basic(planner=planner)
    result = made.run(goal="g", inputs={"budget": 5}, run_id="r")
    assert planner.requests == [PlanRequest("r", "g", ("budget",))]
    assert result.completed
    assert [event.author for event in made.of("plan_adopted")] == ["script"]


TEMPLATES = [
    load_plan(plan_of({"id": "trip"}, name="travel", when=["trip", "/hotel|train/"])),
    load_plan(plan_of({"id": "rain"}, name="weather", when="umbrella today")),
    load_plan(plan_of({"id": "both"}, name="all", when="trip with umbrella")),
]


@pytest.mark.parametrize(
    ("goal", "task"), [("A trip to Kiel", "trip"), ("book a HOTEL", "trip"), ("today: an umbrella?", "rain")]
)
def test_a_template_is_chosen_by_its_words(goal: str, task: str) -> None:
    assert list(basic(planner=TemplatePlanner(TEMPLATES)).run(goal=goal).tasks) == [task]


@pytest.mark.parametrize(
    ("goal", "words"),
    [("bake a cake", ["no template"]), ("a trip with an umbrella", ["travel", "all"]), (None, ["no goal"])],
)
def test_none_or_several_templates_fail_the_run_and_are_named(goal: str | None, words: list[str]) -> None:
    result = basic(planner=TemplatePlanner(TEMPLATES)).run(goal=goal)
    assert result.phase == "failed"
    assert (result.reason or {})["kind"] == "planning"
    assert all(word in (result.reason or {})["message"] for word in words)


def test_templates_are_read_from_a_folder_at_each_goal(tmp_path: Path) -> None:
    made = basic(planner=TemplatePlanner(tmp_path))
    assert made.run(goal="a trip").phase == "failed"
    (tmp_path / "trip.yaml").write_text("when: trip\ntasks:\n- {id: a, skill: ok}\n", encoding="utf-8")
    assert made.run(goal="a trip").completed


@pytest.mark.parametrize(
    ("proposal", "words"),
    [
        (RuntimeError("the model is down"), "the model is down"),
        (plan_of({"id": "a", "skill": "unknown_one"}), "unknown_one"),
        ({"tasks": []}, "tasks"),
        ("no plan at all", ""),
        ({**GOOD, "inputs": {"must": {}}}, "must"),
    ],
    ids=["raises", "unknown skill", "empty", "a text", "an input is missing"],
)
def test_a_planner_that_fails_or_proposes_nonsense_fails_the_run(proposal: Any, words: str) -> None:
    made = basic(planner=ScriptedPlanner([proposal]))
    result = made.run(goal="g")
    assert (result.phase, result.outcome, result.tasks, result.plan_version) == ("failed", "failed", {}, 0)
    assert (result.reason or {})["kind"] == "planning"
    assert words in (result.reason or {})["message"]
    assert made.calls.order == []
    assert made.types()[-3:] == ["plan_rejected", "phase_changed", "run_finished"]


def test_a_planner_that_returns_no_proposal_fails_the_run() -> None:
    class Odd:
        async def propose(self, request: PlanRequest) -> Any:
            return None

    result = basic(planner=Odd()).run(goal="g")
    assert (result.phase, (result.reason or {})["kind"]) == ("failed", "planning")


class Slow:
    """A planner that takes its time."""

    def __init__(self) -> None:
        self.asked = False
        self.cancelled = False
        self.go = asyncio.Event()

    async def propose(self, request: PlanRequest) -> Proposal:
        self.asked = True
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return Proposal(GOOD)


def test_a_run_is_cancelled_while_its_planner_works() -> None:
    planner = Slow()
    made = basic(planner=planner)

    async def main() -> RunResult:
        run = asyncio.create_task(made.engine.run(goal="g", run_id="r"))
        await until(lambda: planner.asked)
        await made.engine.cancel("r")
        result = await run
        assert await others_end() == set()
        return result

    assert drive(main()).phase == "cancelled"
    assert planner.cancelled


def test_the_deadline_of_a_run_bounds_its_planner() -> None:
    made = basic(planner=Slow())
    result = made.run(goal="g", deadline=30)
    assert (result.phase, (result.reason or {})["kind"]) == ("failed", "limit")
    assert made.clock.monotonic() == 30


def test_a_pause_during_planning_is_a_pause_and_the_plan_is_taken_up_after_it() -> None:
    planner = Slow()
    made = basic(planner=planner)

    async def main() -> tuple[RunResult, RunResult]:
        run = asyncio.create_task(made.engine.run(goal="g", run_id="r"))
        await until(lambda: planner.asked)
        await made.engine.pause("r")
        paused = await run
        resumed = asyncio.create_task(made.engine.resume("r"))
        await asyncio.sleep(0)
        planner.go.set()
        return paused, await resumed

    paused, result = drive(main())
    assert (paused.phase, paused.tasks) == ("paused", {})
    assert (result.phase, list(result.tasks)) == ("completed", ["a"])


def test_a_planner_that_comes_back_after_the_end_of_its_run_adds_nothing_to_it() -> None:
    class Stubborn:
        asked = False

        async def propose(self, request: PlanRequest) -> Proposal:
            self.asked = True
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0.01)
            return Proposal(plan_of({"id": "a"}))

    planner = Stubborn()
    made = basic(planner=planner)

    async def main() -> None:
        run = asyncio.create_task(made.engine.run(goal="g", run_id="r"))
        await until(lambda: planner.asked)
        await made.engine.cancel("r")
        await run
        await asyncio.sleep(0.05)

    drive(main())
    assert made.events[-1].type == "run_finished"


def test_a_planner_may_propose_inputs() -> None:
    class Knows:
        async def propose(self, request: PlanRequest) -> Proposal:
            plan = plan_of({"id": "a"}, inputs={"city": {"type": "string"}}, output="city")
            return Proposal(plan, inputs={"city": "Kiel"})

    assert basic(planner=Knows()).run(goal="g").output == "Kiel"
