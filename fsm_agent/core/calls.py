"""Calls under way: what a run must know of them so that another process can go on after this one has died."""

from __future__ import annotations

from typing import Any

import msgspec

from fsm_agent.core.events import ApprovalAsked, AttemptFailed, AttemptStarted, TaskError, TaskInterrupted, TaskStarted


class Call(msgspec.Struct, gc=False):
    """The present visit of one task, from its start to its verdict."""

    visit: int
    parameters: dict[str, Any] | None = None
    """As recorded, without secrets; None where the plan holds the very same."""
    seal: str = ""
    """The digest of the true parameters, where the record may leave secrets out."""
    attempts: int = 1
    """Attempts begun so far."""
    retried: int = 0
    """Those of them that were tried again. The same attempt made once more after a crash is still one."""
    interruptions: int = 0
    """How often the process died while a call of this visit was under way."""
    calling: bool = True
    """Whether a call was under way, as far as the journal knows: else it waits to try again, or for a person."""
    fallback: bool = False
    """Whether it is the fallback's turn."""
    error: TaskError | None = None
    """What the last attempt failed with."""
    due: float = 0.0
    """When the next attempt may be made, in seconds since 1970."""
    idempotent: bool = False
    """Whether a second call did no harm when the last one was made."""

    def attempt_failed(self, event: AttemptFailed) -> None:
        """An attempt is over, and something follows it."""
        self.calling = False
        self.error = event.error
        self.due = event.at + event.delay
        if event.then == "fallback":
            self.fallback = True
        else:
            self.retried += 1

    def attempt_started(self, event: AttemptStarted) -> None:
        """The next call is under way."""
        self.calling = True
        self.attempts = event.attempt
        self.retried = max(self.retried, event.attempt - 1)  # only a further attempt says that one was tried again
        self.fallback = event.fallback
        self.idempotent = event.idempotent

    def interrupted(self, event: TaskInterrupted) -> None:
        """The process that made the call is gone."""
        self.calling = False
        self.interruptions += 1
        self.due = event.at
        if not (self.fallback and self.error):  # a fallback's own end changes nothing of why it had its turn
            self.error = interruption(event.attempt)
        if event.then == "fallback":
            self.fallback = True


def call_of(event: TaskStarted, asked: ApprovalAsked | None) -> Call:
    """The call that a visit begins with; `asked` holds the parameters, if a person agreed to them."""
    if asked is not None:
        return Call(event.visit, asked.parameters, asked.digest, idempotent=event.idempotent)
    return Call(event.visit, event.parameters, event.seal, idempotent=event.idempotent)


def interruption(attempt: int) -> TaskError:
    """The failure of a call that nobody was left to hear of."""
    return TaskError("interrupted", "its process ended during the call: what it came to is not known", attempt=attempt)
