"""The expression language: one small language for conditions, verifications, outputs and `${…}`.

An expression is compiled once, at load, against the names it may use; it is then evaluated, as often as wanted,
over plain data. asteval walks the tree, behind a gate: plans are untrusted. An error never means false.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fsm_agent.errors import UnknownTaskReference
from fsm_agent.plan.expression_evaluator import Evaluator
from fsm_agent.plan.expression_gate import Gate
from fsm_agent.plan.expression_names import Names
from fsm_agent.plan.expression_text import Source, parse, read
from fsm_agent.plan.expression_values import check_judgeable, check_value

__all__ = ["STEPS", "WIDE_STEPS", "Evaluator", "Expression", "Names", "UnknownTaskReference", "compile_expression"]

STEPS = 20_000
"""What one evaluation may cost: a step a node, and the lengths of what is walked."""

WIDE_STEPS = 10 * STEPS
"""The same for `foreach` and `output`."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A checked expression. Immutable: runs and threads may share it, each with its own Evaluator.

    `names_used` are the names it reads (`context`, not `context.budget`). `result_ids` are the tasks named by
    `results.X` or `results['X']`, each with its 1-based column, in the order of the text; `whole_results` says that
    `results` is also used in another way.
    """

    text: str
    names_used: frozenset[str]
    result_ids: tuple[tuple[str, int], ...]
    whole_results: bool
    source: Source = field(repr=False)
    tree: ast.expr = field(repr=False)

    def value(self, names: Mapping[str, Any], evaluator: Evaluator | None = None, *, wide: bool = False) -> Any:
        """Python's own value over plain data; it may share parts with `names`, so do not change it.

        `wide` gives ten times the steps. Raises ConditionError.
        """
        evaluator = evaluator or Evaluator()
        return evaluator.evaluate(self.tree, self.source, names, WIDE_STEPS if wide else STEPS, check_value)

    def test(self, names: Mapping[str, Any], evaluator: Evaluator | None = None) -> bool:
        """The truth of the value. Raises ConditionError: an error is never false."""
        evaluator = evaluator or Evaluator()
        return bool(evaluator.evaluate(self.tree, self.source, names, STEPS, check_judgeable))


def compile_expression(text: str, names: Names) -> Expression:
    """The expression that a text is, with every name and construct checked.

    Raises ConditionError: ExpressionSyntax, ForbiddenExpression, ExpressionTooComplex, UnknownName, UnknownField
    (UnknownTaskReference for `results.X`), ExpressionValue; each with its column.
    """
    source = read(text)
    tree = parse(source)
    gate = Gate(source, names)
    gate.check(tree)
    return Expression(text, frozenset(gate.roots), tuple(gate.result_ids), gate.whole_results, source, tree)
