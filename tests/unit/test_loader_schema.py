"""The published JSON Schema says what the loader says, as far as a schema can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from fsm_agent.plan.loader import check_plan, read_plan
from fsm_agent.plan.published import plan_schema

DATA = Path(__file__).parent.parent / "data"
NATURAL = json.loads((DATA / "natural_plans.json").read_text(encoding="utf-8"))["cases"]
SCHEMA = Draft202012Validator(plan_schema())


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(plan_schema())


def test_every_field_has_a_description() -> None:
    schema = plan_schema()
    for part in (schema, *schema["$defs"].values()):
        assert part["description"]
        assert all(field.get("description") for field in part["properties"].values())


def test_the_item_of_a_foreach_is_under_its_name_in_files() -> None:
    assert "as" in plan_schema()["$defs"]["Task"]["properties"]


@pytest.mark.parametrize("path", sorted((DATA / "spellings").glob("*.json")), ids=lambda path: path.stem)
def test_the_normal_form_of_each_spelling_fits(path: Path) -> None:
    SCHEMA.validate(read_plan(path).data)


@pytest.mark.parametrize("case", NATURAL, ids=lambda case: case["name"])
def test_natural_plans_fit_and_are_valid(case: dict[str, Any]) -> None:
    SCHEMA.validate(case["plan"])
    assert check_plan(case["plan"]).valid


@pytest.mark.parametrize(
    "source",
    [
        {"tasks": []},
        {"goal": "g"},
        {"tasks": [{"skill": "s"}]},
        {"tasks": [{"id": "", "skill": "s"}]},
        {"tasks": [{"id": " a", "skill": "s"}]},
        {"tasks": [{"id": "a", "skill": "s", "timeout": 0}]},
        {"tasks": [{"id": "a", "skill": "s", "priority": "urgent"}]},
        {"tasks": [{"id": "a", "skill": "s", "zzz": 1}]},
        {"tasks": [{"id": "a", "skill": "s"}], "completion_criteria": [{"text": "x"}]},
        {"tasks": [{"id": "a", "skill": "s"}], "inputs": {"x": {"type": "int"}}},
    ],
)
def test_what_the_schema_refuses_the_loader_refuses(source: dict[str, Any]) -> None:
    assert not SCHEMA.is_valid(source)
    assert not check_plan(source).valid
