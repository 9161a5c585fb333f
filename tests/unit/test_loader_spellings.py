"""Every spelling of a plan comes to one normal form, which holds only what was given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fsm_agent.plan.loader import check_plan, read_plan
from fsm_agent.plan.model import Plan
from fsm_agent.plan.spellings import PLAN_SPELLINGS, TASK_SPELLINGS

SPELLINGS = Path(__file__).parent.parent / "data" / "spellings"
FILES = sorted(SPELLINGS.glob("*.json"))


def task(**fields: Any) -> dict[str, Any]:
    """The normal form of a plan's only task."""
    draft = read_plan({"tasks": [fields]})
    assert draft.findings == []
    return dict(draft.data["tasks"][0])


def rules(source: Any) -> list[str]:
    return [problem.rule for problem in check_plan(source).problems]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_spelling_that_people_use_is_a_valid_plan(path: Path) -> None:
    checked = check_plan(path)
    assert checked.valid
    assert checked.problems == ()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_normal_form_comes_to_itself(path: Path) -> None:
    draft = read_plan(path)
    assert draft.plan is not None
    assert draft.plan.to_json() == draft.data
    assert read_plan(draft.data).data == draft.data


def test_branches_keep_their_edges_and_conditions() -> None:
    data = read_plan(SPELLINGS / "branches_skill_name.json").data
    assert data["tasks"][0] == {
        "id": "task_1",
        "description": "预订北京到上海的机票",
        "skill": "book_flight",
        "parameters": {"from_city": "北京", "to_city": "上海"},
        "dependencies": [],
        "on_success": "task_2",
        "on_failure": "task_fail_1",
    }


def test_numbered_tasks_get_textual_ids_and_lose_their_status() -> None:
    data = read_plan(SPELLINGS / "numbered_with_checks.json").data
    assert list(data) == ["tasks"]
    assert data["tasks"][2] == {
        "id": "3",
        "name": "Is the cleaned data as expected?",
        "type": "condition",
        "dependencies": ["2"],
        "verification": "results['2'].data['rows'] > 0",
    }


def test_prose_criteria_stay_strings() -> None:
    data = read_plan(SPELLINGS / "steps_with_risk.json").data
    assert data["completion_criteria"][2] == "The report was written"
    assert data["tasks"][3]["name"] == "Find the causes"
    assert "skill" not in data["tasks"][3]


@pytest.mark.parametrize(("key", "spelling"), [(k, s) for k, all_of in TASK_SPELLINGS.items() for s in all_of])
def test_each_spelling_of_a_task_key_is_understood(key: str, spelling: str) -> None:
    values: dict[str, Any] = {"parameters": {"a": 1}, "dependencies": ["x"], "risk_level": "high"}
    value = values.get(key, "x")
    given = {"id": "a", spelling: value} if key != "id" else {spelling: value}
    assert task(**given)[key] == value


@pytest.mark.parametrize(("key", "spelling"), [(k, s) for k, all_of in PLAN_SPELLINGS.items() for s in all_of])
def test_each_spelling_of_a_plan_key_is_understood(key: str, spelling: str) -> None:
    value: Any = [{"id": "a"}] if key == "tasks" else "x"
    assert (
        read_plan({"tasks": [{"id": "a"}], spelling: value} if key != "tasks" else {spelling: value}).data[key] == value
    )


def test_a_bare_list_holds_the_tasks() -> None:
    assert read_plan([{"id": "a", "skill": "s"}]).data == {"tasks": [{"id": "a", "skill": "s"}]}


def test_a_wrapper_is_taken_off_and_keys_beside_it_are_kept() -> None:
    source = {"goal": "g", "plan": {"name": "n", "plan": [{"id": "a"}]}}
    assert read_plan(source).data == {"goal": "g", "name": "n", "tasks": [{"id": "a"}]}


def test_the_same_key_inside_and_outside_the_wrapper_is_given_twice() -> None:
    assert "two_spellings" in rules({"goal": "g", "plan": {"objective": "h", "tasks": [{"id": "a"}]}})


def test_inputs_are_parameters_in_a_task_and_declarations_in_a_plan() -> None:
    data = read_plan({"inputs": {"x": {"type": "string"}}, "tasks": [{"id": "a", "inputs": {"p": 1}}]}).data
    assert data == {"inputs": {"x": {"type": "string"}}, "tasks": [{"id": "a", "parameters": {"p": 1}}]}


def test_two_spellings_of_one_field_are_a_problem_that_names_the_field() -> None:
    [problem] = check_plan({"tasks": [{"id": "a", "skill": "s", "tool": "t"}]}).problems
    assert (problem.rule, problem.task, problem.field) == ("two_spellings", "a", "skill")
    assert "'tool'" in problem.message


def test_null_is_as_if_absent_so_that_a_second_spelling_may_be_null() -> None:
    assert task(id="a", tool=None, skill="s", condition=None, parameters=None) == {"id": "a", "skill": "s"}


def test_null_settings_in_nested_mappings_are_as_if_absent() -> None:
    source = {"limits": {"max_parallel": None}, "inputs": {"x": None}, "tasks": [{"id": "a", "backoff": {"cap": None}}]}
    data = read_plan(source).data
    assert (data["limits"], data["inputs"], data["tasks"][0]["backoff"]) == ({}, {"x": {}}, {})


def test_null_as_a_value_stays_null() -> None:
    source = {
        "context": {"k": None},
        "tasks": [{"id": "a", "skill": "s", "parameters": {"p": None}, "fallback": {"value": None}}],
    }
    draft = read_plan(source)
    assert draft.data == source
    assert draft.plan is not None
    assert draft.plan.to_json() == source


@pytest.mark.parametrize("spelling", ["skill", "tool", "tool_hint"])
def test_none_means_no_skill(spelling: str) -> None:
    assert task(**{"id": "a", spelling: "none"}) == {"id": "a"}


def test_a_task_without_an_id_is_known_by_its_name() -> None:
    assert task(name="Find it") == {"id": "Find it", "name": "Find it"}


def test_whole_numbers_become_ids_wherever_a_task_is_named() -> None:
    given = {"id": 1, "dependencies": [2], "soft_dependencies": [3], "on_success": 4, "on_failure": 5}
    expected = {"id": "1", "dependencies": ["2"], "soft_dependencies": ["3"], "on_success": "4", "on_failure": "5"}
    assert task(**given) == expected


@pytest.mark.parametrize("value", [True, 1.0, 2.1, 10**400, [], {}])
def test_no_other_value_becomes_an_id(value: Any) -> None:
    assert rules([{"id": value, "skill": "s"}]) == ["bad_value"]


def test_a_bare_string_is_the_skill_of_a_fallback() -> None:
    assert task(id="a", fallback="notify")["fallback"] == {"skill": "notify"}
    assert task(id="a", compensation="undo")["compensation"] == {"skill": "undo"}


def test_reading_changes_nothing_in_the_source() -> None:
    source: dict[str, Any] = {"steps": [{"id": 1, "tool": "s", "args": {"list": [1]}, "needs": []}]}
    before = json.loads(json.dumps(source))
    draft = read_plan(source)
    source["steps"][0]["args"]["list"].append(2)
    assert draft.data["tasks"][0]["parameters"] == {"list": [1]}
    assert before["steps"][0]["args"] == {"list": [1]}


def test_a_plan_is_read_as_it_is() -> None:
    plan = Plan.model_validate({"tasks": [{"id": "a", "skill": "s"}]})
    assert check_plan(plan).plan is plan


def test_a_plan_without_a_name_is_called_as_its_file(tmp_path: Path) -> None:
    path = tmp_path / "trip.json"
    path.write_text('[{"id": "a", "skill": "s"}]', encoding="utf-8")
    plan = check_plan(path).plan
    assert plan is not None
    assert plan.name == "trip"
    assert plan.to_json() == {"tasks": [{"id": "a", "skill": "s"}]}
