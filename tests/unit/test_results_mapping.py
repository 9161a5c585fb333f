"""`results` as a whole is kept up to date by what changes, and is the same as if it were made anew each time."""

from __future__ import annotations

import random
import time

import pytest

from fsm_agent.engine.simulation import Simulation, check_outcomes, simulate
from fsm_agent.plan.loader import check_plan
from tests.reference import random_plan


@pytest.mark.parametrize("block", range(4))
def test_the_mapping_that_is_kept_equals_the_one_made_anew(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        plan, outcomes = random_plan(random.Random(seed))
        for task in plan["tasks"]:
            task["condition"] = f"({task.get('condition', 'True')}) and len(results) > 0"
        compiled = check_plan(plan).compiled
        assert compiled is not None
        simulation = Simulation(compiled, check_outcomes(outcomes, compiled))
        simulation.result()
        run = simulation.run
        fresh = {task: run.node(task).result() for task in compiled.graph.ids}
        assert run.all_results() == fresh, f"seed {seed}"


@pytest.mark.timing
def test_conditions_over_all_results_of_a_large_plan_do_not_cost_its_square() -> None:
    def seconds(size: int) -> float:
        tasks = [{"id": f"t{i}", "skill": "s", "condition": "len(results) > 0"} for i in range(size)]
        compiled = check_plan({"tasks": tasks, "flow": "sequential"}).compiled
        assert compiled is not None
        took = []
        for _ in range(3):
            began = time.process_time()  # what else the machine does is none of it
            assert simulate(compiled).completed
            took.append(time.process_time() - began)
        return min(took)

    small, large = seconds(400), seconds(4000)
    assert large < 5 * 10 * small
