"""Arithmetic and comparison on guarded values: Python's own results, or a typed error."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from fsm_agent.errors import ExpressionBudget, ExpressionType
from fsm_agent.plan.expression_values import (
    CONTAINERS,
    LETTERS_A_STEP,
    NUMBERS,
    Meter,
    Set,
    Stream,
    Tuple,
    check_flat,
    kind_of,
    number,
)

MAX_JOINED_TEXT = 100_000
MAX_JOINED_LIST = 10_000

Comparison = Callable[[Meter, Any, Any], bool]


def add(meter: Meter, left: Any, right: Any) -> Any:
    """Two numbers, two texts or two lists."""
    kind = type(left)
    if kind in NUMBERS and type(right) in NUMBERS:
        return number(left + right)
    if kind is type(right) and kind in (str, list):
        length = len(left) + len(right)
        if length > (MAX_JOINED_TEXT if kind is str else MAX_JOINED_LIST):
            raise ExpressionBudget(f"'+' makes {kind_of(left)} that is too long")
        if kind is str:
            meter.made(left)
            meter.made(right)
        else:
            meter.charge(length)
        return left + right
    raise ExpressionType(f"'+' cannot join {kind_of(left)} and {kind_of(right)}")


def _arithmetic(sign: str, compute: Callable[[Any, Any], Any]) -> Callable[[Meter, Any, Any], Any]:
    def operate(_: Meter, left: Any, right: Any) -> Any:
        if type(left) in NUMBERS and type(right) in NUMBERS:
            return number(compute(left, right))
        raise ExpressionType(f"{sign!r} takes two numbers, not {kind_of(left)} and {kind_of(right)}")

    return operate


def equal(meter: Meter, left: Any, right: Any) -> bool:
    """Of any two values. Containers of one kind are walked, and paid for, before Python compares them."""
    kind = type(left)
    if kind is type(right):
        if kind is str:
            if len(left) == len(right):
                meter.read(left)
        elif kind in CONTAINERS:
            meter.walk(left)
            meter.walk(right)
    return bool(left == right)


def _unequal(meter: Meter, left: Any, right: Any) -> bool:
    return not equal(meter, left, right)


def _ordering(sign: str, compare: Callable[[Any, Any], bool]) -> Comparison:
    def order(meter: Meter, left: Any, right: Any) -> bool:
        kind = type(left)
        if kind in NUMBERS and type(right) in NUMBERS:
            return compare(left, right)
        if kind is str and type(right) is str:
            meter.read(min(left, right, key=len))
            return compare(left, right)
        raise ExpressionType(
            f"{sign!r} compares two numbers or two texts, not {kind_of(left)} and {kind_of(right)}",
            hint="give .get a default, or check for None first" if left is None or right is None else "",
        )

    return order


def contains(meter: Meter, item: Any, whole: Any) -> bool:
    """`item in whole`, for a list, a tuple, a set, a generator, the keys of an object, or a text in a text."""
    kind = type(whole)
    if kind is str:
        if type(item) is not str:
            raise ExpressionType(f"'in' looks for text in text, not for {kind_of(item)}")
        meter.charge(search_steps(whole, item))
    elif kind is dict or kind is Set:
        if type(item) in (list, dict):
            raise ExpressionType(f"{kind_of(item)} cannot be a key or a member of a set")
        meter.walk(item)
    elif kind is list or kind is Tuple:
        search_list(meter, item, whole)
    elif kind is Stream:
        return any(equal(meter, item, other) for other in meter.items(whole))
    else:
        raise ExpressionType(f"'in' needs a list, an object or text on its right, not {kind_of(whole)}")
    return item in whole


def _lacks(meter: Meter, item: Any, whole: Any) -> bool:
    return not contains(meter, item, whole)


def search_list(meter: Meter, item: Any, items: list[Any] | tuple[Any, ...]) -> None:
    """Checks and pays for comparing an item with every one of a list."""
    if type(item) in CONTAINERS:
        meter.charge(meter.walk(item) * len(items))
        meter.walk(items)
    else:
        meter.charge(len(items) * (1 + (len(item) // LETTERS_A_STEP if type(item) is str else 0)))
        check_flat(items)


def search_steps(text: str, part: str) -> int:
    """What looking for a part of a text costs.

    Python searches long texts in linear time, but in short ones it may compare every letter with every other.
    """
    length, wanted = len(text), len(part)
    steps = length // LETTERS_A_STEP + 1
    if length < 2_500 or (wanted < 100 and length < 30_000):
        steps += wanted * max(0, length - wanted) // 2_048
    return steps


BINARY: Mapping[type[ast.operator], Callable[[Meter, Any, Any], Any]] = {
    ast.Add: add,
    ast.Sub: _arithmetic("-", operator.sub),
    ast.Mult: _arithmetic("*", operator.mul),
    ast.Div: _arithmetic("/", operator.truediv),
    ast.FloorDiv: _arithmetic("//", operator.floordiv),
    ast.Mod: _arithmetic("%", operator.mod),
}

COMPARISONS: Mapping[type[ast.cmpop], Comparison] = {
    ast.Eq: equal,
    ast.NotEq: _unequal,
    ast.Lt: _ordering("<", operator.lt),
    ast.LtE: _ordering("<=", operator.le),
    ast.Gt: _ordering(">", operator.gt),
    ast.GtE: _ordering(">=", operator.ge),
    ast.In: contains,
    ast.NotIn: _lacks,
    ast.Is: lambda _, left, right: left is right,
    ast.IsNot: lambda _, left, right: left is not right,
}


def signed(sign: type[ast.unaryop], value: Any) -> Any:
    """A number with a sign before it."""
    if type(value) in NUMBERS:
        return number(-value if sign is ast.USub else +value)
    raise ExpressionType(f"a sign stands before a number, not before {kind_of(value)}")
