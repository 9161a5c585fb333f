"""Plain JSON data: what becomes what, what is refused, and where."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import re
import uuid
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from fsm_agent.errors import NotJson
from fsm_agent.jsonable import HUGE_BITS, MAX_DEPTH, copy_plain, encode, size_of, to_plain

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-(2**1000), 2**1000) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


class Plain(enum.Enum):
    RED = "red"


class Texts(str, enum.Enum):  # noqa: UP042 - its own `str()` is what is looked at
    RED = "red"


class Numbers(enum.IntEnum):
    ONE = 1


class Model(BaseModel):
    a: int = 1
    day: datetime.date = datetime.date(2026, 1, 2)


@dataclasses.dataclass
class Record:
    x: int
    parts: tuple[int, ...] = (1, 2)


class OddText(str):
    def __str__(self) -> str:
        return "something else"

    def __len__(self) -> int:
        raise ValueError("odd")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, 2), [1, 2]),
        ({"b", "a"}, ["a", "b"]),
        (frozenset(), []),
        (OrderedDict(a=1), {"a": 1}),
        (Plain.RED, "red"),
        (Texts.RED, "red"),
        ({Texts.RED: 1}, {"red": 1}),
        (Numbers.ONE, 1),
        (OddText("text"), "text"),
        (Model(), {"a": 1, "day": "2026-01-02"}),
        (Record(1), {"x": 1, "parts": [1, 2]}),
        (datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC), "2026-01-02T03:04:00Z"),
        (decimal.Decimal("1.50"), "1.50"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (b"text", "text"),
        (2**1000, 2**1000),
        ({"键": "值"}, {"键": "值"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_becomes_exactly_this(value: Any, plain: Any) -> None:
    got = to_plain(value)
    assert got == plain
    assert type(got) is type(plain)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (float("nan"), "$"),
        ([1, float("inf")], "$[1]"),
        ({"a": {"b": decimal.Decimal("NaN")}}, "$.a.b"),
        ({1: 2}, "$"),
        ({"a": object()}, "$.a"),
        (b"\xff", "$"),
        ("\ud800", "$"),
        (1 << HUGE_BITS, "$"),
        ([-(10**5000)], "$[0]"),
        (1j, "$"),
        (re.compile("x"), "$"),
        (lambda: 1, "$"),
        (iter([1]), "$"),
        (Record, "$"),
        (ValueError("x"), "$"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_without_a_json_form_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(NotJson) as refused:
        to_plain(value)
    assert refused.value.path == path
    assert refused.value.type_name in str(refused.value)


def test_a_cycle_is_refused() -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})
    with pytest.raises(NotJson, match="contains itself"):
        to_plain(loop)


def test_the_same_part_twice_is_no_cycle() -> None:
    part = [1]
    assert to_plain([part, part]) == [[1], [1]]


def test_data_that_is_nested_too_deep_is_refused() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(NotJson, match="deeper"):
        to_plain(deep)
    assert to_plain(deep[0]) == deep[0]


@given(JSON)
def test_plain_data_is_itself_and_shares_nothing(value: Any) -> None:
    for copied in (to_plain(value), copy_plain(value)):
        assert copied == value
        assert json.dumps(copied) == json.dumps(value)
        if isinstance(value, (list, dict)):
            assert copied is not value


@given(JSON)
def test_what_is_encoded_reads_back_and_has_its_size(value: Any) -> None:
    assert json.loads(encode(value)) == value
    assert size_of(value) == len(encode(value))
