"""The functions and methods of the language. A name that is not in these tables cannot be called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fsm_agent.errors import ExpressionBudget, ExpressionType, ExpressionValue
from fsm_agent.plan.expression_operators import search_list, search_steps
from fsm_agent.plan.expression_values import (
    CONTAINERS,
    NUMBERS,
    Meter,
    Set,
    Stream,
    Tuple,
    checked,
    kind_of,
    number,
)

MAX_DIGITS = 15
MAX_NUMERAL = 400
MAX_PIECES = 10_000


@dataclass(frozen=True, slots=True)
class Callee:
    """What is called, after the meter (and, for a method, its receiver), with so many arguments."""

    call: Callable[..., Any]
    least: int
    most: int
    options: frozenset[str] = frozenset()


def _length(_: Meter, value: Any) -> int:
    if type(value) is str or type(value) in CONTAINERS:
        return len(value)
    raise ExpressionType(f"{kind_of(value)} has no length")


def _sum(meter: Meter, items: Any, start: Any = 0) -> Any:
    found = list(meter.items(items))
    if not {type(start), *map(type, found)} <= NUMBERS:
        raise ExpressionType("sum adds numbers only")
    return number(sum(found, start))


def _extreme(pick: Callable[[Iterable[Any]], Any]) -> Callable[..., Any]:
    def extreme(meter: Meter, *values: Any, **options: Any) -> Any:
        if len(values) > 1 and options:
            raise ExpressionType("default= goes with one list, not with several values")
        found = list(values) if len(values) > 1 else list(meter.items(values[0]))
        if found:
            _check_comparable(meter, found)
            return pick(found)
        if options:
            return options["default"]
        raise ExpressionValue("min and max need at least one item", hint="give default=…")

    return extreme


def _sorted(meter: Meter, items: Any, *, reverse: Any = False) -> list[Any]:
    found = list(meter.items(items))
    _check_comparable(meter, found)
    return sorted(found, reverse=bool(reverse))


def _check_comparable(meter: Meter, items: list[Any]) -> None:
    """All are numbers or all are text; pays for putting them in order."""
    kinds = set(map(type, items))
    if kinds == {str}:
        meter.charge(len(items) + sum(map(len, items)) * len(items).bit_length() // 128)
    elif kinds <= NUMBERS:
        meter.charge(len(items))
    else:
        odd = next((item for item in items if type(item) not in NUMBERS and type(item) is not str), None)
        what = f"not {kind_of(odd)}" if not kinds <= NUMBERS | {str} else "not both"
        raise ExpressionType(f"only numbers, or only texts, can be put in order, {what}")


def _any(meter: Meter, items: Any) -> bool:
    return any(meter.items(items))


def _all(meter: Meter, items: Any) -> bool:
    return all(meter.items(items))


def _round(meter: Meter, value: Any, digits: Any = None) -> Any:
    if type(value) not in NUMBERS:
        raise ExpressionType(f"round takes a number, not {kind_of(value)}")
    if digits is None:
        return number(round(value))
    if type(digits) is not int:
        raise ExpressionType(f"the digits of round are a whole number, not {kind_of(digits)}")
    if not -MAX_DIGITS <= digits <= MAX_DIGITS:
        raise ExpressionValue(f"round takes -{MAX_DIGITS} to {MAX_DIGITS} digits")
    meter.charge(10)  # Python goes through decimal text: many times slower than other arithmetic
    return number(round(value, digits))


def _abs(_: Meter, value: Any) -> Any:
    if type(value) in NUMBERS:
        return abs(value)
    raise ExpressionType(f"abs takes a number, not {kind_of(value)}")


def _numeral(make: type[int] | type[float]) -> Callable[..., Any]:
    def convert(_: Meter, value: Any) -> Any:
        if type(value) in NUMBERS:
            return number(make(value))
        if type(value) is not str:
            raise ExpressionType(f"{make.__name__} takes a number or text, not {kind_of(value)}")
        if len(value) > MAX_NUMERAL:
            raise ExpressionValue("the text is too long to be a number")
        try:
            return number(make(value))
        except ValueError:
            raise ExpressionValue("the text is no number") from None

    return convert


def _text(meter: Meter, value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) in (Set, Stream):
        raise ExpressionType(f"{kind_of(value)} has no text of its own", hint="make a list of it")
    meter.charge(8 * meter.walk(value))  # its text is longer than what it holds: quotes, escapes, digits
    return meter.made(str(value))


def _bool(_: Meter, value: Any) -> bool:
    return bool(value)


def _list(meter: Meter, items: Any = "") -> list[Any]:
    return list(meter.ordered_items(items))


def _get(_: Meter, data: dict[Any, Any], key: Any, default: Any = None) -> Any:
    return checked(data.get(key, default))


def _keys(meter: Meter, data: dict[Any, Any]) -> list[Any]:
    meter.charge(len(data))
    return list(data)


def _values(meter: Meter, data: dict[Any, Any]) -> list[Any]:
    meter.charge(len(data))
    return list(data.values())


def _items(meter: Meter, data: dict[Any, Any]) -> list[Any]:
    meter.charge(3 * len(data))
    return [[key, value] for key, value in data.items()]


def _changed(change: Callable[[str], str]) -> Callable[[Meter, str], str]:
    return lambda meter, text: change(meter.made(text))


def _judged(judge: Callable[[str], bool]) -> Callable[[Meter, str], bool]:
    def judged(meter: Meter, text: str) -> bool:
        meter.read(text)
        return judge(text)

    return judged


def _stripped(strip: Callable[[str, str | None], str]) -> Callable[..., str]:
    def stripped(meter: Meter, text: str, letters: Any = None) -> str:
        _want_text("the letters to strip", letters, letters is None)
        meter.made(text)
        meter.charge(len(text) * len(letters or "") // 2_048)
        return strip(text, letters)

    return stripped


def _edge(test: Callable[..., bool]) -> Callable[..., bool]:
    def edge(meter: Meter, text: str, part: Any, *span: Any) -> bool:
        if type(part) is not Tuple:
            part = Tuple((part,))
        for one in part:
            _want_text("the beginning or end to look for", one)
            meter.read(one)
        return test(text, part, *span)

    return edge


def _search(search: Callable[..., int]) -> Callable[..., int]:
    def found(meter: Meter, text: str, part: Any, *span: Any) -> int:
        _want_text("the part to look for", part)
        meter.charge(search_steps(text, part))
        return search(text, part, *span)

    return found


def _split(meter: Meter, text: str, separator: Any = None, most: Any = -1) -> list[str]:
    _want_text("the separator", separator, separator is None)
    meter.charge(search_steps(text, separator or " "))
    meter.made(text)
    pieces = text.split(separator, most if type(most) is int and 0 <= most < MAX_PIECES else MAX_PIECES)
    meter.charge(len(pieces))
    if type(most) not in (int, bool):
        raise ExpressionType(f"split takes a whole number of cuts, not {kind_of(most)}")
    if len(pieces) > MAX_PIECES:
        raise ExpressionBudget(f"split makes more than {MAX_PIECES:,} pieces")
    return pieces


def _want_text(what: str, value: Any, optional: bool = False) -> None:
    if type(value) is not str and not optional:
        raise ExpressionType(f"{what} must be text, not {kind_of(value)}")


def _count(meter: Meter, items: list[Any], item: Any) -> int:
    search_list(meter, item, items)
    return items.count(item)


def _index(meter: Meter, items: list[Any], item: Any, *span: Any) -> int:
    search_list(meter, item, items)
    try:
        return items.index(item, *span)
    except ValueError:
        raise ExpressionValue("the list has no such item", hint="test with 'in' first") from None


FUNCTIONS: Mapping[str, Callee] = {
    "len": Callee(_length, 1, 1),
    "min": Callee(_extreme(min), 1, 150, frozenset({"default"})),
    "max": Callee(_extreme(max), 1, 150, frozenset({"default"})),
    "sum": Callee(_sum, 1, 2),
    "any": Callee(_any, 1, 1),
    "all": Callee(_all, 1, 1),
    "round": Callee(_round, 1, 2),
    "abs": Callee(_abs, 1, 1),
    "int": Callee(_numeral(int), 1, 1),
    "float": Callee(_numeral(float), 1, 1),
    "str": Callee(_text, 1, 1),
    "bool": Callee(_bool, 1, 1),
    "sorted": Callee(_sorted, 1, 1, frozenset({"reverse"})),
    "list": Callee(_list, 0, 1),
}

METHODS: Mapping[type, Mapping[str, Callee]] = {
    dict: {
        "get": Callee(_get, 1, 2),
        "keys": Callee(_keys, 0, 0),
        "values": Callee(_values, 0, 0),
        "items": Callee(_items, 0, 0),
    },
    str: {
        "lower": Callee(_changed(str.lower), 0, 0),
        "upper": Callee(_changed(str.upper), 0, 0),
        "title": Callee(_changed(str.title), 0, 0),
        "strip": Callee(_stripped(str.strip), 0, 1),
        "lstrip": Callee(_stripped(str.lstrip), 0, 1),
        "rstrip": Callee(_stripped(str.rstrip), 0, 1),
        "startswith": Callee(_edge(str.startswith), 1, 3),
        "endswith": Callee(_edge(str.endswith), 1, 3),
        "split": Callee(_split, 0, 2),
        "count": Callee(_search(str.count), 1, 3),
        "find": Callee(_search(str.find), 1, 3),
        "isdigit": Callee(_judged(str.isdigit), 0, 0),
        "isalpha": Callee(_judged(str.isalpha), 0, 0),
        "isalnum": Callee(_judged(str.isalnum), 0, 0),
    },
    list: {"count": Callee(_count, 1, 1), "index": Callee(_index, 1, 3)},
}

METHOD_NAMES: Mapping[str, tuple[int, int]] = {
    name: (
        min(methods[name].least for methods in METHODS.values() if name in methods),
        max(methods[name].most for methods in METHODS.values() if name in methods),
    )
    for methods in METHODS.values()
    for name in methods
}
"""Every method, with the fewest and the most arguments that it takes of any receiver."""
