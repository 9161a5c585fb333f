"""The published JSON Schema of plans: the normal form, for editors, for other programs, and for models."""

from __future__ import annotations

import ast
import inspect
from typing import Any

from fsm_agent.plan import model
from fsm_agent.plan.model import Plan

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def plan_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a plan in its normal form, with a description of each field.

    It tells types and ranges. What needs more than one field, references, expressions and skills, is for `validate`;
    and the other spellings that are understood are not in it.
    """
    schema = Plan.model_json_schema(by_alias=True, mode="validation")
    words = _field_docstrings()
    for name, part in [("Plan", schema), *schema.get("$defs", {}).items()]:
        for field, described in part.get("properties", {}).items():
            text = words.get(name, {}).get(field)
            if text:
                described.setdefault("description", text)
    return {"$schema": DIALECT, "title": "Plan", **schema}


def _field_docstrings() -> dict[str, dict[str, str]]:
    """The docstring below each field of the model's classes. Read when it is wanted, not at each import."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(model)).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = dict(_docstrings_of(node))
    return found


def _docstrings_of(node: ast.ClassDef) -> list[tuple[str, str]]:
    found = []
    for field, after in zip(node.body, node.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            found.append((field.target.id.rstrip("_"), inspect.cleandoc(after.value.value)))
    return found
