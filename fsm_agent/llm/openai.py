"""A client of OpenAI-compatible servers (`/chat/completions`), on httpx."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from fsm_agent.clock import Clock, RandomSource, SystemClock, system_random
from fsm_agent.errors import UsageError
from fsm_agent.llm.address import Address
from fsm_agent.llm.asking import Asking
from fsm_agent.llm.dialect import Defaults, Dialects
from fsm_agent.llm.exchange import Server
from fsm_agent.llm.protocol import ModelRequest, Reply, ReplyStream
from fsm_agent.llm.retrying import ModelBounds
from fsm_agent.llm.settings import Given, load_model_settings
from fsm_agent.redaction import Redactor


class OpenAiClient:
    """Asks one model of one server. What an argument leaves out, the environment or `.env` says.

    It may be used by many tasks at once, keeps no connection between questions, and need not be closed. Cancelling who
    waits for an answer closes the connection.
    """

    def __init__(
        self,
        base_url: str | None = None,
        *,
        model: str | None = None,
        key: str | None = None,
        temperature: float | None = None,
        bounds: ModelBounds | None = None,
        dialects: Dialects | None = None,
        clock: Clock | None = None,
        random: RandomSource | None = None,
    ) -> None:
        """Raises ModelNotSet where no server or model is named, and UsageError for what makes no sense."""
        given = Given(base_url, key, model, temperature)
        settings = load_model_settings(given, os.environ, Path.cwd())
        address = Address.of(settings.base_url)
        if settings.key is not None and address.user is not None:
            raise UsageError("both a key and a password in the base URL say who asks", hint="give one of them")
        if bounds is None:
            bounds = ModelBounds(total=settings.timeout) if settings.timeout is not None else ModelBounds()
        secrets = [*address.secrets, *([settings.key.get_secret_value()] if settings.key else ())]
        self._server = Server(address, settings.key, bounds, clock or SystemClock(), Redactor(secrets))
        self._defaults = Defaults(settings.model, settings.temperature, settings.max_tokens)
        self._dialects = dialects or Dialects()
        self._random = random or system_random()

    def __repr__(self) -> str:
        return f"OpenAiClient({self.host!r}, model={self.model!r})"

    @property
    def host(self) -> str:
        """Host, port and path of the server, without what is secret in its address."""
        return self._server.host

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self._defaults.model

    async def complete(self, request: ModelRequest) -> Reply:
        """The whole answer. Raises ModelError."""
        async with aclosing(self._ask(request, streamed=False)) as parts:
            async for part in parts:
                if isinstance(part, Reply):
                    return part
        raise AssertionError("an answer ends with its reply, or with an error")

    def stream(self, request: ModelRequest) -> ReplyStream:
        """The answer, piece by piece, and the whole reply at its end. Taking the pieces raises ModelError."""
        return ReplyStream(self._ask(request, streamed=True))

    def _ask(self, request: ModelRequest, *, streamed: bool) -> AsyncGenerator[str | Reply]:
        asking = Asking(self._server, self._defaults, self._dialects, self._random, request, streamed)
        return asking.parts()
