"""A small evaluator of the plan language (section 7), enough for the plans of the tests. An error is never a value."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

Names = Mapping[str, Any]

ORDERINGS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class ExpressionError(Exception):
    """An expression that does not parse, uses what is not there, or puts wrong types together."""


def evaluate(text: str, names: Names) -> Any:
    """The value of an expression over plain data."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ExpressionError("no expression") from error
    return _value(tree.body, names)


def _value(node: ast.expr, names: Names) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return _item(names, name)
        case ast.Attribute(value=holder, attr=key):
            return _item(_value(holder, names), key)
        case ast.Subscript(value=holder, slice=key):
            return _item(_value(holder, names), _value(key, names))
        case ast.Call(func=ast.Attribute(value=holder, attr="get"), args=arguments, keywords=[]):
            return _get(_value(holder, names), [_value(argument, names) for argument in arguments])
        case ast.BoolOp():
            return _logic(node, names)
        case ast.Compare():
            return _comparison(node, names)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, names)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _arithmetic(ast.Sub(), 0, _value(operand, names))
        case ast.BinOp(left=left, op=op, right=right):
            return _arithmetic(op, _value(left, names), _value(right, names))
    raise ExpressionError(f"{type(node).__name__} is not part of this evaluator")


def _item(holder: Any, key: Any) -> Any:
    if isinstance(holder, list) and isinstance(key, int) and -len(holder) <= key < len(holder):
        return holder[key]
    if isinstance(holder, Mapping) and isinstance(key, str) and key in holder:
        return holder[key]
    raise ExpressionError("there is nothing under that name")


def _get(holder: Any, arguments: list[Any]) -> Any:
    if not isinstance(holder, Mapping) or not 1 <= len(arguments) <= 2:
        raise ExpressionError("get is for mappings, with one key and one default")
    return holder.get(*arguments)


def _logic(node: ast.BoolOp, names: Names) -> Any:
    stops_at = isinstance(node.op, ast.Or)
    value: Any = None
    for operand in node.values:
        value = _value(operand, names)
        if bool(value) is stops_at:
            break
    return value


def _comparison(node: ast.Compare, names: Names) -> bool:
    left = _value(node.left, names)
    for op, operand in zip(node.ops, node.comparators, strict=True):
        right = _value(operand, names)
        if not _compare(op, left, right):
            return False
        left = right
    return True


def _compare(op: ast.cmpop, left: Any, right: Any) -> bool:
    if isinstance(op, ast.Eq | ast.NotEq):
        return bool(left == right) is isinstance(op, ast.Eq)
    if isinstance(op, ast.In | ast.NotIn):
        return _contains(right, left) is isinstance(op, ast.In)
    if isinstance(op, ast.Is | ast.IsNot) and any(right is value for value in (None, True, False)):
        return (left is right) is isinstance(op, ast.Is)
    if type(op) in ORDERINGS and _alike(left, right, (int, float), str):
        return ORDERINGS[type(op)](left, right)
    raise ExpressionError("these cannot be compared")


def _contains(holder: Any, item: Any) -> bool:
    if isinstance(holder, list | Mapping) or (isinstance(holder, str) and isinstance(item, str)):
        return item in holder
    raise ExpressionError("nothing can be in that")


def _arithmetic(op: ast.operator, left: Any, right: Any) -> Any:
    kinds: tuple[Any, ...] = ((int, float), str, list) if isinstance(op, ast.Add) else ((int, float),)
    if type(op) not in ARITHMETIC or not _alike(left, right, *kinds):
        raise ExpressionError("no arithmetic on these")
    try:
        return ARITHMETIC[type(op)](left, right)
    except ZeroDivisionError as error:
        raise ExpressionError("a division by zero") from error


def _alike(left: Any, right: Any, *kinds: Any) -> bool:
    return any(isinstance(left, kind) and isinstance(right, kind) for kind in kinds)
