"""How many tokens a text will be, where nobody counted them."""

from __future__ import annotations

from collections.abc import Iterable

from fsm_agent.llm.protocol import Message, Usage

_ASCII_A_TOKEN = 4
_AROUND_A_MESSAGE = 4


def estimate_tokens(text: str) -> int:
    """About as many as the usual vocabularies need: four ASCII characters a token, else one character."""
    plain = len(text) if text.isascii() else sum(map(str.isascii, text))
    return -(-plain // _ASCII_A_TOKEN) + len(text) - plain


def estimate_prompt(messages: Iterable[Message]) -> int:
    """The same for a dialogue, with what stands around each message."""
    return sum(estimate_tokens(message.text) + _AROUND_A_MESSAGE for message in messages)


def usage_of(told: object, messages: Iterable[Message], answer: str) -> Usage:
    """What the server counted; where it counted nothing that can be read, an estimate that says so."""
    counted = told if isinstance(told, dict) else {}
    prompt, completion = counted.get("prompt_tokens"), counted.get("completion_tokens")
    whole = (_count(prompt), _count(completion))
    return Usage(
        estimate_prompt(messages) if whole[0] is None else whole[0],
        estimate_tokens(answer) if whole[1] is None else whole[1],
        estimated=None in whole,
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
