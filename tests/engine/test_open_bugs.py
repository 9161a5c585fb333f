"""What the engine does not do yet as the pages say: each test here fails until its cause is mended."""

from __future__ import annotations

import asyncio
import time

from fsm_agent.clock import SystemClock
from tests.engine.support import basic, bench, drive, plan_of


def test_an_approval_that_expired_while_nobody_drove_its_run_is_expired_when_it_is_resumed() -> None:
    """Its timer belonged to the first event loop. `decide` looks at the time, `resume` does not."""

    async def work() -> None: ...

    made = bench([work], clock=SystemClock())
    ask = {"id": "ask", "skill": "work", "approval": "required", "approval_timeout": 0.05, "recovery": "skip"}
    assert made.run({"tasks": [ask]}, run_id="r").phase == "paused"
    time.sleep(0.1)
    result = asyncio.run(made.engine.resume("r"))
    assert (result.tasks["ask"].error or {}).get("kind") == "expired"


def test_a_stream_whose_iterator_was_made_and_not_used_can_be_closed() -> None:
    """`RunStream.aclose` closes a generator that never began, so that nothing in it runs."""
    made = basic()

    async def main() -> None:
        stream = made.engine.stream(plan_of({"id": "a"}), run_id="r")
        aiter(stream)
        await stream.aclose()
        assert made.engine.run_ids == ()

    drive(main())
