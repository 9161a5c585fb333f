"""What can be read off a function: its parameters and their types, which of them gets the context, whether it is async.

Nothing is called. What cannot be a skill is refused with BadSkill.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Optional, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from fsm_agent.errors import BadSkill
from fsm_agent.skills.context import SkillContext

Function = Callable[..., Any]

CONTEXT_NAME = "context"
"""A parameter of this name gets the SkillContext where none is annotated with it."""

_CONTEXT_TEXT = re.compile(
    r"(?:(?:\w+\.)*Optional\[)?(?:None\s*\|\s*)?(?:\w+\.)*SkillContext(?:\s*\|\s*None)?\]?"
)  # as text, for it may be imported for the type checker only


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that a plan can give. `default` counts only where `optional`."""

    name: str
    type: Any
    optional: bool
    default: Any = None


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function can be called with. `free`: it takes any other keyword too."""

    parameters: tuple[Parameter, ...]
    context: str | None
    free: bool
    is_async: bool


def read_signature(function: Function, name: str) -> Signature:
    """The signature of a skill. Raises BadSkill, saying which parameter is wrong and what to do."""
    shape = check_shape(function, name)
    hints = _Annotations(function, name)
    candidates = [each for each in shape.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    context = _context_parameter(candidates, hints, name)
    return Signature(
        parameters=tuple(_parameter(each, hints, name) for each in candidates if each.name != context),
        context=context,
        free=len(candidates) < len(shape.parameters),
        is_async=is_async(function),
    )


def check_function(function: Function, name: str) -> None:
    """That it is a function (a method, a callable object) which returns once. Raises BadSkill."""
    if not callable(function) or isinstance(function, type):
        raise BadSkill(f"{name!r} is no function", hint="give a function, a method or a callable object")
    tests = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(test(each) for test in tests for each in _layers(function)):
        raise BadSkill(f"{name!r} is a generator", hint="return a list; a skill tells progress by context.progress(…)")


def check_shape(function: Function, name: str) -> inspect.Signature:
    """What can be told of a skill without looking at types: also that it can be called by keywords. Raises BadSkill."""
    check_function(function, name)
    try:
        shape = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise BadSkill(f"skill {name!r} has no signature that can be read", hint="wrap it in a function") from error
    for each in shape.parameters.values():
        if each.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise BadSkill(
                f"skill {name!r}: parameter {each.name!r} is positional-only", hint="skills are called by keywords"
            )
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            raise BadSkill(f"skill {name!r} takes *{each.name}", hint="skills are called by keywords; take a list")
    return shape


def is_async(function: Function) -> bool:
    """Whether a call of it must be awaited, also where it is a partial, a wrapper or a callable object."""
    return any(inspect.iscoroutinefunction(each) for each in _layers(function))


def takes_nothing(function: Function) -> bool:
    """Whether a function is known to have no parameters at all."""
    try:
        return not inspect.signature(function).parameters
    except (ValueError, TypeError):
        return False


def name_of(function: Function) -> str:
    """The name that a function goes by, or that of its class for an object."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", None) or type(function).__name__)


def source_of(function: Function) -> str:
    """Where a function is from: file and line where they are known, else its module."""
    code = getattr(_innermost(function), "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    return str(getattr(function, "__module__", None) or type(function).__module__)


class _Annotations:
    """The annotations of one function, each resolved on its own, so that one that cannot be is named."""

    def __init__(self, function: Function, name: str) -> None:
        self._globals = getattr(_innermost(function), "__globals__", {})
        self._skill = name

    def resolve(self, parameter: inspect.Parameter) -> Any:
        def holder() -> None: ...

        holder.__annotations__ = {parameter.name: parameter.annotation}
        try:
            return get_type_hints(holder, globalns=self._globals, include_extras=True)[parameter.name]
        except Exception as error:
            raise BadSkill(
                f"skill {self._skill!r}: the annotation of parameter {parameter.name!r} cannot be resolved",
                hint="import its names at the top of the module, not only for type checking or in a function",
            ) from error


def _context_parameter(candidates: list[inspect.Parameter], hints: _Annotations, name: str) -> str | None:
    annotated = [each.name for each in candidates if _is_context(each, hints)]
    if len(annotated) > 1:
        raise BadSkill(f"skill {name!r}: both {annotated[0]!r} and {annotated[1]!r} are annotated SkillContext")
    if annotated:
        return annotated[0]
    return CONTEXT_NAME if any(each.name == CONTEXT_NAME for each in candidates) else None


def _is_context(parameter: inspect.Parameter, hints: _Annotations) -> bool:
    annotation = parameter.annotation
    if isinstance(annotation, str):
        if _CONTEXT_TEXT.fullmatch(annotation.strip("'\" ")):
            return True
        if parameter.name == CONTEXT_NAME:
            return False
        annotation = hints.resolve(parameter)
    return annotation is SkillContext or SkillContext in get_args(annotation)


def _parameter(parameter: inspect.Parameter, hints: _Annotations, name: str) -> Parameter:
    if isinstance(parameter.default, FieldInfo):
        raise BadSkill(
            f"skill {name!r}: the default of parameter {parameter.name!r} is a Field(…)",
            hint="write Annotated[type, Field(…)] = default",
        )
    kind = Any if parameter.annotation is inspect.Parameter.empty else hints.resolve(parameter)
    if parameter.default is inspect.Parameter.empty:
        return Parameter(parameter.name, kind, optional=False)
    if parameter.default is None and not _takes_none(kind):
        kind = Optional[kind]  # noqa: UP045 - it also takes what has no `|`; an author whose default is None takes None
    return Parameter(parameter.name, kind, optional=True, default=parameter.default)


def _takes_none(kind: Any) -> bool:
    """Whether a type says of itself that None is a value of it."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return kind is Any or type(None) in get_args(kind)


def _layers(function: Function) -> list[Function]:
    """The function, and what it is made of: a partial's function, a wrapper's, an object's `__call__`."""
    found = [function]
    while True:
        last: Any = found[-1]
        inner: Any
        if isinstance(last, functools.partial):
            inner = last.func
        elif hasattr(last, "__wrapped__"):
            inner = last.__wrapped__
        elif not inspect.isroutine(last) and not isinstance(last, type):
            inner = getattr(last, "__call__", None)  # noqa: B004 - it is to be looked at, not called
        else:
            return found
        if inner is None or any(inner is each for each in found):
            return found
        found.append(inner)


def _innermost(function: Function) -> Function:
    last: Any = _layers(function)[-1]
    return getattr(last, "__func__", last)  # type: ignore[no-any-return] # a method's function
