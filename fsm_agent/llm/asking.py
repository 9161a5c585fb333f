"""One question to a model, with all that is tried for it: plainer forms, further requests, waits, one answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fsm_agent.clock import RandomSource
from fsm_agent.errors import ModelError, NotAModel
from fsm_agent.llm.answer import AnswerReader, NotWhole, StreamedAnswer, WholeAnswer
from fsm_agent.llm.completion import Completion, NoCompletion
from fsm_agent.llm.dialect import Defaults, Dialect, Dialects, body_of, encode_body
from fsm_agent.llm.exchange import Server
from fsm_agent.llm.protocol import ModelRequest, Reply
from fsm_agent.llm.refusal import Refusal
from fsm_agent.llm.retrying import next_wait
from fsm_agent.llm.tokens import usage_of

if TYPE_CHECKING:
    import httpx


@dataclass(slots=True)
class Asking:
    """The question, and how far it has come."""

    server: Server
    defaults: Defaults
    dialects: Dialects
    chance: RandomSource
    request: ModelRequest
    streamed: bool
    requests: int = 0
    """That were sent."""
    failures: int = 0
    """That count for the next wait: a plainer form is no failure."""
    known: Dialect = field(default_factory=Dialect)
    """What was known of the server when this began."""
    given: bool = False
    """Whether a piece of the answer was given away: then there is no second attempt."""
    started: float = 0.0
    until: float = 0.0

    async def parts(self) -> AsyncGenerator[str | Reply]:
        """The pieces of the answer, and then the whole reply. Raises ModelError."""
        self.started = self.server.clock.monotonic()
        self.until = self.started + self.server.bounds.total
        self.known = dialect = self.dialects.of(self.server.host, self.defaults.model)
        async with self.server.http() as http:
            while True:
                self.requests += 1
                body = body_of(self.request, self.defaults, dialect, streamed=self.streamed)
                try:
                    async with aclosing(self._attempt(http, body, dialect)) as parts:
                        async for part in parts:
                            self.given = self.given or bool(part)
                            yield part
                    return
                except Refusal as refusal:
                    plainer = dialect.after_refusal(refusal.status, refusal.body, body)
                    if plainer is not None and not self.given:
                        dialect = plainer
                        continue
                    error = self._error_of(refusal)
                except ModelError as failure:
                    error = failure
                await self._wait(error)

    async def _wait(self, error: ModelError) -> None:
        """Wait for the next attempt. Raises the error where there is none."""
        self.failures += 1
        if self.given or not error.transient:
            raise error.after(self.requests)
        clock = self.server.clock
        wait = next_wait(self.server.bounds, self.failures, error.retry_after, self.chance.random())
        if wait is None:
            long = error.retry_after is not None and self.failures <= self.server.bounds.retries
            raise error.after(self.requests, f"it asks for {error.retry_after:g} s of patience" if long else "")
        if clock.monotonic() + wait >= self.until:
            raise error.after(self.requests, "no time is left for another request")
        await clock.sleep(wait)

    async def _attempt(
        self, http: httpx.AsyncClient, body: dict[str, Any], dialect: Dialect
    ) -> AsyncGenerator[str | Reply]:
        response = await self.server.open(http, encode_body(body), self.until)
        is_json = "json" in response.headers.get("content-type", "")
        reader = StreamedAnswer() if self.streamed and not is_json else WholeAnswer()
        async with aclosing(response), aclosing(self._read(response, reader)) as pieces:
            async for piece in pieces:
                yield piece
        if dialect != self.known:  # else an old question would undo what a younger one has found out
            self.dialects.remember(self.server.host, self.defaults.model, dialect)
        yield self._reply(reader.completion, dialect)

    async def _read(self, response: httpx.Response, reader: AnswerReader) -> AsyncGenerator[str]:
        """The pieces of an answer, until it is whole."""
        try:
            async with aclosing(self.server.chunks(response, self.until)) as chunks:
                async for chunk in chunks:
                    for piece in reader.feed(chunk):
                        yield piece
                    if reader.done:
                        break
            for piece in reader.close():
                yield piece
        except NotWhole:
            raise self.server.cut() from None
        except NoCompletion as why:
            raise NotAModel(
                f"what {self.server.host} answered is no chat completion: {why}",
                hint="is LLM_BASE_URL that of an OpenAI-compatible server? It often ends in /v1",
                host=self.server.host,
                status=response.status_code,
            ) from None

    def _reply(self, completion: Completion, dialect: Dialect) -> Reply:
        return Reply(
            completion.text,
            usage_of(completion.usage, self.request.messages, completion.text + completion.reasoning),
            completion.finish_reason,
            completion.model or self.defaults.model,
            self.server.clock.monotonic() - self.started,
            dialect.step if self.request.schema is not None else None,
            completion.reasoning,
            self.requests,
        )

    def _error_of(self, refusal: Refusal) -> ModelError:
        server = self.server
        return refusal.error(server.host, server.redactor, has_key=server.key is not None, model=self.defaults.model)
