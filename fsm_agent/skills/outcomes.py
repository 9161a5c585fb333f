"""What a call came to: what a returned value means, and what kind of failure an error is."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import msgspec

from fsm_agent.errors import BadParameters, CallTimeout, NotJson, TooLarge, UndeclaredWrite
from fsm_agent.jsonable import size_of, to_plain
from fsm_agent.plan.policy import Failure
from fsm_agent.retry_after import parse_retry_after

OUTCOME_KEYS = frozenset({"success", "data", "error", "message"})
"""A dict with `success` and none but these keys is no data but an outcome."""

MAX_MESSAGE = 2_000
"""An error's message is cut to this many characters before it is shown or kept."""

MAX_RAW = 100_000
"""As much of a message is carried until secrets are taken out of it: what is cut first shows a part of a secret."""

_OWN_KINDS: tuple[tuple[type[Exception], str], ...] = (
    (CallTimeout, "timeout"),
    (NotJson, "not_json"),
    (TooLarge, "too_large"),
    (UndeclaredWrite, "undeclared_write"),
    (BadParameters, "parameters"),
)


class Success(msgspec.Struct, frozen=True):
    """The attempt succeeded; `data` is plain JSON data, a fresh copy."""

    data: Any


class Reported(msgspec.Struct, frozen=True):
    """The skill reported its own failure: `success: false`."""

    message: str
    type: str | None = None


def interpret(value: Any, max_bytes: int) -> Success | Reported:
    """What a returned value means.

    A dict of `success data error message` is an outcome, any other value the data itself, except that `success: false`
    is always a failure. Raises NotJson for what is no plain data, and TooLarge for more than `max_bytes` of JSON.
    """
    plain = _plain(value)
    data = plain
    if type(plain) is dict and "success" in plain:
        failed = reported(plain)
        if failed is not None:
            return failed
        if plain.keys() <= OUTCOME_KEYS:
            data = plain.get("data")
    size = size_of(data)
    if size > max_bytes:
        raise TooLarge("the result", size, max_bytes, "write it to a file, and return the file's name")
    return Success(data)


def reported(value: Any) -> Reported | None:
    """The failure that a returned value reports, or None where it reports none.

    An outcome whose `success` is neither true nor false counts as a failure: it must not pass for a success.
    """
    if not isinstance(value, dict) or "success" not in value or value["success"] is True:
        return None
    if value["success"] is False:
        return Reported(_words_of(value), _type_of(value.get("error")))
    if value.keys() <= OUTCOME_KEYS:
        return Reported(
            f"`success` of the outcome must be true or false, not of type {class_name(type(value['success']))}"
        )
    return None


def failure_of(error: BaseException, attempt: int, now: float) -> Failure:
    """A raised error as a failed attempt. `now` (seconds since 1970) is what a date of the server is compared with.

    Whatever the error's own code does, there is an answer. The message is not cut to MAX_MESSAGE yet: take the secrets
    out of it, then `cut` it.
    """
    cls = type(error)  # isinstance would also ask the error what its class is
    message = describe(error, MAX_RAW)
    for kind_of_error, kind in _OWN_KINDS:
        if issubclass(cls, kind_of_error):
            return Failure(kind, None, _with_hint(message, error), attempt)
    classes = tuple(class_name(base) for base in _bases_of(cls) if base not in (BaseException, object))
    wait = retry_after_of(error, now)
    return Failure("exception", class_name(cls), message, attempt, classes or (BaseException.__name__,), wait)


def _with_hint(message: str, error: BaseException) -> str:
    """One of our own errors, with what to do: a task's error has no other place for that."""
    hint = getattr(error, "hint", "")
    return f"{message}; {hint}" if hint else message


def reported_failure(report: Reported, attempt: int) -> Failure:
    """A reported failure as a failed attempt."""
    return Failure("reported", report.type, report.message, attempt)


def describe(error: BaseException, most: int = MAX_MESSAGE) -> str:
    """An error in words, at most so many characters, whatever its `__str__` does."""
    try:
        text = str.__str__(str(error))  # twice: what comes of the first may be of a subclass, with code of its own
    except BaseException:  # noqa: BLE001 - foreign code that must not end the run, and there is an error to report
        text = ""
    return cut(text or class_name(type(error)), most)


def cut(text: str, most: int = MAX_MESSAGE) -> str:
    """The text, at most so many characters of it; what has no UTF-8 form becomes a question mark."""
    clean = text[: most + 1].encode("utf-8", "replace").decode("utf-8")
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def class_name(cls: type) -> str:
    """The name of a class, whatever its metaclass says of it."""
    name: str = type.__dict__["__name__"].__get__(cls)
    return name


def retry_after_of(error: BaseException, now: float) -> float | None:
    """The wait that an error asks for, in seconds: its `retry_after`, or the Retry-After header of its response.

    Any error with such an attribute will do (httpx and requests among them). `now` is in seconds since 1970.
    """
    try:
        wish = getattr(error, "retry_after", None)
        if wish is None:
            wish = error.response.headers.get("retry-after")  # type: ignore[attr-defined] # duck typing is the point
        return parse_retry_after(wish, now)
    except BaseException:  # noqa: BLE001 - foreign attributes may raise anything, and most errors have none
        return None


def _plain(value: Any) -> Any:
    try:
        return to_plain(value)
    except NotJson:
        if inspect.iscoroutine(value):
            value.close()  # else Python would warn, at some later moment, that nobody awaited it
        raise


def _words_of(outcome: Mapping[str, Any]) -> str:
    error = outcome.get("error")
    words = error.get("message") if isinstance(error, dict) else error
    for text in (words, outcome.get("message")):
        if isinstance(text, str) and str.strip(text):
            return cut(str.__str__(text), MAX_RAW)
    return "the skill reported a failure without a message"


def _type_of(error: Any) -> str | None:
    name = error.get("type") if isinstance(error, dict) else None
    return str.__str__(name)[:100] or None if isinstance(name, str) else None


def _bases_of(cls: type) -> tuple[type, ...]:
    """The class and all that it comes from, whatever its metaclass says of it."""
    bases: tuple[type, ...] = type.__dict__["__mro__"].__get__(cls)
    return bases
