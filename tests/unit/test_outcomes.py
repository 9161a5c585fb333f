"""What a returned value means, and what kind of failure an error is."""

from __future__ import annotations

import email.utils
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from fsm_agent.errors import CallTimeout, NotJson, TooLarge, UndeclaredWrite
from fsm_agent.retry_after import MAX_RETRY_AFTER
from fsm_agent.skills.outcomes import (
    MAX_MESSAGE,
    MAX_RAW,
    Reported,
    Success,
    cut,
    describe,
    failure_of,
    interpret,
    reported,
    reported_failure,
    retry_after_of,
)

NOW = 1_700_000_000.0


class Found(BaseModel):
    when: date
    tags: set[str]


@dataclass
class Verdict:
    success: bool
    error: str


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        (3, 3),
        ("x", "x"),
        ([1, (2, 3)], [1, [2, 3]]),
        ({"cost": 3}, {"cost": 3}),
        ({"data": 1}, {"data": 1}),
        ({"success": True}, None),
        ({"success": True, "data": {"a": 1}}, {"a": 1}),
        ({"success": True, "data": 1, "message": "fine", "error": None}, 1),
        ({"success": True, "cost": 3}, {"success": True, "cost": 3}),
        ({"success": 12, "of": 20}, {"success": 12, "of": 20}),
        (Found(when=date(2024, 2, 29), tags={"b", "a"}), {"when": "2024-02-29", "tags": ["a", "b"]}),
    ],
)
def test_what_counts_as_the_data(value: Any, data: Any) -> None:
    assert interpret(value, 1000) == Success(data)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"success": False, "error": "no seats"}, Reported("no seats")),
        ({"success": False, "message": "no seats"}, Reported("no seats")),
        ({"success": False, "error": {"message": "no seats", "type": "SoldOut"}}, Reported("no seats", "SoldOut")),
        ({"success": False, "error": "", "message": "later"}, Reported("later")),
        ({"success": False, "cost": 3, "error": "no"}, Reported("no")),
        ({"success": False}, Reported("the skill reported a failure without a message")),
        (Verdict(success=False, error="no seats"), Reported("no seats")),
    ],
)
def test_success_false_is_a_failure_that_the_skill_reports(value: Any, expected: Reported) -> None:
    assert interpret(value, 1000) == expected


@pytest.mark.parametrize("success", [0, 1, "false", None, []])
def test_an_outcome_whose_success_is_neither_true_nor_false_never_passes_for_a_success(success: Any) -> None:
    found = interpret({"success": success, "data": 1}, 1000)
    assert isinstance(found, Reported)
    assert "must be true or false" in found.message


def test_a_value_that_is_no_dict_reports_nothing() -> None:
    assert reported(["success", False]) is None


@pytest.mark.parametrize("value", [float("nan"), b"\xff", {1: 2}, object(), lambda: 0, iter([])])
def test_what_is_no_plain_data_is_refused(value: Any) -> None:
    with pytest.raises(NotJson):
        interpret({"a": [value]} if not isinstance(value, dict) else value, 1000)


def test_a_returned_coroutine_is_refused_and_closed() -> None:
    async def forgotten() -> None: ...

    with pytest.raises(NotJson):  # and no warning follows that it was never awaited
        interpret(forgotten(), 1000)


def test_data_over_the_limit_is_refused_with_the_hint_to_write_a_file() -> None:
    assert interpret("x" * 98, 100) == Success("x" * 98)
    with pytest.raises(TooLarge, match="101 bytes, at most 100") as refused:
        interpret("x" * 99, 100)
    assert "file" in refused.value.hint


def test_data_is_a_copy() -> None:
    rows = [{"a": 1}]
    found = interpret(rows, 1000)
    rows[0]["a"] = 2
    assert found == Success([{"a": 1}])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CallTimeout(1.0, 1.0), "timeout"),
        (NotJson("$", "set", "…"), "not_json"),
        (TooLarge("it", 2, 1, ""), "too_large"),
        (UndeclaredWrite("k", ()), "undeclared_write"),
        (ValueError("x"), "exception"),
        (SystemExit(2), "exception"),
    ],
)
def test_each_error_has_its_kind(error: BaseException, kind: str) -> None:
    assert failure_of(error, 1, NOW).kind == kind


def test_an_exception_is_known_by_its_class_and_its_bases() -> None:
    found = failure_of(ConnectionRefusedError("no"), 2, NOW)
    assert (found.type, found.message, found.attempt) == ("ConnectionRefusedError", "no", 2)
    assert found.classes == ("ConnectionRefusedError", "ConnectionError", "OSError", "Exception")


def test_an_error_without_words_is_described_by_its_class() -> None:
    assert failure_of(KeyError(), 1, NOW).message == "KeyError"


def test_an_error_that_cannot_be_shown_is_described_by_its_class() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert failure_of(Broken(), 1, NOW).message == "Broken"


class BrokenText(str):
    """A text whose own code fails."""

    def __len__(self) -> int:
        raise SystemExit

    __getitem__ = __str__ = __iter__ = __bool__ = encode = strip = __len__  # type: ignore[assignment]


class LyingMeta(type):
    """A metaclass that fails when its classes are asked for anything."""

    def __getattribute__(cls, name: str) -> Any:
        raise SystemExit(name)

    def __instancecheck__(cls, instance: Any) -> bool:
        raise SystemExit


def hostile(fault: BaseException) -> type[Exception]:
    """An error class that raises whatever it is asked."""

    def fail(*_: Any) -> Any:
        raise fault

    names = ("__str__", "__repr__", "__getattribute__", "__eq__", "__bool__", "__hash__")
    return LyingMeta("Hostile", (Exception,), dict.fromkeys(names, fail))


@pytest.mark.parametrize("fault", [SystemExit(), KeyboardInterrupt(), GeneratorExit(), RecursionError(), MemoryError()])
def test_an_error_that_fails_whatever_it_is_asked_is_still_a_failure(fault: BaseException) -> None:
    error = hostile(fault)()
    found = failure_of(error, 1, NOW)
    assert (found.kind, found.type, found.message, found.retry_after) == ("exception", "Hostile", "Hostile", None)
    assert found.classes == ("Hostile", "Exception")
    assert describe(error) == "Hostile"
    assert retry_after_of(error, NOW) is None


def test_an_error_whose_text_is_of_a_broken_class_is_described_by_that_text() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            return BrokenText("no seats")

    found = failure_of(Odd(), 1, NOW).message
    assert (type(found), found) == (str, "no seats")
    assert type(describe(Odd())) is str


def test_a_reported_text_of_a_broken_class_is_a_plain_text_afterwards() -> None:
    found = reported({"success": False, "error": {"message": BrokenText("no seats"), "type": BrokenText("SoldOut")}})
    assert found is not None
    assert (type(found.message), found.message, type(found.type), found.type) == (str, "no seats", str, "SoldOut")


@pytest.mark.parametrize("method", ["__float__", "__str__", "__lt__", "__ne__"])
@pytest.mark.parametrize("base", [float, int, str])
def test_a_wait_of_a_broken_class_is_no_wait_or_its_value(base: type, method: str) -> None:
    def fail(*_: Any) -> Any:
        raise KeyboardInterrupt

    wish = type("Wish", (base,), {method: fail})("3")
    assert retry_after_of(Busy(wish), NOW) in (None, 3.0)


def test_messages_are_carried_uncut_so_that_secrets_can_be_taken_out_first() -> None:
    secret = "hunter2-" * 10
    text = "x" * (MAX_MESSAGE - 20) + secret
    for message in (
        failure_of(ValueError(text), 1, NOW).message,
        reported_failure(Reported(text), 1).message,
        getattr(interpret({"success": False, "error": text}, 10_000), "message", ""),
    ):
        assert message == text
        assert cut(message.replace(secret, "***")) == "x" * (MAX_MESSAGE - 20) + "***"


@pytest.mark.parametrize(("shown", "most"), [(describe, MAX_MESSAGE), (lambda error: describe(error, 10), 10)])
def test_a_described_error_is_cut(shown: Callable[[BaseException], str], most: int) -> None:
    assert shown(ValueError("x" * 10_000)) == "x" * (most - 1) + "…"
    assert shown(ValueError("x" * most)) == "x" * most


def test_an_endless_message_is_not_carried_as_a_whole() -> None:
    text = "x" * 1_000_000
    assert len(failure_of(ValueError(text), 1, NOW).message) == MAX_RAW
    assert len(getattr(interpret({"success": False, "error": text}, 10**7), "message", "")) == MAX_RAW


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert cut("a\ud800b") == "a?b"


class Busy(Exception):
    def __init__(self, retry_after: Any) -> None:
        self.retry_after = retry_after


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (3, 3.0),
        (0.5, 0.5),
        ("7", 7.0),
        (-1, 0.0),
        (10**400, MAX_RETRY_AFTER),
        (1e12, MAX_RETRY_AFTER),
        (float("nan"), None),
        (True, None),
        ("soon", None),
        (object(), None),
        (email.utils.formatdate(NOW + 90, usegmt=True), 90.0),
        (email.utils.formatdate(NOW - 90, usegmt=True), 0.0),
    ],
)
def test_the_wait_that_an_error_asks_for(wish: Any, expected: float | None) -> None:
    assert retry_after_of(Busy(wish), NOW) == expected


def test_the_retry_after_header_of_a_response_is_read() -> None:
    request = httpx.Request("GET", "http://a.example")
    error = httpx.HTTPStatusError("…", request=request, response=httpx.Response(503, headers={"Retry-After": "11"}))
    assert retry_after_of(error, NOW) == 11.0
    assert failure_of(error, 1, NOW).retry_after == 11.0


def test_an_error_with_strange_attributes_asks_for_nothing() -> None:
    class Strange(Exception):
        response = SimpleNamespace(headers=None)

    assert retry_after_of(Strange(), NOW) is None
