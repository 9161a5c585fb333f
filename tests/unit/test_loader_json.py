"""JSON files are read strictly: what JSON does not have, or what would be lost, is a problem with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsm_agent.errors import InvalidPlan, Problem, UsageError
from fsm_agent.plan.draft import draft_of_text
from fsm_agent.plan.json_reader import MAX_DEPTH
from fsm_agent.plan.loader import check_plan, load_plan
from fsm_agent.plan.source import MAX_BYTES

GOOD = '{"tasks": [{"id": "a", "skill": "s"}]}'


def problems(text: str) -> list[Problem]:
    return list(check_plan(draft_of_text(text, "json", "p.json")).problems)


def only(text: str) -> Problem:
    [problem] = problems(text)
    return problem


def test_a_syntax_error_has_the_line_and_column_of_the_file() -> None:
    problem = only('{"tasks": [\n  {"id": "a",}\n]}')
    assert (problem.rule, problem.file, problem.line) == ("bad_syntax", "p.json", 2)
    assert problem.column in (13, 14)  # Python 3.13 points at the comma, earlier ones at what comes after it


@pytest.mark.parametrize("text", ["", "  \n", "\ufeff"])
def test_an_empty_file_is_said_to_be_empty(text: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(text, encoding="utf-8")
    [problem] = check_plan(path).problems
    assert problem.rule == "bad_syntax"
    assert "empty" in problem.message


def test_a_duplicate_key_is_found_where_it_stands_the_second_time() -> None:
    problem = only('{"tasks": [\n {"id": "a",\n  "tool": "s",\n  "tool": "t"}\n]}')
    found = (problem.rule, problem.task, problem.field, problem.line, problem.column)
    assert found == ("duplicate_key", "a", "skill", 4, 3)


def test_duplicate_keys_do_not_hide_other_problems() -> None:
    text = '{"tasks": [{"id": "a", "skill": "s", "skill": "s", "timeout": "soon"}], "x": 1}'
    assert [p.rule for p in problems(text)] == ["bad_value", "duplicate_key", "unknown_key"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000])
def test_a_number_that_is_not_finite_is_a_bad_number_anywhere(number: str) -> None:
    problem = only('{"tasks": [{"id": "a", "skill": "s",\n "args": {"x": [1, ' + number + "]}}]}")
    assert (problem.rule, problem.task, problem.field, problem.line) == ("bad_number", "a", "parameters.x[1]", 2)


def test_a_bad_number_in_a_field_of_the_model_is_told_once() -> None:
    assert only('[{"id": "a", "skill": "s", "timeout": NaN}]').rule == "bad_number"


def test_half_a_character_is_refused() -> None:
    problem = only('[{"id": "a", "skill": "s", "args": {"x": "\\ud83d"}}]')
    assert (problem.rule, problem.field) == ("bad_value", "parameters.x")


def test_half_a_character_in_a_key_or_an_id_can_still_be_printed() -> None:
    found = problems('[{"id": "\\ud83d", "skill": "s", "dependencies": ["\\ud83d"]}, {"id": "b", "\\ud83d": 1}]')
    assert {problem.rule for problem in found} == {"bad_value"}
    assert str([problem.to_json() for problem in found]).encode()


def test_a_character_in_two_escapes_is_one_character() -> None:
    draft = draft_of_text('[{"id": "a", "skill": "s", "args": {"x": "\\ud83d\\ude00"}}]', "json")
    assert draft.findings == []
    assert draft.data["tasks"][0]["parameters"] == {"x": "😀"}


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 1_000_000])
def test_brackets_nested_too_deep_are_refused_with_their_place(depth: int) -> None:
    problem = only('{"tasks":\n' + "[" * depth + "]" * depth + "}")
    assert (problem.rule, problem.line, problem.column) == ("too_deep", 2, MAX_DEPTH)


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert check_plan(path).valid


def test_bad_bytes_are_a_problem_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_bytes('{"goal": "目标",\n "中": "'.encode() + b'\xff"}')
    [problem] = check_plan(path).problems
    assert (problem.rule, problem.line, problem.column) == ("bad_syntax", 2, 8)
    assert "UTF-8" in problem.message


def test_other_encodings_are_named(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(GOOD.encode("utf-16"))
    [problem] = check_plan(path).problems
    assert "UTF-16" in problem.message


def test_a_file_that_is_too_large_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    with path.open("wb") as file:
        file.truncate(100 * MAX_BYTES)
    [problem] = check_plan(path).problems
    assert problem.rule == "bad_syntax"
    assert "larger" in problem.message


def test_a_plan_with_too_many_values_is_refused_at_once() -> None:
    problem = only("[" + "1," * 1_000_000 + "1]")
    assert (problem.rule, problem.line) == ("bad_value", 1)


def test_a_thousand_misfits_are_told_one_by_one_and_the_rest_as_a_number() -> None:
    found = problems("[" + "1," * 4_999 + "1]")
    assert len(found) == 1_001
    assert any("about 4,000 more" in problem.message for problem in found)


def test_other_endings_are_read_as_json_if_they_can_be_and_else_as_yaml(tmp_path: Path) -> None:
    as_json, as_yaml = tmp_path / "a.plan", tmp_path / "b.plan"
    as_json.write_text(GOOD, encoding="utf-8")
    as_yaml.write_text("tasks:\n  - {id: 2.10, skill: s}\n", encoding="utf-8")
    assert check_plan(as_json).valid
    assert load_plan(as_yaml).tasks[0].id == "2.10"


def test_what_is_neither_gets_the_error_of_what_it_looks_like(tmp_path: Path) -> None:
    path = tmp_path / "a.plan"
    path.write_text('{"tasks": [}', encoding="utf-8")
    [problem] = check_plan(path).problems
    assert "JSON" in problem.message


@pytest.mark.parametrize("name", ["missing.json", "", "x\0y", "n" * 5000])
def test_a_file_that_cannot_be_read_is_wrong_usage(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        check_plan(str(tmp_path / name))


def test_a_text_given_for_a_path_is_told_apart() -> None:
    with pytest.raises(UsageError) as caught:
        check_plan(GOOD)
    assert "no path" in caught.value.hint


def test_an_invalid_plan_is_raised_with_every_problem() -> None:
    with pytest.raises(InvalidPlan) as caught:
        load_plan([{"id": "a", "timeout": "soon"}, {"id": "a", "skill": "s"}])
    assert {problem.rule for problem in caught.value.problems} == {"bad_value", "duplicate_id"}
