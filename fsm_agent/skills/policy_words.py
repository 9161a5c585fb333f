"""What an author says about calls of a skill, brought from the forms that are handy to write to plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from fsm_agent.errors import BadSkill
from fsm_agent.plan.catalog import SkillPolicy
from fsm_agent.plan.model import Backoff, Fallback, Model
from fsm_agent.plan.policy import OTHER_KINDS, RETRIABLE_KINDS

ErrorName = str | type[BaseException]
RetryOn = ErrorName | Iterable[ErrorName]
"""Exception classes (or their bare names) and the kinds `timeout reported verification`; one, or several."""

BackoffWords = Backoff | Mapping[str, Any] | float
"""A Backoff, its fields, or only its base in seconds."""

MAX_RETRIES = 10_000
MAX_SECONDS = 1e9

M = TypeVar("M", bound=Model)


def policy_words(
    where: str,
    *,
    timeout: float | None,
    max_retries: int | None,
    retry_on: RetryOn | None,
    backoff: BackoffWords | None,
) -> SkillPolicy:
    """An author's words as plain data. Raises BadSkill, which says what is wrong with them; `where` begins it."""
    return SkillPolicy(
        timeout=_timeout(where, timeout),
        max_retries=_max_retries(where, max_retries),
        retry_on=None if retry_on is None else _retry_on(where, retry_on),
        backoff=None if backoff is None else _backoff(where, backoff),
    )


def fallback_words(where: str, words: Fallback | Mapping[str, Any] | str) -> Fallback:
    """A skill's fallback: a Fallback, its fields, or a skill's name. Raises BadSkill."""
    if isinstance(words, str):
        words = {"skill": words}
    fallback = words if isinstance(words, Fallback) else _model(where, "fallback", Fallback, words)
    named = fallback.skill is not None
    if named == ("value" in fallback.model_fields_set) or (fallback.parameters is not None and not named):
        raise BadSkill(f"{where}: a fallback is either {{value: …}} or {{skill: …, parameters: …}}")
    return fallback


def strings(where: str, field: str, words: str | Iterable[str]) -> tuple[str, ...]:
    """One string, or several, as a tuple without repeats. Raises BadSkill."""
    found = _several(where, field, words, alone=isinstance(words, str))
    if not all(isinstance(word, str) and word for word in found):
        raise BadSkill(f"{where}: {field} must be strings that are not empty")
    return tuple(dict.fromkeys(found))


def functions(where: str, field: str, words: Callable[..., Any] | Iterable[Callable[..., Any]]) -> tuple[Any, ...]:
    """One function, or several, as a tuple. Raises BadSkill."""
    found = _several(where, field, words, alone=callable(words))
    if not all(callable(word) for word in found):
        raise BadSkill(f"{where}: {field} must be functions")
    return found


def _several(where: str, field: str, words: Any, *, alone: bool) -> tuple[Any, ...]:
    try:
        return (words,) if alone else tuple(words)
    except TypeError:
        raise BadSkill(f"{where}: {field} is neither one nor a list of several") from None


def _timeout(where: str, timeout: float | None) -> float | None:
    if timeout is None:
        return None
    if not _is_number(timeout) or not 0 < timeout <= MAX_SECONDS:
        raise BadSkill(f"{where}: timeout must be a number of seconds above 0", hint="leave it out for the default")
    return float(timeout)


def _max_retries(where: str, max_retries: int | None) -> int | None:
    if max_retries is None:
        return None
    if not isinstance(max_retries, int) or isinstance(max_retries, bool) or not 0 <= max_retries <= MAX_RETRIES:
        raise BadSkill(f"{where}: max_retries must be a whole number from 0 to {MAX_RETRIES:,}")
    return max_retries


def _retry_on(where: str, words: RetryOn) -> tuple[str, ...]:
    found = _several(where, "retry_on", words, alone=isinstance(words, (str, type)))
    return tuple(dict.fromkeys(_error_name(where, word) for word in found))


def _error_name(where: str, word: ErrorName) -> str:
    if isinstance(word, type):
        if issubclass(word, Exception):
            return word.__name__
        raise BadSkill(f"{where}: retry_on cannot name {word.__name__}: only kinds of Exception are ever tried again")
    kinds = " ".join(RETRIABLE_KINDS)
    if not isinstance(word, str) or not (word in RETRIABLE_KINDS or word.isidentifier()):
        raise BadSkill(f"{where}: retry_on takes exception classes, their bare names, and the kinds {kinds}")
    if word in OTHER_KINDS:
        raise BadSkill(
            f"{where}: failures of kind {word!r} are never tried again",
            hint=f"retry_on takes exception classes (Exception is any) and the kinds {kinds}",
        )
    return word


def _backoff(where: str, words: BackoffWords) -> Backoff:
    if isinstance(words, Backoff):
        return words
    return _model(where, "backoff", Backoff, words if isinstance(words, Mapping) else {"base": words})


def _model(where: str, field: str, model: type[M], words: object) -> M:
    try:
        return model.model_validate(words)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join([field, *map(str, first["loc"])])
        message = f"{where}: {place}: {first['msg']}"
    raise BadSkill(message)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
