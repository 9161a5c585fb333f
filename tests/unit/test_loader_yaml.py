"""YAML is read as JSON with less punctuation: no guesses, no tags, no explosions."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.errors import Problem
from fsm_agent.plan.draft import draft_of_text
from fsm_agent.plan.loader import check_plan


def data_of(text: str) -> Any:
    draft = draft_of_text(text, "yaml", "p.yaml")
    assert draft.findings == []
    return draft.data


def value_of(scalar: str) -> Any:
    return data_of(f"tasks:\n  - id: a\n    args:\n      x: {scalar}\n")["tasks"][0]["parameters"]["x"]


def only(text: str) -> Problem:
    [problem] = check_plan(draft_of_text(text, "yaml", "p.yaml")).problems
    return problem


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("true", True), ("false", False), ("null", None), ("~", None), ("", None), ("12", 12), ("-3", -3), ("-0", 0),
        ("2.50", 2.5), ("1e3", 1000.0), ("1E-2", 0.01), ("'12'", "12"), ('"true"', "true"), ("|\n       x", "x\n"),
    ],
)  # fmt: skip
def test_plain_scalars_are_read_as_in_json(scalar: str, value: Any) -> None:
    read = value_of(scalar)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "no", "yes", "on", "off", "y", "True", "FALSE", "Null", "0123", "2020-01-01", "2020-01-01T10:00:00Z", "1_000",
        ".5", "5.", "0x1F", "0o17", "+1", "1:30:00", ".inf", ".nan", "NaN", "Infinity", "1e", "=", "٣",
    ],
)  # fmt: skip
def test_all_else_is_text(text: str) -> None:
    assert value_of(text) == text


@pytest.mark.parametrize("written", ["2.10", "1", "007", "1e3", "true", "no", "2020-01-01"])
def test_an_id_is_the_text_as_written_wherever_a_task_is_named(written: str) -> None:
    text = f"- id: {written}\n- {{id: b, needs: [{written}], soft_dependencies: [{written}], on_failure: {written}}}\n"
    first, second = data_of(text)["tasks"]
    assert first == {"id": written}
    assert second == {"id": "b", "dependencies": [written], "on_failure": written, "soft_dependencies": [written]}


def test_an_id_in_parameters_is_a_value_like_any_other() -> None:
    assert data_of("- id: a\n  args: {id: 2.10, dependencies: [1]}\n")["tasks"][0]["parameters"] == {
        "id": 2.1,
        "dependencies": [1],
    }


def test_a_version_keeps_its_digits() -> None:
    assert data_of("version: 2.10\ntasks: [{id: a}]\n")["version"] == "2.10"


def test_keys_are_always_text() -> None:
    assert data_of("context: {1: a, no: b, null: c}\ntasks: [{id: a}]\n")["context"] == {
        "1": "a",
        "no": "b",
        "null": "c",
    }


def test_an_alias_is_a_copy() -> None:
    first, second = data_of("- &one\n  id: a\n  args: {x: [1]}\n- *one\n")["tasks"]
    assert first == second
    assert first["parameters"]["x"] is not second["parameters"]["x"]


def test_aliases_inside_an_anchor_are_followed() -> None:
    parameters = data_of("- id: a\n  args: {p: &p [1], q: &q {r: *p}, s: *q}\n")["tasks"][0]["parameters"]
    assert parameters == {"p": [1], "q": {"r": [1]}, "s": {"r": [1]}}


def test_a_billion_laughs_are_refused() -> None:
    lines = ["a: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    problem = only("\n".join(lines))
    assert problem.rule == "unsafe_yaml"
    assert problem.line is not None


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("goal: &x [*x]", "unsafe_yaml"),
        ("goal: *nowhere", "unsafe_yaml"),
        ("goal: !!python/object/apply:os.system [id]", "unsafe_yaml"),
        ("goal: !!str 5", "unsafe_yaml"),
        ("goal: ! 5", "unsafe_yaml"),
        ("!!map {goal: x}", "unsafe_yaml"),
        ("!!str goal: x", "unsafe_yaml"),
        ("base: &b {x: 1}\ntasks: [{<<: *b}]", "unsafe_yaml"),
        ("&k goal: x", "unsafe_yaml"),
        ("? [a, b]\n: x", "bad_syntax"),
        ("goal: x\n---\ngoal: y", "bad_syntax"),
        ("goal: [x", "bad_syntax"),
        ("goal: x\n\ty: z", "bad_syntax"),
        ("goal: '\x07'", "bad_syntax"),
        ('goal: "\\ud800"', "bad_syntax"),
        ("", "bad_syntax"),
        ("# nothing\n", "bad_syntax"),
        ("[" * 5000, "too_deep"),
        ("- " * 5000, "too_deep"),
        ("- " * 101, "too_deep"),
        ("{a: " * 5000, "too_deep"),
    ],
)
def test_what_is_not_read_is_refused_with_a_line(text: str, rule: str) -> None:
    problem = only(text)
    assert (problem.rule, problem.file) == (rule, "p.yaml")
    assert problem.line is not None


def test_a_syntax_error_has_its_line_and_column() -> None:
    problem = only("goal: x\ntasks:\n  - id: a\n   skill: s\n")
    assert (problem.rule, problem.line, problem.column) == ("bad_syntax", 4, 4)


def test_a_character_that_yaml_does_not_allow_is_found_after_chinese_text() -> None:
    assert only("目标: 写报告\n二: 三\ngoal: '\x07'\n").line == 3


def test_a_duplicate_key_has_the_line_of_the_second() -> None:
    problem = only("tasks:\n  - id: a\n    tool: s\n    deps: []\n    tool: t\n")
    found = (problem.rule, problem.task, problem.field, problem.line, problem.column)
    assert found == ("duplicate_key", "a", "skill", 5, 5)


def test_a_number_out_of_range_is_a_bad_number() -> None:
    problem = only("- id: a\n  skill: s\n  args:\n    x: 1e999\n")
    assert (problem.rule, problem.field, problem.line) == ("bad_number", "parameters.x", 4)


def test_a_quoted_merge_sign_is_a_key_like_any_other() -> None:
    assert data_of("context: {'<<': 1}\ntasks: [{id: a}]\n")["context"] == {"<<": 1}


def test_the_same_plan_in_json_and_yaml_is_the_same_plan() -> None:
    as_json = (
        '{"goal": "g", "steps": [{"id": 1, "tool": "s", "needs": [], "timeout": 2.5, "args": {"x": [1, null, true]}}]}'
    )
    as_yaml = "goal: g\nsteps:\n- {id: 1, tool: s, needs: [], timeout: 2.5, args: {x: [1, ~, true]}}\n"
    assert draft_of_text(as_json, "json").plan == draft_of_text(as_yaml, "yaml").plan


@pytest.mark.parametrize("text", ["tasks:\n\t- id: a\n", "tasks:\n  - id: a\n\tskill: s\n"])
def test_a_tab_as_indentation_is_called_a_tab(text: str) -> None:
    problem = only(text)
    assert (problem.rule, problem.line) == ("bad_syntax", text[: text.index("\t")].count("\n") + 1)
    assert "a tab" in problem.message
