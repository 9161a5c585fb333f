"""Servers differ: what one takes, another refuses. What was found out about one is remembered.

A request begins with the best that there is. When the server's refusal speaks of a part of it, the part is asked for
in the next plainer way. Each way leads down only, so that a handful of refusals is the most there can be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from fsm_agent.errors import UsageError
from fsm_agent.llm.completion import whole
from fsm_agent.llm.protocol import Message, ModelRequest, Step

LADDER: tuple[Step, ...] = ("json_schema", "json_object", "prompt")
"""The ways to ask for a form, the best first."""

_OF_THE_FORM = (
    "response_format", "response format", "json_schema", "json schema", "json_object", "json mode", "structured output",
    "grammar", "guided_",
)  # fmt: skip
_NOT_ABOUT_PARTS = frozenset({401, 403, 408, 429})


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one server takes for one model, as far as it is known."""

    step: Step = LADDER[0]
    counts_streams: bool = True
    """Whether it may be asked to count the tokens of a stream."""
    tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    takes_temperature: bool = True

    def after_refusal(self, status: int, body: str, sent: Mapping[str, Any]) -> Dialect | None:
        """The next plainer way to send a request that was refused; None where the refusal is not about a part of it."""
        if status in _NOT_ABOUT_PARTS:
            return None
        words = body.casefold()
        if "stream_options" in sent and "stream_options" in words:
            return replace(self, counts_streams=False)
        if "max_tokens" in sent and "max_completion_tokens" in words:
            return replace(self, tokens_key="max_completion_tokens")
        if "temperature" in sent and "temperature" in words and "support" in words:
            return replace(self, takes_temperature=False)
        if "response_format" in sent and any(word in words for word in _OF_THE_FORM):
            return replace(self, step=LADDER[LADDER.index(self.step) + 1])
        return None


class Dialects:
    """What is known of servers, by server and model. Give one to several clients, and they learn from each other."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Dialect] = {}

    def of(self, server: str, model: str) -> Dialect:
        """What is known, or the best there is."""
        return self._known.get((server, model), Dialect())

    def remember(self, server: str, model: str, dialect: Dialect) -> None:
        """This has been answered well."""
        self._known[server, model] = dialect


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a client says where a request says nothing."""

    model: str
    temperature: float
    max_tokens: int | None = None


def body_of(request: ModelRequest, defaults: Defaults, dialect: Dialect, *, streamed: bool) -> dict[str, Any]:
    """The JSON of a request, as this server takes it."""
    temperature = defaults.temperature if request.temperature is None else request.temperature
    max_tokens = defaults.max_tokens if request.max_tokens is None else request.max_tokens
    messages = request.messages
    if request.schema is not None and dialect.step != "json_schema":
        messages = with_schema(messages, request.schema)
    parts = {
        "model": defaults.model,
        "messages": [{"role": message.role, "content": message.text} for message in messages],
        "temperature": temperature if dialect.takes_temperature else None,
        dialect.tokens_key: max_tokens,
        "stop": list(request.stop) or None,
        "response_format": _form(request.schema, dialect.step),
        "stream": streamed or None,
        "stream_options": {"include_usage": True} if streamed and dialect.counts_streams else None,
    }
    return {key: value for key, value in parts.items() if value is not None}


def encode_body(body: Mapping[str, Any]) -> bytes:
    """The bytes of a request. Raises UsageError where its schema is no plain data."""
    try:
        return whole(json.dumps(body, ensure_ascii=False, allow_nan=False)).encode()
    except (TypeError, ValueError, RecursionError):
        pass
    raise UsageError("the schema of an answer is no plain JSON data", hint="give dicts, lists, texts and numbers")


def with_schema(messages: tuple[Message, ...], schema: Mapping[str, Any]) -> tuple[Message, ...]:
    """The dialogue with the schema in words: not every server looks at what stands beside `json_object`.

    It goes to the last message of the user, for many templates take a system message at the beginning only.
    """
    words = (
        "Answer with one JSON value that fits this JSON Schema, and with nothing else: no explanation, no code fence.\n"
        + json.dumps(schema, ensure_ascii=False)
    )
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "user":
            longer = Message("user", f"{messages[place].text}\n\n{words}")
            return (*messages[:place], longer, *messages[place + 1 :])
    return (*messages, Message("user", words))


def _form(schema: Mapping[str, Any] | None, step: Step) -> dict[str, Any] | None:
    if schema is None or step == "prompt":
        return None
    if step == "json_object":
        return {"type": "json_object", "schema": schema}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
