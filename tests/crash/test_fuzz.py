"""The crash fuzzer, for a short while: `python -m tests.crash` goes on for longer."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.crash.fuzz import one_round
from tests.crash.overlapping import overlapping_round


@pytest.mark.parametrize("block", range(4))
def test_random_plans_in_processes_that_die_come_to_the_same_end(block: int) -> None:
    for seed in range(block * 25, (block + 1) * 25):
        one_round(seed)


@pytest.mark.parametrize("block", range(4))
def test_random_plans_with_tasks_at_once_stay_whole_whatever_dies(block: int) -> None:
    seen = Counter[str]()
    for seed in range(block * 18, (block + 1) * 18):
        seen += overlapping_round(seed)
    assert {"interrupted", "tried again", "decided", "discarded", "ended completed", "ended failed"} <= seen.keys()
