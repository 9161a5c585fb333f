"""What the names of an expression stand for at one moment of a run. Only what the expression uses is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsm_agent.core.context import MISSING, View
from fsm_agent.core.run import Run
from fsm_agent.plan.expressions import Expression
from fsm_agent.plan.references import Template


def names_of(
    run: Run,
    expression: Expression,
    *,
    view: View | None = None,
    writes: Mapping[str, Any] | None = None,
    result: Any = MISSING,
) -> dict[str, Any]:
    """The values of an expression's names, as of now, or as a visit's view has them with its writes on top.

    A name that has no value yet (a declared write) is left out: its evaluation is then an unknown name.
    """
    names: dict[str, Any] = {}
    for name in expression.names_used:
        value = _value(name, run, expression, view, writes, result)
        if value is not MISSING:
            names[name] = value
    return names


def names_of_template(run: Run, template: Template, view: View | None = None, result: Any = MISSING) -> dict[str, Any]:
    """The names of all expressions of a template, in one mapping."""
    names: dict[str, Any] = {}
    results: dict[str, Any] = {}
    for _, expression in template.expressions:
        names.update(names_of(run, expression, view=view, result=result))
        results.update(names.get("results", {}))
    if "results" in names:
        names["results"] = results
    return names


def _value(
    name: str, run: Run, expression: Expression, view: View | None, writes: Mapping[str, Any] | None, result: Any
) -> Any:
    if name == "context":
        return run.context.values if view is None else view.values(writes)
    if name == "results":
        return results_of(run, expression)
    if name == "inputs":
        return run.inputs
    if name == "goal":
        return run.goal
    if name == "result":
        return result
    return _bare(name, run, view, writes)


def _bare(name: str, run: Run, view: View | None, writes: Mapping[str, Any] | None) -> Any:
    """A context key, else an input that is not in the context (a secret)."""
    if writes and name in writes:
        return writes[name]
    value = run.context.values.get(name, MISSING)
    if view is not None:
        value = view.shadow.get(name, value)
    return run.inputs.get(name, MISSING) if value is MISSING else value


def results_of(run: Run, expression: Expression) -> dict[str, Any]:
    """The results that the expression names; all of them where it does not say which."""
    if expression.whole_results:
        return run.all_results()
    return {task: run.node(task).result() for task, _ in expression.result_ids}
