"""What a language model is asked, and what it answers, whoever serves it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from fsm_agent.errors import UsageError

Role = Literal["system", "user", "assistant"]
Step = Literal["json_schema", "json_object", "prompt"]
"""How the form of an answer was asked for: by its schema, as JSON with the schema beside it, or in words only."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a dialogue."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model: the dialogue so far, and what the answer may be."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the answer. Asked for as well as the server can: the answer must still be checked."""
    temperature: float | None = None
    """None: the client's."""
    max_tokens: int | None = None
    """The most tokens of the answer. None: the client's bound, else the server's."""
    stop: tuple[str, ...] = ()
    """Texts before which the answer ends."""

    @classmethod
    def of(cls, user: str, *, system: str = "", schema: Mapping[str, Any] | None = None) -> ModelRequest:
        """A dialogue of one question."""
        first = (Message("system", system),) if system else ()
        return cls((*first, Message("user", user)), schema)


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one exchange."""

    prompt_tokens: int
    completion_tokens: int
    estimated: bool = False
    """Whether the server counted nothing, and these are estimates."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole answer of a model."""

    text: str
    """The answer. A call of a tool stands in it as a JSON object with `name` and `arguments`."""
    usage: Usage
    finish_reason: str | None = None
    """Why the model stopped, in the server's word: `stop`, `length`, …"""
    model: str = ""
    """The model, as the server names it."""
    seconds: float = 0.0
    """From the question to the end of the answer, with all waiting."""
    step: Step | None = None
    """How its form was asked for, where the request had a schema."""
    reasoning: str = ""
    """What the model thought before it answered, where the server tells that apart."""
    requests: int = 1
    """How often the server was asked."""

    @property
    def cut(self) -> bool:
        """Whether the answer ends where its tokens were used up, and not where the model was done."""
        return self.finish_reason == "length"


class ReplyStream:
    """An answer as it comes: `async for piece in stream`. Joined, the pieces are the text of `reply`.

    `reply` is there once the pieces are at an end. Who leaves early closes the stream (`async with`, or `aclose`), and
    with it the connection.
    """

    def __init__(self, parts: AsyncGenerator[str | Reply]) -> None:
        """`parts` are the pieces, and then the whole reply."""
        self._parts = parts
        self._reply: Reply | None = None
        self._pieces: AsyncGenerator[str] | None = None

    @property
    def reply(self) -> Reply:
        """The whole answer. Raises UsageError before the last piece was taken."""
        if self._reply is None:
            raise UsageError("the answer is not at its end yet", hint="take all pieces first: async for piece in …")
        return self._reply

    def __aiter__(self) -> AsyncIterator[str]:
        """The pieces. Raises UsageError for a second consumer."""
        if self._pieces is not None:
            raise UsageError("a stream has one consumer, once", hint="ask again for another answer")
        self._pieces = self._take()
        return self._pieces

    async def __aenter__(self) -> ReplyStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the answer where it stands."""
        if self._pieces is not None:
            await self._pieces.aclose()
        await self._parts.aclose()

    async def _take(self) -> AsyncGenerator[str]:
        try:
            async for part in self._parts:
                if isinstance(part, Reply):
                    self._reply = part
                elif part:
                    yield part
        finally:
            await self._parts.aclose()


class LlmClient(Protocol):
    """Asks a language model. Raises ModelError where it gives no answer."""

    async def complete(self, request: ModelRequest) -> Reply:
        """The whole answer."""

    def stream(self, request: ModelRequest) -> ReplyStream:
        """The answer, piece by piece. The server is asked when the first one is taken."""
