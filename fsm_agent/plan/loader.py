"""From a file, or from data in any spelling, to a plan that is known to be good, with every problem and its place.

Reading a file is the only I/O of this floor. What is wrong with the content is not raised by reading or checking: it
is a list of problems.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fsm_agent.errors import InvalidPlan, Problem
from fsm_agent.plan.catalog import ANY_SKILL, Catalog
from fsm_agent.plan.compiled import CompiledPlan, compile_plan
from fsm_agent.plan.draft import Draft, draft_of_data, draft_of_plan, draft_of_text
from fsm_agent.plan.graph import Graph
from fsm_agent.plan.inputs import check_inputs
from fsm_agent.plan.model import Plan
from fsm_agent.plan.rules.every import RULES_OF_SKILLS, examine
from fsm_agent.plan.rules.subject import Subject
from fsm_agent.plan.source import kind_of_file, read_file

__all__ = [
    "Checked", "Draft", "PlanSource", "check_inputs", "check_plan", "collecting_later", "load_plan", "read_plan",
    "recheck_plan",
]  # fmt: skip

PlanSource = str | os.PathLike[str] | Mapping[str, Any] | Sequence[Any] | Plan
"""A path, data in any spelling (a bare list holds the tasks), or a plan."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What checking a plan came to.

    `plan` is there where the data fits the model, `graph` where a shape could be made out, `compiled` where there is
    no error.
    """

    plan: Plan | None
    problems: tuple[Problem, ...]
    graph: Graph | None = None
    compiled: CompiledPlan | None = None

    @property
    def valid(self) -> bool:
        """Whether there is no error. Warnings do not count."""
        return self.compiled is not None


def read_plan(source: PlanSource, *, file: str | None = None) -> Draft:
    """Read a plan, without asking whether it makes sense.

    A str or a path-like is the path of a JSON or YAML file; `file` is what problems call it. Raises UsageError if the
    file cannot be read, and nothing for what is in it.
    """
    if isinstance(source, Plan):
        return draft_of_plan(source, file)
    if not isinstance(source, (str, os.PathLike)):
        return draft_of_data(source, file)
    name = file if file is not None else str(Path(source))
    text = read_file(source)
    if isinstance(text, str):
        return draft_of_text(text, kind_of_file(source), name)
    return Draft(findings=[text], file=name)


def check_plan(
    source: PlanSource | Draft,
    catalog: Catalog = ANY_SKILL,
    *,
    supported: Collection[str] = (),
    file: str | None = None,
) -> Checked:
    """Read a plan and look at it with every rule.

    `supported` names keys (or values such as `replan`) that are allowed although this engine does not bring them.
    Raises UsageError if a file cannot be read; all else is among the problems.
    """
    with collecting_later():
        draft = source if isinstance(source, Draft) else read_plan(source, file=file)
        return _checked(draft, catalog, supported)


def load_plan(source: PlanSource, *, catalog: Catalog = ANY_SKILL) -> Plan:
    """A plan that is good.

    Raises InvalidPlan with every problem if there is an error, UsageError if the file cannot be read.
    """
    checked = check_plan(source, catalog)
    if checked.plan is None or not checked.valid:
        raise InvalidPlan(checked.problems)
    return checked.plan


def recheck_plan(normal: Mapping[str, Any], catalog: Catalog) -> Checked:
    """Look anew at the normal form of a plan that was valid once: only the skills can be others now."""
    with collecting_later():
        try:
            plan = Plan.model_validate(normal)
        except ValidationError:
            return check_plan(normal, catalog)
        compilation = compile_plan(plan, catalog)
        subject = Subject(plan, compilation, catalog)
        if any(True for rule in RULES_OF_SKILLS for _ in rule(subject)):
            return check_plan(normal, catalog)
        return Checked(plan, (), compilation.plan.graph, compilation.plan)


def _checked(draft: Draft, catalog: Catalog, supported: Collection[str]) -> Checked:
    plan = draft.plan if draft.plan is not None else draft.kept
    if plan is None:
        return Checked(None, tuple(draft.problems))
    compilation = compile_plan(plan, catalog, _names_left_out(draft) if draft.kept is not None else ())
    subject = Subject(plan, compilation, catalog, supported, draft.left_out, draft.suggestions)
    problems = tuple(draft.located([*draft.findings, *examine(subject)]))
    is_valid = not any(problem.severity == "error" for problem in problems)
    return Checked(draft.plan, problems, compilation.plan.graph, compilation.plan if is_valid else None)


@contextmanager
def collecting_later() -> Iterator[None]:
    """No search for cyclic garbage meanwhile.

    All that reading and compiling makes is kept. Looking through it again and again would, for a large plan (or a long
    run), take as long as making it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _names_left_out(draft: Draft) -> set[str]:
    """Names that are declared in what could not be read: that they are unknown would be no help."""
    names = {name for key in ("inputs", "context") for name in _names_in(draft.data.get(key))}
    for task in draft.data["tasks"]:
        if isinstance(task, dict):
            names |= _names_in(task.get("writes"))
    return names


def _names_in(value: Any) -> set[str]:
    return {name for name in value if isinstance(name, str)} if isinstance(value, (list, dict)) else set()
