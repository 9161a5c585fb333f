"""Whatever is given for a plan, the answer is a list of problems, never an exception."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsm_agent.plan.catalog import ANY_SKILL, Catalog, SkillSpec
from fsm_agent.plan.draft import draft_of_text
from fsm_agent.plan.loader import Checked, check_plan
from fsm_agent.plan.model import Plan, Task
from fsm_agent.plan.spellings import PLAN_SPELLINGS, TASK_SPELLINGS

DATA = Path(__file__).parent.parent / "data"
VALID = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((DATA / "spellings").glob("*.json"))]
VALID += [case["plan"] for case in json.loads((DATA / "natural_plans.json").read_text(encoding="utf-8"))["cases"]]

CATALOG = Catalog(
    skills={
        "stub": SkillSpec("stub", check=lambda _constants, _expressions: [("x", "it is required")]),
        "pay": SkillSpec("pay", risk="high", writes=("k",)),
    },
    workers={"w": "stub"},
)
KEYS = sorted(
    {*Plan.model_fields, *Task.model_fields, "as"}
    | {name for table in (PLAN_SPELLINGS, TASK_SPELLINGS) for names in table.values() for name in names}
)
WORDS = ["a", "b", "stub", "pay", "none", "results.a.data", "${results.b}", "${", "1 +", "all_done", "any", "model",
         "sequential", "condition", "action", "high", "pending"]  # fmt: skip

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(WORDS)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=25,
)
tasks = st.dictionaries(st.sampled_from(KEYS), leaves | values, max_size=8)
plan_like = st.fixed_dictionaries(
    {"tasks": st.lists(tasks | values, max_size=6)},
    optional={key: values for key in Plan.model_fields if key != "tasks"},
)
steady = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def assert_sound(checked: Checked) -> None:
    """What must hold of every answer."""
    has_error = any(problem.severity == "error" for problem in checked.problems)
    assert checked.valid == (not has_error)
    assert (checked.compiled is not None) == checked.valid
    assert json.dumps([problem.to_json() for problem in checked.problems])
    if checked.valid:
        assert checked.plan is not None
        assert check_plan(checked.plan.to_json()).plan == checked.plan


@given((values | plan_like).filter(lambda value: not isinstance(value, str)))
@steady
def test_any_data_is_valid_or_has_problems(data: Any) -> None:
    assert_sound(check_plan(data, ANY_SKILL))
    assert_sound(check_plan(data, CATALOG))


@given(values | plan_like, st.sampled_from(["json", "yaml", None]))
@steady
def test_any_json_text_is_valid_or_has_problems_with_lines(data: Any, kind: Any) -> None:
    text = json.dumps(data, ensure_ascii=True)
    checked = check_plan(draft_of_text(text, kind, "f"), CATALOG)
    assert_sound(checked)
    assert all(problem.line is not None and problem.file == "f" for problem in checked.problems)


@given(st.text(max_size=60), st.sampled_from(["json", "yaml", None]))
@steady
def test_any_text_is_valid_or_has_problems(text: str, kind: Any) -> None:
    assert_sound(check_plan(draft_of_text(text, kind, "f")))


@given(st.data())
@steady
def test_a_valid_plan_with_one_thing_changed_is_valid_or_has_problems(data: st.DataObject) -> None:
    plan = copy.deepcopy(data.draw(st.sampled_from(VALID)))
    mutate(plan, data)
    assert_sound(check_plan(plan, ANY_SKILL))
    assert_sound(check_plan(plan, CATALOG))


def mutate(node: Any, data: st.DataObject) -> None:
    """Replace, remove or add one value somewhere in the node."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    key = data.draw(st.sampled_from(keys)) if keys else None
    inner = node[key] if key is not None else None
    if isinstance(inner, (dict, list)) and inner and data.draw(st.integers(0, 3)):
        mutate(inner, data)
    elif key is None or data.draw(st.booleans()):
        new = data.draw(st.sampled_from(KEYS)) if isinstance(node, dict) else len(node)
        node.insert(new, data.draw(values)) if isinstance(node, list) else node.update({new: data.draw(values)})
    elif data.draw(st.booleans()):
        node[key] = data.draw(values)
    else:
        del node[key]
