"""Errors of asking a language model. They name the server by host and path, never by its key or its query."""

from __future__ import annotations

from typing import Self

from fsm_agent.errors.root import FsmAgentError


class ModelError(FsmAgentError):
    """A language model gave no answer.

    `host` is where it was asked, `status` the HTTP status where there was one. `transient` says whether the same
    request may succeed later; `retry_after` is the wait that the server asks for, in seconds, where it does.
    `requests` is how often the server was asked before this was raised.
    """

    code = "model"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        host: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        transient: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.host = host
        self.status = status
        self.retry_after = retry_after
        self.transient = transient
        self.requests = 0

    def after(self, requests: int, why: str = "") -> Self:
        """The same error, saying how many requests were made, and why there was no further one."""
        times = f"asked {requests} times" if requests > 1 else ""
        words = ", ".join(filter(None, (times, why)))
        told = type(self)(
            f"{self.message} ({words})" if words else self.message,
            hint=self.hint,
            host=self.host,
            status=self.status,
            retry_after=self.retry_after,
            transient=self.transient,
        )
        told.requests = requests
        return told


class ModelNotSet(ModelError):
    """No server is named, or no model. Nothing was sent."""

    code = "model_not_set"


class ModelKeyRefused(ModelError):
    """The server wants a key and was given none, or does not take the one it was given (401, 403)."""

    code = "model_key_refused"


class ModelUnreachable(ModelError):
    """No connection was made: the server has seen nothing of the request."""

    code = "model_unreachable"


class ModelTimeout(ModelError):
    """The whole answer, or its next piece, did not come in time."""

    code = "model_timeout"


class ModelBusy(ModelError):
    """The server refuses requests for the moment (429), or until somebody pays."""

    code = "model_busy"


class ModelFault(ModelError):
    """The server failed: a status from 500 on, or an error in the middle of its answer."""

    code = "model_fault"


class ModelRefused(ModelError):
    """The server refused the request itself: an unknown model, too long a dialogue, a parameter it does not take."""

    code = "model_refused"


class NotAModel(ModelError):
    """What answers there speaks no chat completions."""

    code = "not_a_model"


class AnswerTooLarge(ModelError):
    """The answer has more bytes than it may; the rest of it was not read."""

    code = "answer_too_large"


class AnswerCut(ModelError):
    """The connection ended before the answer did. Nothing of it may be taken for the whole."""

    code = "answer_cut"
