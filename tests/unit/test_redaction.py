"""Secrets out of whatever is shown."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.redaction import MASK, Redactor, is_secret_name

PLAIN = Redactor()

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def test_a_known_secret_is_masked_wherever_it_stands() -> None:
    redactor = Redactor(["hunter2"])
    value = {"a": ["hunter2", {"deep": "xhunter2y"}], "hunter2": 1, "b": ("is hunter2",)}
    assert redactor.value(value) == {"a": [MASK, {"deep": "x***y"}], MASK: 1, "b": ("is ***",)}


def test_the_parts_of_a_structured_secret_are_secrets_and_flags_are_not() -> None:
    redactor = Redactor([{"user": "ann", "codes": [4711, 2.5], "on": True, "none": None, "empty": ""}])
    assert redactor.value(["ann", 4711, 2.5, "code 4711", True, None, ""]) == [
        MASK,
        MASK,
        MASK,
        "code ***",
        True,
        None,
        "",
    ]


@pytest.mark.parametrize("write", [json.dumps, repr, quote_plus, lambda s: json.dumps(s, ensure_ascii=False)])
def test_a_secret_is_found_in_the_ways_it_may_be_written(write: Any) -> None:
    secret = 'p"a\\s\n中&文'
    assert "s" not in Redactor([secret]).text(write(secret)).replace(MASK, "")


def test_the_longer_of_two_secrets_goes_first() -> None:
    assert Redactor(["abcd", "abcdef"]).text("abcdef abcd") == "*** ***"


def test_a_short_secret_is_masked_only_where_it_is_the_whole_value() -> None:
    redactor = Redactor([3, "abc"])
    assert redactor.value({"pin": 3, "visits": 13, "text": "3 of 13, abc", "word": "abc"}) == {
        "pin": "***",
        "visits": 13,
        "text": "3 of 13, abc",
        "word": "***",
    }


def test_without_names_only_what_is_known_is_masked() -> None:
    assert Redactor(["hunter2"], names=False).value({"token": "x", "a": "hunter2"}) == {"token": "x", "a": "***"}


@pytest.mark.parametrize(
    "name",
    [
        "password", "PASSWORD", "db_password", "dbPassword", "passwd", "user-passwd", "passphrase", "secret",
        "client_secret", "clientSecret", "token", "access_token", "accessToken", "refresh-token", "api_key", "apikey",
        "apiKey", "X-Api-Key", "API-KEY", "authorization", "Proxy-Authorization", "cookie", "Set-Cookie", "cookies",
        "private_key", "privateKey", "access_key", "AWS_SECRET_ACCESS_KEY", "session", "session_id", "sessionId",
        "credentials", "pwd",
    ],
)  # fmt: skip
def test_what_a_well_known_name_holds_is_masked(name: str) -> None:
    assert is_secret_name(name)
    assert PLAIN.value({"a": [{name: "x y"}]}) == {"a": [{name: MASK}]}
    assert PLAIN.value({name: {"any": ["thing"]}}) == {name: MASK}
    assert PLAIN.value({name: 12345}) == {name: MASK}


@pytest.mark.parametrize(
    "name",
    ["tokens", "max_tokens", "key", "keyboard", "secrets", "secretary", "passenger", "sessions", "monkey", "auth_url"],
)
def test_a_name_that_only_looks_like_one_is_left_alone(name: str) -> None:
    assert PLAIN.value({name: "x"}) == {name: "x"}


def test_a_flag_named_secret_is_no_secret() -> None:
    value = {"secret": True, "token": None, "password": ""}
    assert PLAIN.value(value) is value


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("password=abc def", "password=*** def"),
        ("DB_PASSWORD = 'a b'", "DB_PASSWORD = '***'"),
        ("api-key: abc, x: 1", "api-key: ***, x: 1"),
        ("apiKey=abc&x=1", "apiKey=***&x=1"),
        ('{"clientSecret": "a b", "x": 1}', '{"clientSecret": "***", "x": 1}'),
        (r'{"t": "{\"secret\": \"a\"}"}', r'{"t": "{\"secret\": \"***\"}"}'),
        ("Authorization: Bearer a.b.c", "Authorization: ***"),
        ("Cookie: a=b; c=d\nHost: x", "Cookie: ***\nHost: x"),
        ("{'Set-Cookie': 'a=b; c', 'y': 2}", "{'Set-Cookie': '***', 'y': 2}"),
        ("sent Bearer abc.def-1 to it", "sent Bearer *** to it"),
        ("Basic dXNlcjpwYXNz", "Basic ***"),
        ("session=abc; sessionid=1", "session=***; sessionid=***"),
        ("https://ann:pw@host/x", "https://ann:***@host/x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END", "-----BEGIN RSA PRIVATE KEY-----***-----END"),
    ],
)  # fmt: skip
def test_secrets_in_text_are_masked(text: str, redacted: str) -> None:
    assert PLAIN.text(text) == redacted


@pytest.mark.parametrize(
    "text",
    ["tokens: 12, max_tokens=5", "the secret is out", "basic understanding", "key: value", "a session: three rooms",
     "https://host:8080/x", "password", "中文: 密码", ""],
)  # fmt: skip
def test_other_text_is_left_alone(text: str) -> None:
    assert PLAIN.text(text) is text


def test_what_holds_no_secret_is_given_back_as_it_is() -> None:
    value = {"a": [1, {"b": ("c", None)}], "d": 1.5}
    assert Redactor(["x1", 7]).value(value) is value


@given(json_values, st.lists(st.text(min_size=1, max_size=6), max_size=3))
def test_nothing_given_is_ever_changed_and_twice_is_once(value: Any, secrets: list[str]) -> None:
    before = json.dumps(value)
    redactor = Redactor(secrets)
    once = redactor.value(value)
    assert json.dumps(value) == before
    if not any(set(secret) & set('*\\"') for secret in secrets):
        assert redactor.value(once) == once


@given(st.text(max_size=30), st.text(min_size=4, max_size=8).filter(lambda s: "*" not in s), st.text(max_size=30))
def test_no_known_secret_is_left_in_any_text(before: str, secret: str, after: str) -> None:
    assert secret not in Redactor([secret]).text(before + secret + after)


@given(st.text(max_size=200))
def test_any_text_gives_a_text(text: str) -> None:
    assert isinstance(PLAIN.text(text + " token=" + text), str)


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Polite:
    def __repr__(self) -> str:
        return "Polite(password='x')"


def test_it_is_total() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    deep: Any = "end"
    for _ in range(2000):
        deep = [deep]
    assert PLAIN.value(loop) == [1, MASK]
    assert MASK in str(PLAIN.value(deep))
    assert PLAIN.value(Rude()) == "<Rude>"
    assert PLAIN.value({"a": Polite()}) == {"a": "Polite(password='***')"}
    assert PLAIN.value({1: b"token=x", 2: {"s"}}) == {1: "b'token=***'", 2: {"s"}}
    assert PLAIN.text("\ud800 token=\ud800x") == "\ud800 token=***"


@pytest.mark.timing
@pytest.mark.parametrize(
    "text",
    ["token" * 200_000, "token=\\" * 140_000, 'token="' * 140_000, "a://" * 250_000, "-----BEGIN " * 90_000 + "key",
     "secret" + "." * 1_000_000, "bearer" + " " * 1_000_000, "token" + "\\" * 1_000_000, "cookie" * 160_000],
)  # fmt: skip
def test_a_megabyte_made_to_be_slow_is_not(text: str) -> None:
    began = time.perf_counter()
    PLAIN.text(text)
    assert time.perf_counter() - began < 5 * 1.0


@pytest.mark.timing
def test_a_megabyte_with_nothing_in_it_is_fast() -> None:
    text = "word " * 200_000
    redactor = Redactor(["hunter2", "correct horse"])
    began = time.perf_counter()
    assert redactor.text(text) is text
    assert time.perf_counter() - began < 5 * 0.05
