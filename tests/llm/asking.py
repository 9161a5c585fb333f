"""Asking a scripted server, in time that is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fsm_agent import ModelBounds, ModelRequest, OpenAiClient
from fsm_agent.clock import SystemClock
from fsm_agent.errors import ModelError
from fsm_agent.llm.protocol import Reply
from fsm_agent.testing import FixedRandom
from tests.llm.scripted_server import ScriptedServer, Sends, serving

KEY = "sk-5up3r-s3cret-key"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
HELLO = ModelRequest.of("Hello?")
T = TypeVar("T")


class Instant(SystemClock):
    """A clock whose sleep takes no time, counts as time that has passed, and is remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    def monotonic(self) -> float:  # type: ignore[override]
        return super().monotonic() + sum(self.slept)

    def now(self) -> float:  # type: ignore[override]
        return 1_700_000_000.0

    async def sleep(self, delay: float) -> None:
        self.slept.append(delay)


def client_of(server: ScriptedServer, clock: Instant | None = None, **more: Any) -> OpenAiClient:
    bounds = ModelBounds(**{"read": 5.0, **more.pop("bounds", {})})
    arguments = {"model": "m", "key": KEY, "random": FixedRandom(0.0), "clock": clock or Instant(), **more}
    return OpenAiClient(server.base_url, bounds=bounds, **arguments)


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run it, and see that nothing of it is left running."""

    async def whole() -> T:
        result = await main()
        for _ in range(20):  # httpx leaves the closing of its own generators to the loop
            await asyncio.sleep(0)
        assert asyncio.all_tasks() - {asyncio.current_task()} == set()
        return result

    return asyncio.run(whole())


def ask(
    *answers: Sends, request: ModelRequest = HELLO, streamed: bool = False, clock: Instant | None = None, **more: Any
) -> tuple[Reply, ScriptedServer]:
    """The reply to one question, and the server that gave it. A streamed one is checked against its pieces."""

    async def main() -> tuple[Reply, ScriptedServer]:
        async with serving(*answers) as server:
            client = client_of(server, clock, **more)
            if not streamed:
                return await client.complete(request), server
            pieces = []
            async with client.stream(request) as stream:
                async for piece in stream:
                    pieces.append(piece)
            assert "".join(pieces) == stream.reply.text
            return stream.reply, server

    return run(main)


def fail(*answers: Sends, **more: Any) -> ModelError:
    """The error that asking comes to."""
    try:
        ask(*answers, **more)
    except ModelError as error:
        return error
    raise AssertionError("it is answered")
