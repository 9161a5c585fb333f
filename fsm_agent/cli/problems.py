"""Problems of plans, as people and as programs read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from fsm_agent.errors import Problem
from fsm_agent.views.text import one_line

_COLUMN_IN_FILE: Final = frozenset({"bad_syntax", "duplicate_key", "too_deep", "unsafe_yaml"})
"""Rules about the text of a file. A column of any other rule counts within an expression."""


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """By file, line and rule."""
    return sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0, problem.rule))


def is_valid(problems: Iterable[Problem]) -> bool:
    """Whether there is no error; warnings do not count."""
    return not any(problem.severity == "error" for problem in problems)


def problems_document(problems: Sequence[Problem]) -> dict[str, Any]:
    """The JSON document."""
    return {"valid": is_valid(problems), "problems": [problem.to_json() for problem in in_order(problems)]}


def problems_text(problems: Sequence[Problem]) -> str:
    """A line for each problem."""
    return "\n".join(line_of(problem) for problem in in_order(problems))


def line_of(problem: Problem) -> str:
    """`file:line:column: severity rule task field: message (hint)`, without what is not known.

    A column within an expression comes after the field: an editor that jumps to the place would misread it.
    """
    in_file = problem.rule in _COLUMN_IN_FILE
    column = str(problem.column) if problem.column is not None else ""
    place = ":".join(part for part in (problem.file or "", str(problem.line or ""), column if in_file else "") if part)
    subject = [problem.severity, problem.rule, problem.task or "", problem.field or ""]
    if column and not in_file:
        subject.append(f"column {column}")
    parts = [place, " ".join(part for part in subject if part), problem.message]
    hint = f" ({problem.hint})" if problem.hint else ""
    return one_line(": ".join(part for part in parts if part) + hint)


def count_of(problems: Sequence[Problem]) -> str:
    """`2 errors, 1 warning`."""
    errors = sum(problem.severity == "error" for problem in problems)
    counts = ((errors, "error"), (len(problems) - errors, "warning"))
    return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts if count)
