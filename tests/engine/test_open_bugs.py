"""What the engine does not do yet as the pages say: each test here fails until its cause is mended."""

from __future__ import annotations

from tests.engine.support import basic, plan_of


def test_a_result_that_is_too_large_fails_with_the_hint_to_write_a_file() -> None:
    """`TooLarge` has the hint; the task's error takes the message alone."""

    async def big() -> str:
        return "x" * 1000

    result = basic({"big": big}).run(plan_of({"id": "a", "skill": "big"}, limits={"max_result_bytes": 100}))
    assert "file" in (result.tasks["a"].error or {})["message"]
