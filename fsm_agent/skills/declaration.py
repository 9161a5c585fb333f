"""`@skill`: what an author says of a function that plans may call. The function stays what it is."""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, get_args, overload

from fsm_agent.errors import BadSkill
from fsm_agent.plan.catalog import SkillPolicy
from fsm_agent.plan.model import Fallback, Risk
from fsm_agent.skills.filters import AfterFilter, BeforeFilter
from fsm_agent.skills.policy_words import (
    BackoffWords,
    RetryOn,
    fallback_words,
    functions,
    policy_words,
    strings,
)
from fsm_agent.skills.signature import Function, check_shape, is_async, name_of

F = TypeVar("F", bound=Callable[..., Any])

ATTRIBUTE = "__fsm_skill__"
"""Where a declared function carries its declaration."""

MAX_NAME = 100
NO_WORDS = SkillPolicy()


@dataclass(frozen=True, slots=True)
class Declaration:
    """What `@skill` was told. Of `policy.fallback` and `stand_in` at most one is there."""

    name: str | None = None
    description: str | None = None
    risk: Risk = "low"
    requires: frozenset[str] = frozenset()
    idempotent: bool = False
    policy: SkillPolicy = NO_WORDS
    stand_in: Function | None = None
    """The fallback, where it was given as a function."""
    writes: tuple[str, ...] | None = None
    before: tuple[BeforeFilter, ...] = ()
    after: tuple[AfterFilter, ...] = ()


@overload
def skill(name: F, /) -> F: ...
@overload
def skill(
    name: str | None = None,
    *,
    description: str | None = None,
    risk: Risk = "low",
    requires: str | Iterable[str] = (),
    idempotent: bool = False,
    timeout: float | None = None,
    max_retries: int | None = None,
    retry_on: RetryOn | None = None,
    backoff: BackoffWords | None = None,
    fallback: Fallback | Mapping[str, Any] | str | Function | None = None,
    writes: str | Iterable[str] | None = None,
    before: BeforeFilter | Iterable[BeforeFilter] = (),
    after: AfterFilter | Iterable[AfterFilter] = (),
) -> Callable[[F], F]: ...
def skill(  # noqa: PLR0913 - the keywords are what an author can say, one each
    name: Any = None,
    *,
    description: str | None = None,
    risk: Risk = "low",
    requires: str | Iterable[str] = (),
    idempotent: bool = False,
    timeout: float | None = None,
    max_retries: int | None = None,
    retry_on: RetryOn | None = None,
    backoff: BackoffWords | None = None,
    fallback: Fallback | Mapping[str, Any] | str | Function | None = None,
    writes: str | Iterable[str] | None = None,
    before: BeforeFilter | Iterable[BeforeFilter] = (),
    after: AfterFilter | Iterable[AfterFilter] = (),
) -> Any:
    """Declare a function as a skill: `@skill`, or `@skill(risk="high", …)`. The same function is returned.

    `name` is the function's own by default, `description` the first paragraph of its docstring. `risk`: a skill of
    high risk needs approval. `requires`: permissions that a run must be granted. `idempotent`: a second call does no
    harm; only then is it called again after a timeout or a crash. `timeout` (seconds) is for one attempt;
    `max_retries` is how many attempts may follow the first; `retry_on` names exception classes and the kinds
    `timeout reported verification`; `backoff` are the waits between attempts. `fallback`: a skill's name,
    `{"value": …}`, `{"skill": …, "parameters": …}`, or a function that takes the same parameters. `writes`: the
    context keys that it may write (any, when not given). `before` and `after`: filters, see `fsm_agent.skills.filters`.

    Raises BadSkill for what cannot be.
    """
    function, name = (name, None) if callable(name) else (None, name)
    where = f"@skill({name!r})" if isinstance(name, str) else "@skill"
    policy = policy_words(where, timeout=timeout, max_retries=max_retries, retry_on=retry_on, backoff=backoff)
    stand_in = fallback if callable(fallback) else None
    if fallback is not None and not callable(fallback):
        policy = replace(policy, fallback=fallback_words(where, fallback))
    declaration = Declaration(
        name=None if name is None else checked_name(name),
        description=description,
        risk=_risk(where, risk),
        requires=frozenset(strings(where, "requires", requires)),
        idempotent=bool(idempotent),
        policy=policy,
        stand_in=stand_in,
        writes=None if writes is None else strings(where, "writes", writes),
        before=_filters(where, "before", before),
        after=_filters(where, "after", after),
    )
    if function is not None:
        return declare(function, declaration)
    return lambda later: declare(later, declaration)


def declare(function: F, declaration: Declaration) -> F:
    """Attach a declaration to a function and give the function back. Raises BadSkill for what cannot be a skill."""
    check_shape(function, declaration.name or name_of(function))
    try:
        setattr(function, ATTRIBUTE, declaration)
    except (AttributeError, TypeError):
        raise BadSkill(
            f"{name_of(function)!r} cannot carry a declaration", hint="declare the function, or wrap it in one"
        ) from None
    return function


def declaration_of(function: object) -> Declaration | None:
    """What `@skill` was told of a function; None where it is not declared."""
    try:
        found = getattr(function, ATTRIBUTE, None)
    except Exception:  # noqa: BLE001 - a module may hold any object, and a lazy one may raise anything
        return None
    return found if isinstance(found, Declaration) else None


def description_of(function: Function) -> str:
    """The first paragraph of the docstring, on one line."""
    paragraph = (inspect.getdoc(function) or "").strip().partition("\n\n")[0]
    return " ".join(paragraph.split())


def checked_name(name: object) -> str:
    """A skill's name: 1 to 100 characters without control characters or outer blanks. Raises BadSkill."""
    if not isinstance(name, str) or not name or name != name.strip() or len(name) > MAX_NAME:
        raise BadSkill(f"a skill's name has 1 to {MAX_NAME} characters, without blanks at its ends")
    if name == "<lambda>":
        raise BadSkill("a lambda has no name that a plan could use", hint="give it one: {name: function}")
    if any(unicodedata.category(letter).startswith("C") for letter in name):
        raise BadSkill("a skill's name cannot hold control characters")
    return name


def _risk(where: str, risk: object) -> Risk:
    if risk not in get_args(Risk):
        raise BadSkill(f"{where}: risk must be one of {' '.join(get_args(Risk))}")
    return risk  # type: ignore[return-value] # it is one of them


def _filters(where: str, field: str, words: Any) -> tuple[Any, ...]:
    found = functions(where, field, words)
    if any(is_async(each) for each in found):
        raise BadSkill(f"{where}: {field} must be plain functions, not async ones")
    return found
