"""The tables of the documentation hold what the code holds: nothing is missing, and nothing is there that is not."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

import fsm_agent.testing
from benchmarks.cases import CASES
from fsm_agent import (
    ModelBounds,
    ModelRequest,
    PlannerEngine,
    Reply,
    RunOptions,
    RunResult,
    SkillContext,
    SkillRegistry,
    errors,
    skill,
)
from fsm_agent.cli import exits
from fsm_agent.core.events import AnyEvent, Event
from fsm_agent.core.machine import PHASES, TABLE
from fsm_agent.errors import ConditionError
from fsm_agent.plan import expression_gate, expression_operators, expression_text, expression_values, expressions, model
from fsm_agent.plan.expression_functions import FUNCTIONS, MAX_DIGITS, METHODS
from fsm_agent.plan.loader import check_plan
from fsm_agent.plan.policy import OTHER_KINDS, RETRIABLE_KINDS
from fsm_agent.plan.rules.expressions import _RULES as RULES_BY_CODE
from fsm_agent.plan.spellings import PLAN_SPELLINGS, TASK_SPELLINGS
from tests.docs.pages import ROOT, Table, tables_of


def table(page: str, head: str) -> Table:
    """The table of a page whose head begins so."""
    (found,) = (each for each in tables_of(ROOT / "docs" / page) if each.head[0] == head)
    return found


def names(cell: str) -> list[str]:
    """All that stands in backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def first_names(found: Table) -> list[str]:
    """All that stands in backquotes in the first column."""
    return [name for row in found.rows for name in names(row[0])]


def keys(kind: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in kind.model_fields.items()}


# plans.md -------------------------------------------------------------------------------------------------------------


def not_there_yet() -> set[str]:
    text = (ROOT / "docs" / "plans.md").read_text(encoding="utf-8")
    (paragraph,) = re.findall(r"Not there yet, and refused with .*?\.", text, re.DOTALL)
    return {*names(paragraph.replace("`not_supported`", ""))}


def test_every_key_of_a_plan_and_of_a_task_is_on_the_page() -> None:
    plan, task, _ = (each for each in tables_of(ROOT / "docs" / "plans.md") if each.head[0] == "key")
    assert sorted(first_names(plan)) == sorted(keys(model.Plan))
    later = {name for name in not_there_yet() if ":" not in name} - {"capacity"}
    assert sorted([*first_names(task), *later]) == sorted(keys(model.Task))


@pytest.mark.parametrize("feature", sorted(not_there_yet()))
def test_what_the_page_calls_not_there_yet_is_refused(feature: str) -> None:
    key, _, word = feature.partition(": ")
    values = {"capacity": 2, "subplan": "x", "tolerate": 1}
    task: dict[str, Any] = {"id": "a", "worker": "w"}
    if key == "capacity":
        worker = {"skill": "x", key: 2}
    else:
        worker, task[key] = {"skill": "x"}, word or values.get(key, "[]")
    rules = [problem.rule for problem in check_plan({"workers": {"w": worker}, "tasks": [task]}).problems]
    assert "not_supported" in rules


def test_every_key_of_the_parts_of_a_plan_is_on_the_page() -> None:
    parts = {row[0]: {*names(row[1])} - {"full", "none"} for row in table("plans.md", "part").rows}
    assert parts == {
        "an input": keys(model.Input), "a worker": keys(model.Worker), "a backoff": keys(model.Backoff),
        "a fallback": keys(model.Fallback), "a compensation": keys(model.Compensation),
        "a criterion": keys(model.Criterion),
    }  # fmt: skip


def test_every_limit_is_on_the_page_with_its_default() -> None:
    limits = {names(row[0])[0]: row[1] for row in table("plans.md", "limit").rows}
    computed = {"max_task_runs": "1,000, or ten times the tasks if that is more", "deadline": "none"}
    assert limits == {
        name: computed.get(name) or f"{value:,g}" if value != 1_000_000 else "1,000,000"
        for name, value in model.Limits().model_dump().items()
    }


def test_every_spelling_is_on_the_page() -> None:
    *_, spellings = (each for each in tables_of(ROOT / "docs" / "plans.md") if each.head[0] == "key")
    told = {row[0].replace("`", ""): tuple(names(row[1])) for row in spellings.rows}
    assert told == {f"{key} of a plan": words for key, words in PLAN_SPELLINGS.items()} | dict(TASK_SPELLINGS)


def test_every_merge_rule_is_on_the_page() -> None:
    assert first_names(table("plans.md", "rule")) == [*get_args(model.MergeRule)]


# expressions.md -------------------------------------------------------------------------------------------------------


def test_every_function_and_method_is_on_the_page() -> None:
    allowed = next(each for each in tables_of(ROOT / "docs" / "expressions.md") if each.rows[0][0] == "values")
    told = {row[0]: names(row[1])[0].split() for row in allowed.rows if row[0] == "functions"}
    assert told == {"functions": [*FUNCTIONS]}
    methods = {row[0]: row[1].strip("`").split() for row in table("expressions.md", "methods of").rows}
    words: dict[type, str] = {dict: "an object", str: "a text", list: "a list"}
    assert methods == {words[kind]: [*found] for kind, found in METHODS.items()}


def test_every_code_of_an_error_is_on_the_page_with_an_expression_that_ends_so() -> None:
    rows = table("expressions.md", "code").rows
    assert {row[0].strip("`") for row in rows} == {kind.code for kind in ConditionError.__subclasses__()}
    values: dict[str, Any] = {"price": 80, "order": {"cost": 3}, "nothing": None, "large": [1] * 20_000}
    for code, _, example, rule in rows:
        error = error_of(example.strip("`"), values)
        assert error.code == code.strip("`")
        assert names(rule) in ([], [RULES_BY_CODE[error.code]])


def error_of(text: str, values: dict[str, Any]) -> ConditionError:
    try:
        value = expressions.compile_expression(text, expressions.Names(frozenset(values))).value(values)
    except ConditionError as error:
        return error
    raise AssertionError(f"{text} is no error, but {value}")


def test_every_bound_is_on_the_page() -> None:
    assert [(what, int(most.replace(",", ""))) for what, most in table("expressions.md", "what").rows] == [
        ("characters", expression_text.MAX_LENGTH),
        ("parts", expression_gate.MAX_NODES),
        ("levels", expression_gate.MAX_DEPTH),
        ("bits of a whole number, as written", expression_gate.MAX_LITERAL_BITS),
        ("characters of a text, as written", expression_gate.MAX_LITERAL_TEXT),
        ("comprehensions", expression_gate.MAX_COMPREHENSIONS),
        ("bits of a whole number, as computed", expression_values.MAX_BITS),
        ("characters of a text made by `+`", expression_operators.MAX_JOINED_TEXT),
        ("items of a list made by `+`", expression_operators.MAX_JOINED_LIST),
        ("digits for `round`, to either side", MAX_DIGITS),
        ("steps of one evaluation", expressions.STEPS),
        ("steps of an `output`", expressions.WIDE_STEPS),
    ]


# skills.md and embedding.md -------------------------------------------------------------------------------------------


def test_every_word_of_a_skills_author_is_on_the_page() -> None:
    assert sorted(first_names(table("skills.md", "`@skill(…)`"))) == sorted(inspect.signature(skill).parameters)


def test_all_that_a_skill_finds_in_its_context_is_on_the_page() -> None:
    told = {name.partition("(")[0] for name in first_names(table("skills.md", "`context.…`"))}
    for_the_engine = {"broken", "close"}
    assert told == {name for name in dir(SkillContext) if not name.startswith("_")} - for_the_engine


def test_every_built_in_skill_is_on_the_page() -> None:
    told = [(name.strip("`"), risk, names(needs)) for name, risk, needs, _ in table("skills.md", "built in").rows]
    assert told == [(each.spec.name, each.spec.risk, sorted(each.spec.requires)) for each in SkillRegistry()]


def test_every_option_result_and_argument_of_the_engine_is_on_the_page() -> None:
    assert {*first_names(table("embedding.md", "option of a run"))} == {*RunOptions.__annotations__}
    told = {*first_names(table("embedding.md", "of a result"))} - {"to_json()", "completed"}
    assert told == {*RunResult.__annotations__}
    arguments = {*inspect.signature(PlannerEngine).parameters}
    assert {*first_names(table("embedding.md", "argument of the engine"))} == arguments
    doubles = [name.partition("(")[0] for name in first_names(table("embedding.md", "in `fsm_agent.testing`"))]
    assert sorted(doubles) == sorted(fsm_agent.testing.__all__)


# events.md, machine.md, errors.md -------------------------------------------------------------------------------------


def test_every_event_is_on_the_page_with_its_fields() -> None:
    common = {*Event.__struct_fields__}
    told = {row[0].strip("`"): names(row[2]) for row in table("events.md", "type").rows}
    assert told == {
        str(kind.__struct_config__.tag): [name for name in kind.__struct_fields__ if name not in common]
        for kind in get_args(AnyEvent)
    }


def test_every_phase_row_and_guard_of_the_machine_is_on_the_page() -> None:
    assert sorted(first_names(table("machine.md", "phase"))) == sorted(PHASES)
    told = [tuple(cell.strip("`") for cell in row) for row in table("machine.md", "trigger").rows]
    assert told == [(row.trigger, row.source, row.dest, row.guard or "") for row in TABLE]
    guards = [row.guard for row in TABLE if row.guard is not None]
    assert first_names(table("machine.md", "guard")) == [*dict.fromkeys(guards)]


def test_the_tree_of_errors_is_the_tree_of_the_classes() -> None:
    drawn = re.findall(r"^    ((?:│   |├── |└── |    )*)(\w+)", errors.__doc__ or "", re.MULTILINE)
    above = [errors.FsmAgentError.__name__]
    for indent, name in drawn:
        depth = len(indent) // 4
        assert [base.__name__ for base in getattr(errors, name).__bases__] == (
            [above[depth - 1]] if depth else ["Exception"]
        )
        above[depth:] = [name]
    classes = [name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert sorted(name for _, name in drawn) == sorted(classes)


def test_every_kind_of_error_and_every_exit_code_is_on_the_page() -> None:
    kinds = first_names(table("errors.md", "kind of a task's error"))
    assert sorted(kinds) == sorted([*RETRIABLE_KINDS, *OTHER_KINDS])
    codes = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert {int(code) for code in table("errors.md", "code").column(0)} == codes


def test_every_rule_is_on_the_page() -> None:
    wrong, doubtful = (each for each in tables_of(ROOT / "docs" / "errors.md") if each.head[0] == "rule")
    made = rules_made()
    assert sorted(first_names(doubtful)) == sorted(made["warning"])
    assert sorted(first_names(wrong)) == sorted((made["Finding"] | {*RULES_BY_CODE.values()}) - made["warning"])


def rules_made() -> dict[str, set[str]]:
    """The rules that the source names where it makes a finding, by whether that is a warning."""
    made: dict[str, set[str]] = {"Finding": set(), "warning": set()}
    for path in (ROOT / "fsm_agent" / "plan").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                maker = {"_refuse": "Finding", "_problem": "Finding"}.get(node.func.id, node.func.id)
                rule = node.args[0]
                if maker in made and isinstance(rule, ast.Constant) and isinstance(rule.value, str):
                    made[maker].add(rule.value)
    return made


# models.md ------------------------------------------------------------------------------------------------------------


def test_every_variable_bound_and_field_of_asking_a_model_is_on_the_page() -> None:
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    assert first_names(table("models.md", "variable")) == re.findall(r"(?:^|\n)(?:# )?(LLM_\w+)=", example)
    bounds = {names(row[0])[0]: row[1] for row in table("models.md", "bound").rows}
    assert bounds == {name: f"{value:,}".removesuffix(".0") for name, value in asdict(ModelBounds()).items()}
    assert {*first_names(table("models.md", "of a request"))} == {field.name for field in fields(ModelRequest)}
    assert {*first_names(table("models.md", "of a reply"))} == {field.name for field in fields(Reply)}


# The other pages ------------------------------------------------------------------------------------------------------


def test_every_benchmark_is_on_the_page() -> None:
    assert first_names(table("speed.md", "case")) == [*CASES]


def test_the_floors_on_the_page_are_those_that_are_enforced() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    told = [{*names(row[0])} for row in table("architecture.md", "floor").rows]
    assert told == [{*re.findall(r"fsm_agent\.(\w+)", layer)} for layer in layers]


def test_every_file_that_the_page_on_the_code_names_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = re.findall(r"`([\w/]+\.(?:py|yaml|json))`", text)
    assert len(files) > 10
    assert [file for file in files if not any((folder / file).is_file() for folder in (ROOT, ROOT / "fsm_agent"))] == []


def test_the_index_names_every_page() -> None:
    linked = re.findall(r"\]\((\w+\.md)\)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    assert {*linked, "index.md"} == {path.name for path in Path(ROOT, "docs").glob("*.md")}
