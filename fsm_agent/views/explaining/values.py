"""The values that an expression read: each under the name by which the expression asks for it, none of them long."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from fsm_agent.plan.expressions import Expression

NOT_SET: Final = "(not set)"
"""Stands for what was not there when the expression asked for it."""

MOST_CHARACTERS: Final = 200
"""A value whose JSON is longer than this is shown as the beginning of that."""

_MOST_PARAMETERS: Final = 20
_PLAIN_NAME: Final = re.compile(r"[^\W\d]\w*")

_Path = tuple[str, tuple[Any, ...]]
"""A name and the steps down from it: `results.a.data` is ("results", ("a", "data"))."""


def values_of(expression: Expression, names: Mapping[str, Any], absent: Mapping[str, str]) -> dict[str, Any]:
    """What the expression read of `names`, in the order of its text. `absent` says why a name has no value.

    Below what is not there, the last that is there is shown as well: `results.a.data` beside `results.a.data.cost`.
    """
    values: dict[str, Any] = {}
    for root, steps in dict.fromkeys(_paths(expression.tree)):
        if root not in expression.names_used:
            continue  # the variable of a comprehension
        if root not in names:
            values[_shown(root, steps)] = absent.get(root, NOT_SET)
            continue
        found, depth = _follow(names[root], steps)
        if depth < len(steps):
            if depth > 1 or (depth and root != "results"):
                values[_shown(root, steps[:depth])] = brief(found)
            reason = absent.get(str(steps[0]), NOT_SET) if root == "inputs" else NOT_SET
            values[_shown(root, steps)] = reason
        else:
            values[_shown(root, steps)] = brief(found)
    return values


def brief(value: Any) -> Any:
    """The value, or the beginning of its JSON where that is long. Looks at no more of it than it shows."""
    text = ""
    for chunk in json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value):
        text += chunk[: MOST_CHARACTERS + 1]
        if len(text) > MOST_CHARACTERS:
            return text[:MOST_CHARACTERS] + "…"
    return value


def parameters_of(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters of a call under their names; of very many only the first ones."""
    given = parameters or {}
    return {f"parameters.{key}": brief(value) for key, value in islice(given.items(), _MOST_PARAMETERS)}


def in_words(values: Mapping[str, Any]) -> Iterator[str]:
    """Each value as `name = value`."""
    for name, value in values.items():
        stands_for_value = isinstance(value, str) and value.startswith("(") and value.endswith(")")
        shown = value if stands_for_value else json.dumps(value, ensure_ascii=False, default=str)
        yield f"{name} = {shown}"


def _paths(node: ast.AST) -> Iterator[_Path]:
    """Every name with the steps taken from it, as far as these are written out."""
    path = _path(node)
    if path is not None:
        yield path
        if isinstance(node, ast.Call):
            yield from (found for argument in node.args[1:] for found in _paths(argument))
        return
    if isinstance(node, ast.Call):
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        children: list[ast.AST] = [*([inner] if inner is not None else ()), *node.args, *node.keywords]
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from _paths(child)


def _path(node: ast.AST) -> _Path | None:
    steps: list[Any] = []
    while True:
        if isinstance(node, ast.Name):
            return node.id, tuple(reversed(steps))
        if isinstance(node, ast.Attribute):
            steps.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            steps.append(node.slice.value)
            node = node.value
        elif _gets(node) is not None:
            owner, key = _gets(node) or (node, None)
            steps.append(key)
            node = owner
        else:
            return None


def _gets(node: ast.AST) -> tuple[ast.expr, Any] | None:
    """The owner and the key of `owner.get('key', …)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        key = node.args[0]
        return (node.func.value, key.value) if isinstance(key, ast.Constant) else None
    return None


def _follow(value: Any, steps: tuple[Any, ...]) -> tuple[Any, int]:
    """What the steps lead to, and how many of them could be taken."""
    for depth, step in enumerate(steps):
        is_item = isinstance(value, list) and type(step) is int and -len(value) <= step < len(value)
        is_key = isinstance(value, Mapping) and isinstance(step, str) and step in value
        if not (is_item or is_key):
            return value, depth
        value = value[step]
    return value, len(steps)


def _shown(root: str, steps: tuple[Any, ...]) -> str:
    parts = (
        f".{step}"
        if isinstance(step, str) and _PLAIN_NAME.fullmatch(step)
        else f"[{json.dumps(step, ensure_ascii=False)}]"
        for step in steps
    )
    return root + "".join(parts)
