"""The published JSON Schema of plans: the normal form, for editors, for other programs, and for models."""

from __future__ import annotations

from typing import Any

from fsm_agent.plan.model import Plan

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def plan_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a plan in its normal form, with a description of each field.

    It tells types and ranges. What needs more than one field, references, expressions and skills, is for `validate`;
    and the other spellings that are understood are not in it.
    """
    schema = Plan.model_json_schema(by_alias=True, mode="validation")
    return {"$schema": DIALECT, "title": "Plan", **schema}
