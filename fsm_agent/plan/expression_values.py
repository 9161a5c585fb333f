"""The values inside an expression: which kinds there are, and what it costs to walk them.

Data holds exactly dict, list, str, int, float, bool and None. Tuples, sets and generators are made by the
expression itself; classes of their own tell them from those that somebody put into the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from types import NoneType
from typing import Any

from fsm_agent.errors import ExpressionBudget, ExpressionType, ExpressionValue
from fsm_agent.jsonable import MAX_DEPTH

LETTERS_A_STEP = 128
"""So many characters of a text are read for one step."""

MAX_BITS = 1_024
MAX_VALUE_ITEMS = 200_000
MAX_VALUE_LETTERS = 10_000_000
MAX_VALUE_DEPTH = MAX_DEPTH + 3  # data as deep as it may be kept, under `results`, a task's record and `data`
_TOO_LARGE = 1 << MAX_BITS


class Tuple(tuple[Any, ...]):
    """A tuple that the expression made."""

    __slots__ = ()


class Set(set[Any]):
    """A set that the expression made."""

    __slots__ = ()


class Stream:
    """A generator expression: its items are evaluated one by one, when they are asked for."""

    __slots__ = ("items",)

    def __init__(self, items: Iterator[Any]) -> None:
        self.items = items


NUMBERS = frozenset({int, float, bool})
CONTAINERS = frozenset({list, dict, Tuple, Set})
SURE_KINDS = frozenset({dict, list, str, bool, NoneType, Tuple, Set, Stream})
"""Of these any value may be held; a number must also be finite and not too large."""

_MADE = (Tuple, Set, Stream)
_KINDS = SURE_KINDS | NUMBERS
_NAMES = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    NoneType: "None",
    Tuple: "a tuple",
    Set: "a set",
    Stream: "a generator",
}


def kind_of(value: object) -> str:
    """What a value is, in words; never the value."""
    return _NAMES.get(type(value)) or type(value).__name__


def checked(value: Any) -> Any:
    """The value itself, if it is of a kind that an expression may hold. Containers are not looked into."""
    kind = type(value)
    if kind in SURE_KINDS:
        return value
    if kind is int or kind is float:
        return number(value)
    raise ExpressionType(f"data of the type {kind.__name__} cannot be used in an expression")


def number(value: float) -> float:
    """The number itself, if it is finite and not too large."""
    if type(value) is float:
        if isfinite(value):
            return value
        raise ExpressionValue("a number is too large or not finite")
    if -_TOO_LARGE < value < _TOO_LARGE:
        return value
    raise ExpressionValue(f"a whole number has more than {MAX_BITS:,} bits")


def check_flat(items: Iterable[Any]) -> None:
    """Every item is of a kind that an expression may hold. Cheaper than `checked` on each."""
    kinds = set(map(type, items))
    if not kinds <= _KINDS:
        odd = sorted(kind.__name__ for kind in kinds - _KINDS)
        raise ExpressionType(f"data of the type {odd[0]} cannot be used in an expression")
    if int in kinds or float in kinds:
        for item in items:
            if type(item) in NUMBERS:
                number(item)


def check_value(value: Any) -> Any:
    """The value itself, if it is plain data all through and not too large: what may leave an expression."""
    size_of(value)
    return value


def size_of(value: Any) -> tuple[int, int]:
    """How many items, and how many characters, plain data holds, each counted as often as it is referred to.

    Raises ConditionError for what is no plain data, and for what is too large to be kept or shown: a short
    expression can refer to one large text many thousand times.
    """
    items = letters = 0
    level = [value]
    for _ in range(MAX_VALUE_DEPTH):
        below: list[Any] = []
        for item in level:
            if type(item) is str:
                letters += len(item)
            elif type(item) in CONTAINERS:
                items += len(item)
                if items > MAX_VALUE_ITEMS:
                    raise ExpressionBudget(f"the value of the expression has more than {MAX_VALUE_ITEMS:,} items")
                letters += _letters_of_keys(item)
                below += _plain_items(item)
            else:
                check_judgeable(checked(item))
        if letters > MAX_VALUE_LETTERS:
            raise ExpressionBudget(f"the value of the expression has more than {MAX_VALUE_LETTERS:,} characters")
        if not below:
            return items, letters
        level = below
    raise ExpressionBudget(f"the value of the expression is nested deeper than {MAX_VALUE_DEPTH} levels")


def check_judgeable(value: Any) -> Any:
    """The value itself, if its truth may be taken: a tuple or a generator at the top is a slip of the pen."""
    if type(value) in _MADE:
        raise _not_plain(value)
    return value


def _plain_items(value: Any) -> Iterable[Any]:
    if type(value) is list:
        return value
    if type(value) is dict:
        return value.values()
    raise _not_plain(value)


def _letters_of_keys(value: Any) -> int:
    if type(value) is not dict:
        return 0
    if not set(map(type, value)) <= {str}:
        raise ExpressionType("the value of an expression cannot hold keys that are not text")
    return sum(map(len, value))


def _not_plain(value: Any) -> ExpressionType:
    return ExpressionType(f"the value of an expression cannot hold {kind_of(value)}", hint="use a list")


class Meter:
    """How many steps an evaluation has left."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = 0

    def charge(self, steps: int) -> None:
        """Takes steps off. Raises ExpressionBudget when there are not enough: call it before the work."""
        self.left -= steps
        if self.left < 0:
            raise ExpressionBudget(
                "the evaluation takes too many steps", hint="look at less data, or let a skill compute it"
            )

    def read(self, text: str) -> None:
        """Charges for reading a text once."""
        self.charge(len(text) // LETTERS_A_STEP)

    def made(self, text: str) -> str:
        """Charges for a text (or one as long) that is made: it takes memory too, up to four bytes a character."""
        self.charge(len(text) // LETTERS_A_STEP * (1 if text.isascii() else 4))
        return text

    def walk(self, value: Any) -> int:
        """Charges for every item of a value, to the bottom, and checks its kind. The number of steps it took."""
        before = self.left
        pending = [value]
        while pending:
            item = pending.pop()
            kind = type(item)
            if kind is str:
                self.read(item)
            elif kind is dict:
                self.charge(1 + 2 * len(item))
                pending += item
                pending += item.values()
            elif kind in CONTAINERS:
                self.charge(1 + len(item))
                pending += item
            else:
                checked(item)
        return before - self.left

    def items(self, value: Any) -> Iterator[Any]:
        """The items of a value one by one, each charged and checked; of an object, its keys."""
        kind = type(value)
        if kind is Stream:
            return self._each(value.items)
        if kind in CONTAINERS or kind is str:
            return self._each(value)
        raise ExpressionType(f"{kind_of(value)} has no items to go through; a list is wanted")

    def ordered_items(self, value: Any) -> Iterator[Any]:
        """Like `items`, but not of a set: its order differs from one process to the next."""
        if type(value) is Set:
            raise ExpressionType("a set has no order", hint="use a list, or sorted(…)")
        return self.items(value)

    def _each(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.charge(1)
            yield checked(item)
