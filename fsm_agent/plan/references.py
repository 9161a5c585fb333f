"""`${…}` in parameters: values in which expressions stand, compiled at load and rendered for each visit.

A string that is one `${…}` as a whole becomes the expression's value and keeps its type. Inside a longer string the
value is formatted: text as it is, anything else as compact JSON. `$${` is a literal `${`. Keys are never templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fsm_agent.errors import ConditionError, ExpressionBudget, ExpressionSyntax, ExpressionTooComplex
from fsm_agent.jsonable import copy_plain
from fsm_agent.plan.expression_names import Names
from fsm_agent.plan.expression_text import closing_brace
from fsm_agent.plan.expression_values import MAX_VALUE_ITEMS, MAX_VALUE_LETTERS, size_of
from fsm_agent.plan.expressions import STEPS, WIDE_STEPS, Evaluator, Expression, compile_expression

MAX_DEPTH = 100
MAX_EXPRESSIONS = 1_000
"""In one string."""

_OPENING = re.compile(r"\$?\$\{")
_PLAIN_KEY = re.compile(r"\w[\w-]*")


@dataclass(frozen=True, slots=True)
class Template:
    """A value with `${…}` in it. Immutable: runs and threads may share it.

    `expressions` are all of them, each with the path of its string (`parameters.a[0]`); `constant` says that there
    are none.
    """

    expressions: tuple[tuple[str, Expression], ...]
    constant: bool
    root: _Part

    def render(self, names: Mapping[str, Any], evaluator: Evaluator | None = None) -> Any:
        """Fresh plain data, with each expression evaluated over `names`; all of them share one budget.

        Raises ConditionError; its message begins with the path of the field.
        """
        if type(self.root) is _Constant:
            return copy_plain(self.root.value)
        return self.root.render(_Rendering(names, evaluator or Evaluator()))


class _Rendering:
    """One rendering of one template, and what it may still cost and hold."""

    def __init__(self, names: Mapping[str, Any], evaluator: Evaluator) -> None:
        self._names = names
        self._evaluator = evaluator
        self._steps = WIDE_STEPS
        self._items = MAX_VALUE_ITEMS
        self._letters = MAX_VALUE_LETTERS

    def value(self, path: str, expression: Expression) -> Any:
        """The value of an expression. Raises ConditionError with the path."""
        evaluator, steps = self._evaluator, min(STEPS, self._steps)
        try:
            value = evaluator.evaluate(expression.tree, expression.source, self._names, steps, self._admitted)
        except ConditionError as error:
            raise _at(path, error) from None
        self._steps -= steps - evaluator.meter.left
        return value

    def _admitted(self, value: Any) -> Any:
        items, letters = size_of(value)
        self._items -= items
        self._letters -= letters
        if self._items < 0 or self._letters < 0:
            raise ExpressionBudget("all that is filled in becomes too large", hint="hand large data over in a file")
        return value


@dataclass(frozen=True, slots=True)
class _Constant:
    value: Any

    def render(self, _: _Rendering) -> Any:
        return copy_plain(self.value)


@dataclass(frozen=True, slots=True)
class _Whole:
    path: str
    expression: Expression

    def render(self, rendering: _Rendering) -> Any:
        return copy_plain(rendering.value(self.path, self.expression))


@dataclass(frozen=True, slots=True)
class _Text:
    path: str
    pieces: tuple[str | Expression, ...]

    def render(self, rendering: _Rendering) -> str:
        values = (
            piece if isinstance(piece, str) else _formatted(rendering.value(self.path, piece)) for piece in self.pieces
        )
        return "".join(values)


@dataclass(frozen=True, slots=True)
class _Object:
    members: tuple[tuple[Any, _Part], ...]

    def render(self, rendering: _Rendering) -> dict[Any, Any]:
        return {key: part.render(rendering) for key, part in self.members}


@dataclass(frozen=True, slots=True)
class _Array:
    items: tuple[_Part, ...]

    def render(self, rendering: _Rendering) -> list[Any]:
        return [part.render(rendering) for part in self.items]


_Part = _Constant | _Whole | _Text | _Object | _Array


def compile_template(
    value: Any, names: Names, path: str = "parameters"
) -> tuple[Template | None, list[tuple[str, ConditionError]]]:
    """The template that a value is, or None and every problem in it, each with the path of its string.

    Nothing is evaluated. `path` is the path of the value itself.
    """
    compiler = _Compiler(names)
    root = compiler.part(value, path, 0)
    if compiler.problems:
        return None, compiler.problems
    found = tuple(compiler.expressions)
    return Template(found, not found, root), []


class _Compiler:
    """One walk over one value."""

    def __init__(self, names: Names) -> None:
        self.expressions: list[tuple[str, Expression]] = []
        self.problems: list[tuple[str, ConditionError]] = []
        self._names = names

    def part(self, value: Any, path: str, depth: int) -> _Part:
        if type(value) is str:
            return self._string(value, path) if "${" in value else _Constant(value)
        if type(value) not in (dict, list):
            return _Constant(value)
        if depth >= MAX_DEPTH:
            self.problems.append((path, ExpressionTooComplex(f"it is nested deeper than {MAX_DEPTH} levels")))
            return _Constant(None)
        if type(value) is list:
            return self._array(value, path, depth)
        return self._object(value, path, depth)

    def _object(self, value: dict[Any, Any], path: str, depth: int) -> _Part:
        members = [(key, self.part(item, f"{path}{_step(key)}", depth + 1)) for key, item in value.items()]
        constants = {key: part.value for key, part in members if isinstance(part, _Constant)}
        return _Constant(constants) if len(constants) == len(members) else _Object(tuple(members))

    def _array(self, value: list[Any], path: str, depth: int) -> _Part:
        items = [self.part(item, f"{path}[{place}]", depth + 1) for place, item in enumerate(value)]
        constants = [part.value for part in items if isinstance(part, _Constant)]
        return _Constant(constants) if len(constants) == len(items) else _Array(tuple(items))

    def _string(self, text: str, path: str) -> _Part:
        try:
            pieces = _cut(text)
        except ConditionError as error:
            self.problems.append((path, error))
            return _Constant(None)
        compiled = [self._expression(text[piece], path) if type(piece) is slice else piece for piece in pieces]
        if len(pieces) == 1 and isinstance(compiled[0], Expression):
            return _Whole(path, compiled[0])
        literal = [piece for piece in compiled if isinstance(piece, str)]
        return _Constant("".join(literal)) if len(literal) == len(compiled) else _Text(path, tuple(compiled))

    def _expression(self, text: str, path: str) -> Expression | str:
        try:
            expression = compile_expression(text, self._names)
        except ConditionError as error:
            self.problems.append((path, error))
            return ""
        self.expressions.append((path, expression))
        return expression


def _cut(text: str) -> list[str | slice]:
    """A string in pieces: literal text, and where the expressions stand. Linear in its length."""
    pieces: list[str | slice] = []
    end = expressions = 0
    while opening := _OPENING.search(text, end):
        if opening.start() > end:
            pieces.append(text[end : opening.start()])
        end = opening.end()
        if opening[0] == "$${":
            pieces.append("${")
            continue
        close = closing_brace(text, end)
        if close < 0:
            raise ExpressionSyntax(
                "'${' is never closed",
                expression=text,
                column=opening.start() + 1,
                hint="close it with '}', or write '$${' for a literal '${'",
            )
        expressions += 1
        if expressions > MAX_EXPRESSIONS:
            raise ExpressionTooComplex(f"one string has more than {MAX_EXPRESSIONS:,} expressions")
        pieces.append(slice(end, close))
        end = close + 1
    if end < len(text):
        pieces.append(text[end:])
    return pieces


def _formatted(value: Any) -> str:
    return value if type(value) is str else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _step(key: Any) -> str:
    """One step down a path: `.name`, or in brackets where the key is no plain word."""
    text = str(key)
    return f".{text}" if _PLAIN_KEY.fullmatch(text) else f"[{json.dumps(text, ensure_ascii=False)}]"


def _at(path: str, error: ConditionError) -> ConditionError:
    """The same error, its message beginning with the path."""
    return type(error)(
        f"{path}: {error.message}",
        expression=error.expression,
        column=error.column,
        name=error.name,
        suggestions=error.suggestions,
        hint=error.hint,
    )
