"""`eval`: values, and errors that are never false."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.project import Call, Project


@pytest.mark.parametrize(
    ("expression", "value"),
    [("1 + 1", 2), ("context.n > 2", True), ("context.get('x')", None), ("[n for n in context.l]", [1, "ü"])],
)
def test_a_value_is_told_as_json(call: Call, expression: str, value: Any) -> None:
    names = json.dumps({"context": {"n": 3, "l": [1, "ü"]}})
    ended = call("eval", expression, "--names", names, "--json")
    assert (ended.code, ended.document) == (0, {"format": 1, "value": value})
    assert json.loads(call("eval", expression, "--names", names).out) == value


def test_names_may_come_from_a_file(call: Call, project: Project) -> None:
    project.plan("names.json", '{"budget": 5}')
    project.plan("names.yaml", "budget: 6\n")
    assert call("eval", "budget * 2", "--names", "names.json").out == "10\n"
    assert call("eval", "budget * 2", "--names", "names.yaml").out == "12\n"


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("1 +", "syntax"),
        ("lambda: 1", "forbidden"),
        ("+".join(["1"] * 200), "too_complex"),
        ("budgt > 1", "unknown_name"),
        ("context.m", "unknown_field"),
        ("None > 1", "type"),
        ("sum([1 for a in context.l for b in context.l])", "forbidden"),
        ("sum([sum(context.l) for a in context.l])", "budget"),
        ("1 / 0", "value"),
    ],
)
def test_an_error_has_its_code_and_exits_2(call: Call, expression: str, code: str) -> None:
    names = json.dumps({"context": {"l": [1] * 1000}, "budget": 1})
    ended = call("eval", expression, "--names", names, "--json")
    assert ended.code == 2
    assert list(ended.document) == ["format", "error"]
    assert list(ended.document["error"]) == ["code", "message", "column", "name", "suggestions"]
    assert ended.document["error"]["code"] == code


def test_an_unknown_name_is_pointed_at(call: Call) -> None:
    ended = call("eval", "'预算' == budgt", "--names", '{"budget": 1}', "--json")
    error = ended.document["error"]
    assert (error["column"], error["name"], error["suggestions"]) == (9, "budgt", ["budget"])
    lines = call("eval", "'预算' == budgt", "--names", '{"budget": 1}').err.splitlines()
    assert lines[1:] == ["  '预算' == budgt", "            ^"]
    assert "did you mean 'budget'?" in lines[0]


@pytest.mark.parametrize("expression", ["-1 + 3", "--1 + 1", "- o + 3"])
def test_an_expression_may_begin_with_a_minus(call: Call, expression: str) -> None:
    assert call("eval", expression, "--json", "--names", '{"o": 1}').document["value"] == 2


@pytest.mark.parametrize("names", ['{"a": 1', '{"a": NaN}', '{"a": 1, "a": 2}', "[1]", "nowhere.json"])
def test_names_that_cannot_be_read_are_bad_usage(call: Call, names: str) -> None:
    ended = call("eval", "1", "--names", names, "--json")
    assert (ended.code, ended.document["error"]["code"]) == (2, "usage")


@pytest.mark.parametrize("names", ["[1]", '"text"', "5", '["a", {"b": 1}]'])
def test_names_that_are_no_object_are_told_what_they_must_be(call: Call, names: str) -> None:
    assert "--names must be a JSON object" in call("eval", "a", "--names", names).err


def test_a_value_cannot_command_the_terminal(call: Call) -> None:
    names = '{"context": {"a": "\\u001b[2J\\u009b\\u202e"}}'
    for options in ((), ("--json",)):
        assert not {"\x1b", "\x9b", "\u202e"} & set(call("eval", "context.a", "--names", names, *options).out)
