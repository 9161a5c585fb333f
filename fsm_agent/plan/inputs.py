"""The inputs of a plan: what a run was given against what the plan declares, by the types of JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from fsm_agent.errors import NotJson, Problem
from fsm_agent.jsonable import copy_plain, to_plain
from fsm_agent.plan.findings import Suggestions, kind_of, shown
from fsm_agent.plan.model import Input, JsonType, Plan

ENVIRONMENT_PREFIX: Final = "FSM_AGENT_SECRET_"
"""Environment variables that begin so fill secret inputs."""


def check_inputs(plan: Plan, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The inputs of a run as plain data, defaults filled in, and what is wrong with them.

    An input that need not be given, is not, and has no default is null. The problems never show a value.
    """
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    suggestions = Suggestions()
    for name in given:
        if name not in plan.inputs:
            hint = suggestions.hint(str(name), plan.inputs, "input", otherwise="the plan declares no such input")
            problems.append(_problem("unknown_input", str(name), f"the plan has no input {shown(str(name))}", hint))
    for name, declared in plan.inputs.items():
        if name in given:
            values[name], problem = _taken(name, given[name], declared)
            problems.extend(problem)
        elif declared.must_be_given:
            message = f"input {shown(name)} is missing" + (f": {declared.description}" if declared.description else "")
            problems.append(_problem("missing_input", name, message, _how_to_give(name, declared)))
        else:
            values[name] = copy_plain(declared.default)
    return values, problems


def secret_variable(name: str) -> str:
    """The environment variable for a secret input: `db-password` is FSM_AGENT_SECRET_DB_PASSWORD."""
    return ENVIRONMENT_PREFIX + re.sub(r"\W", "_", name).upper()


def fits(value: Any, kind: JsonType) -> bool:
    """Whether plain data is of a JSON Schema type: true is no number, and 1.0 is an integer."""
    if kind == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    return type(value) in _PYTHON_TYPES[kind]


def is_of_type(value: Any, declared: Input) -> bool:
    """Whether plain data is of a type that the input may have."""
    if declared.type is None:
        return True
    kinds = declared.type if isinstance(declared.type, list) else [declared.type]
    return any(fits(value, kind) for kind in kinds)


def types_of(declared: Input) -> str:
    """The types that an input may have, in words."""
    if declared.type is None:
        return "any value"
    return " or ".join(declared.type) if isinstance(declared.type, list) else declared.type


_PYTHON_TYPES: Mapping[JsonType, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _how_to_give(name: str, declared: Input) -> str:
    ways = [f"--set {name}=…", f"inputs={{{name!r}: …}}"]
    if declared.secret:
        ways.insert(0, f"the variable {secret_variable(name)}")
    return f"give it ({types_of(declared)}): {', '.join(ways[:-1])} or {ways[-1]}"


def _taken(name: str, value: Any, declared: Input) -> tuple[Any, list[Problem]]:
    try:
        plain = to_plain(value, f"inputs.{name}")
    except NotJson as error:
        return None, [_problem("bad_input", name, error.message, error.hint)]
    if is_of_type(plain, declared):
        return plain, []
    message = f"input {shown(name)} must be of type {types_of(declared)}; this is {kind_of(plain)}"
    return None, [_problem("bad_input", name, message)]


def _problem(rule: str, name: str, message: str, hint: str = "") -> Problem:
    return Problem(rule, message, field=f"inputs.{name}", hint=hint)
