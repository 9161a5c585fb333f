"""A problem has the line of what it is about, in whatever spelling that stands in the file."""

from __future__ import annotations

from typing import Literal

import pytest

from fsm_agent.plan.draft import draft_of_text
from fsm_agent.plan.loader import check_plan

YAML = """\
objective: g
completion_criteria:
  - prose
  - check: nothing > 1
steps:
  - tool: s
    step_id: a
    args_template:
      list:
        - 1
        - "${missing}"
    depends_on:
      - b
      - gone
  - name: b
    tool: s
    risk: huge
    fallback: 7
  - tool: s
    timeout: 1
    on_failure: nowhere
"""

JSON = """\
{"plan":
  {"objective": "g",
   "subtasks": [
    {"task_id": "a", "tool": "s",
     "params": {"x": "${missing}"},
     "needs": [
       "b",
       "gone"]},
    {"task_id": "b", "tool": "s", "{\\"": 1,
     "risk": "huge"}
  ]},
 "limits": {
   "max_parallel": 0}}
"""


def lines(text: str, kind: Literal["json", "yaml"]) -> dict[tuple[str, str | None], int | None]:
    found = check_plan(draft_of_text(text, kind, "f")).problems
    assert all(problem.file == "f" for problem in found)
    return {(problem.rule, problem.field): problem.line for problem in found}


def test_lines_of_yaml_are_those_of_keys_and_items() -> None:
    assert lines(YAML, "yaml") == {
        ("unknown_name", "completion_criteria[1].check"): 4,
        ("unknown_name", "parameters.list[1]"): 11,
        ("unknown_dependency", "dependencies[1]"): 14,
        ("bad_value", "risk_level"): 17,
        ("bad_value", "fallback"): 18,
        ("missing_field", "tasks[2].id"): 19,
        ("unknown_target", "tasks[2].on_failure"): 21,
    }


def test_lines_of_json_are_found_through_wrapper_and_spellings() -> None:
    assert lines(JSON, "json") == {
        ("unknown_name", "parameters.x"): 5,
        ("unknown_dependency", "dependencies[1]"): 8,
        ("unknown_key", '["{\\""]'): 9,
        ("bad_value", "risk_level"): 10,
        ("bad_value", "limits.max_parallel"): 13,
    }


def test_a_bare_list_has_lines_too() -> None:
    assert lines('[\n {"id": "a",\n  "skill": "s",\n  "timeout": "x"}]', "json") == {("bad_value", "timeout"): 4}


def test_what_is_not_there_has_the_line_of_what_it_is_missing_from() -> None:
    assert lines("goal: g\nname: n\n", "yaml") == {("missing_field", "tasks"): 1}
    assert lines("tasks:\n  - id: a\n", "yaml") == {}


def test_the_second_of_two_spellings_is_pointed_at() -> None:
    text = "- id: a\n  skill: s\n  needs: []\n  depends_on: []\n"
    assert lines(text, "yaml") == {("two_spellings", "dependencies"): 4}


def test_problems_come_in_the_order_of_the_file_and_then_of_the_rules() -> None:
    text = (
        "- id: a\n  skill: s\n  zzz: 1\n  priority: x\n- {id: a, skill: s, on_success: q, dependencies: [z], zz: 1}\n"
    )
    found = check_plan(draft_of_text(text, "yaml", "f")).problems
    assert [(problem.line, problem.rule) for problem in found] == [
        (3, "unknown_key"),
        (4, "bad_value"),
        (5, "duplicate_id"),
        (5, "unknown_dependency"),
        (5, "unknown_key"),
        (5, "unknown_target"),
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_of_either_kind_count_as_one(newline: str) -> None:
    text = newline.join(["tasks:", "  - id: a", "    skill: s", "    timeout: x", ""])
    assert lines(text, "yaml") == {("bad_value", "timeout"): 4}


def test_data_in_memory_has_no_lines() -> None:
    [problem] = check_plan([{"id": "a", "skill": "s", "timeout": "x"}]).problems
    assert (problem.file, problem.line) == (None, None)


def test_the_column_of_a_problem_in_an_expression_is_in_the_expression() -> None:
    [problem] = check_plan(draft_of_text("- id: a\n  skill: s\n  condition: 1 < nothing\n", "yaml", "f")).problems
    assert (problem.line, problem.column) == (3, 5)
