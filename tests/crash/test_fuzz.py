"""The crash fuzzer, for a short while: `python -m tests.crash` goes on for longer."""

from __future__ import annotations

import pytest

from tests.crash.fuzz import one_round


@pytest.mark.parametrize("block", range(4))
def test_random_plans_in_processes_that_die_come_to_the_same_end(block: int) -> None:
    for seed in range(block * 25, (block + 1) * 25):
        one_round(seed)
