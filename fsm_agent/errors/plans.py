"""Errors of plans and their expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fsm_agent.errors.root import FsmAgentError

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong (or worth a warning) in a plan.

    `rule` is the stable name of the rule, `field` a path under the normal names
    (`dependencies[1]`, `parameters.a[0]`), `line` and `column` are 1-based or None.
    """

    rule: str
    message: str
    severity: Severity = "error"
    task: str | None = None
    field: str | None = None
    hint: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The problem as plain JSON data, under the keys of the command line."""
        return asdict(self)


class InvalidPlan(FsmAgentError):
    """A plan (or what was given to it) has problems; nothing was run and nothing was changed.

    `problems` holds every problem that was found, warnings included.
    """

    code = "invalid_plan"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        errors = [p for p in self.problems if p.severity == "error"]
        first = errors[0] if errors else None
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        where = f" in task {first.task!r}" if first and first.task else ""
        text = f"{first.rule}{where}: {first.message}{more}" if first else "the plan is not valid"
        super().__init__(text, hint=first.hint if first else "")


class ConditionError(FsmAgentError):
    """An expression was refused, or failed. It never means false.

    `column` is 1-based in characters of `expression`; `name` is the name or field concerned;
    `suggestions` are up to two known names near to it.
    """

    code = "condition"

    def __init__(
        self,
        message: str,
        *,
        expression: str = "",
        column: int | None = None,
        name: str | None = None,
        suggestions: Sequence[str] = (),
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.expression = expression
        self.column = column
        self.name = name
        self.suggestions: tuple[str, ...] = tuple(suggestions)


class ExpressionSyntax(ConditionError):
    """The text is no single expression of the language."""

    code = "syntax"


class ForbiddenExpression(ConditionError):
    """The text uses something outside the allow-list."""

    code = "forbidden"


class ExpressionTooComplex(ConditionError):
    """The text is too long, too deep or has too many parts."""

    code = "too_complex"


class UnknownName(ConditionError):
    """A name that the expression cannot have."""

    code = "unknown_name"


class UnknownField(ConditionError):
    """A key or index that the data does not have."""

    code = "unknown_field"


class UnknownTaskReference(UnknownField):
    """`results.X` where X is no task of the plan; `name` is X."""


class ExpressionType(ConditionError):
    """An operation on types that do not go together."""

    code = "type"


class ExpressionBudget(ConditionError):
    """The evaluation took more steps or memory than it may."""

    code = "budget"


class ExpressionValue(ConditionError):
    """A value that an operation cannot take: a division by zero, a number out of range."""

    code = "value"


class NoTemplate(FsmAgentError):
    """No template fits the goal, or several do."""

    code = "no_template"
