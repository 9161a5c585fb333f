"""Expressions that do not compile, and references to results that cannot be there yet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fsm_agent.errors import ConditionError
from fsm_agent.plan.compiled import RESULT, Fault, Use
from fsm_agent.plan.expression_text import parse, read
from fsm_agent.plan.findings import Finding, one_of, shown
from fsm_agent.plan.precedence import necessarily_after
from fsm_agent.plan.rules.subject import Subject

_RULES: Mapping[str, str] = {
    "syntax": "bad_expression",
    "type": "bad_expression",
    "value": "bad_expression",
    "budget": "bad_expression",
    "forbidden": "unsafe_expression",
    "too_complex": "unsafe_expression",
    "unknown_name": "unknown_name",
    "unknown_field": "unknown_reference",
}

_EXPRESSIONS = ("condition", "verification", "output", "check")
"""Fields that are expressions as a whole."""

_CAPITALS = re.compile(r"\b(?:AND|OR|NOT)\b")
_LOWER_CASE = "write and, or, not in lower case"
_HYPHENATED = re.compile(r"\bresults\.(\w+(?:-\w+)+)")


def faults(subject: Subject) -> Iterator[Finding]:
    """Expressions that are refused."""
    for fault in subject.compilation.faults:
        error = fault.error
        yield Finding(_RULES[error.code], fault.path, error.message, hint=_hint(fault, subject), column=error.column)


def impossible_references(subject: Subject) -> Iterator[Finding]:
    """`results.X` where X is the task itself, or cannot have run before it.

    On a loop each task may have run before each other one, in an earlier round.
    """
    uses = [(use, name, column) for use in subject.compilation.uses for name, column in use.expression.result_ids]
    index, loop_of = subject.graph.index, subject.graph.component_of
    pairs = {(use.place, index[name]) for use, name, _ in uses}
    apart = [(place, other) for place, other in pairs if loop_of[place] != loop_of[other]]
    later = set() if subject.graph.cycle else necessarily_after(subject.graph, apart)
    for use, name, column in uses:
        if use.place == index[name]:
            yield _impossible(use, "its own result is not there yet", column, _own_hint(use))
        elif (use.place, index[name]) in later:
            message = f"the result of {shown(name)} is not there yet: it runs after this task"
            yield _impossible(use, message, column, "ask for the result of a task that can have run before")


def _impossible(use: Use, message: str, column: int, hint: str) -> Finding:
    return Finding("impossible_reference", use.path, message, hint=hint, column=column)


def _own_hint(use: Use) -> str:
    return "in a verification, `result` is what the skill gave back" if use.path[-1] == "verification" else ""


def _hint(fault: Fault, subject: Subject) -> str:
    error = fault.error
    if error.name == RESULT and error.code == "unknown_name":
        return _no_result(fault, subject)
    mended = _wrapped(fault) or _in_capitals(error) or _hyphenated(error, subject)
    if mended:
        return mended
    if error.suggestions:
        return f"did you mean {one_of(error.suggestions)}?"
    if error.code == "unknown_name" and subject.catalog.any_skill and error.name not in subject.graph.index:
        return f"if a skill writes it, put `writes: [{error.name}]` on its task"
    return error.hint or _prose_hint(fault.path[-1], error)


def _wrapped(fault: Fault) -> str:
    """A whole field in `${…}`, which belongs into texts of parameters."""
    text = (fault.error.expression or "").strip()
    is_wrapped = fault.path[-1] in _EXPRESSIONS and text.startswith("${") and text.endswith("}")
    return "this field is an expression: leave out ${ and }" if is_wrapped else ""


def _in_capitals(error: ConditionError) -> str:
    """AND, OR and NOT as other languages have them, where that is all that is wrong."""
    text = error.expression or ""
    if error.code == "syntax" and _CAPITALS.search(text):
        try:
            parse(read(_CAPITALS.sub(lambda found: found[0].lower(), text)))
        except ConditionError:
            return ""
        return _LOWER_CASE
    return _LOWER_CASE if error.name in ("AND", "OR", "NOT") else ""


def _hyphenated(error: ConditionError, subject: Subject) -> str:
    """`results.fetch-data`, which is a subtraction."""
    if error.code not in ("unknown_field", "unknown_name"):
        return ""
    for found in _HYPHENATED.finditer(error.expression or ""):
        if found[1] in subject.graph.index:
            return f"write results[{shown(found[1])}]"
    return ""


def _no_result(fault: Fault, subject: Subject) -> str:
    match fault.path:
        case ("tasks", int(place), "verification") if subject.compilation.doers[place].is_decision:
            return "nobody does this task, so that it is a decision and has no result: name its skill, or use results"
    return "`result` is there in a verification only (or in a compensation's parameters); elsewhere use results.ID.data"


def _prose_hint(field: object, error: ConditionError) -> str:
    if field == "verification" and error.code == "syntax":
        return "a verification is an expression; prose belongs in expected_output"
    if field in _EXPRESSIONS and error.code == "syntax":
        return "it must be an expression, not prose"
    return ""
