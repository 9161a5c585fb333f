"""What a server's refusal means, in the words of this package."""

from __future__ import annotations

import json
from typing import Any

from fsm_agent.errors import ModelBusy, ModelError, ModelFault, ModelKeyRefused, ModelRefused, NotAModel
from fsm_agent.redaction import Redactor

TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses after which the same request may succeed."""

MAX_WORDS = 300
"""As much of a server's own words is told."""

_PAY = ("insufficient_quota", "billing")


class Refusal(Exception):
    """A server's answer that is none: a status from 400 on, or an error within an answer. Never leaves this room."""

    def __init__(self, status: int, body: str, retry_after: float | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.retry_after = retry_after

    @classmethod
    def within(cls, error: dict[str, Any]) -> Refusal:
        """Of an error that a server tells within an answer that has begun well."""
        for key in ("code", "status", "status_code"):
            status = error.get(key)
            if isinstance(status, int) and 400 <= status < 600:
                return cls(status, json.dumps(error))
        return cls(500, json.dumps(error))

    def error(self, host: str, redactor: Redactor, *, has_key: bool, model: str) -> ModelError:
        """The error that it is for who asked."""
        kind, what, hint = self._meaning(has_key=has_key, model=model)
        words = "" if kind is ModelKeyRefused else _clean(redactor.text(words_of(self.body)))
        return kind(
            f"{host} {what} ({self.status})" + (f": {words}" if words else ""),
            hint=hint,
            host=host,
            status=self.status,
            retry_after=self.retry_after,
            transient=self.status in TRANSIENT and not self._unpaid,
        )

    @property
    def _unpaid(self) -> bool:
        return self.status == 429 and any(word in self.body for word in _PAY)

    def _meaning(  # noqa: PLR0911 - a table in all but its form
        self, *, has_key: bool, model: str
    ) -> tuple[type[ModelError], str, str]:
        """The class, what happened, and what to do. A server's words about a key are not told: they repeat it."""
        if self.status in (401, 403):
            if has_key:
                return ModelKeyRefused, "does not take the key that it was given", "is LLM_API_KEY right and allowed?"
            return ModelKeyRefused, "wants a key, and none was given", "set LLM_API_KEY, here or in .env"
        if self._unpaid:
            return ModelBusy, "has no quota left for this key", "see to the account, or name another server"
        if self.status == 429:
            return ModelBusy, "takes no more requests for now", "wait, or ask less often"
        if self.status >= 500:
            return ModelFault, "failed", "try again later; the server's log may say more"
        if self.status < 400:
            return NotAModel, "sends requests elsewhere", "name the address that it leads to in LLM_BASE_URL"
        if self.status in (404, 405):
            if "model" in words_of(self.body).casefold():
                return ModelRefused, f"does not know the model {model!r}", "is LLM_MODEL right?"
            return NotAModel, "has no chat completions there", "is LLM_BASE_URL right? It often ends in /v1"
        return ModelRefused, "refused the request", "shorten it, or change what the server's words name"


def words_of(body: str) -> str:
    """What the body of a refusal says to people. Nothing else of it is told: it may repeat what was sent."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    for part in (data.get("error"), data) if isinstance(data, dict) else ():
        if isinstance(part, str):
            return part
        if isinstance(part, dict):
            for key in ("message", "detail", "msg"):
                if isinstance(part.get(key), str):
                    return str(part[key])
    return ""


def _clean(words: str) -> str:
    """In one line, without what a terminal would obey, and not too long."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in words[: 10 * MAX_WORDS]).split())
    return line if len(line) <= MAX_WORDS else f"{line[:MAX_WORDS]}…"
