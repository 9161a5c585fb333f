"""The gate: what of Python an expression may use, checked once, at load.

One walk over the tree, without recursion, from the outside in and from left to right. What comes out may be
evaluated: each node has a handler, each name is known, and no attribute, call or literal is outside the allow-list.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

from fsm_agent.errors import (
    ConditionError,
    ExpressionTooComplex,
    ExpressionValue,
    ForbiddenExpression,
    UnknownField,
    UnknownName,
    UnknownTaskReference,
)
from fsm_agent.plan.expression_functions import FUNCTIONS, METHOD_NAMES
from fsm_agent.plan.expression_names import Names
from fsm_agent.plan.expression_operators import BINARY
from fsm_agent.plan.expression_text import REFUSED_CHARACTERS, Source, refused_character
from fsm_agent.plan.nearness import did_you_mean, near

MAX_NODES = 150
MAX_DEPTH = 20
MAX_LITERAL_BITS = 64
MAX_LITERAL_TEXT = 300
MAX_COMPREHENSIONS = 2

RESULT_FIELDS = frozenset({"status", "success", "data", "error", "fallback_used", "verified"})
"""What `results` knows of each task."""

_CONSTANTS = frozenset({str, int, float, bool, type(None)})
_SIGNS = (ast.Not, ast.UAdd, ast.USub)
_WORDS: Mapping[type[ast.AST], str] = {
    ast.Lambda: "lambda",
    ast.NamedExpr: "':='",
    ast.JoinedStr: "an f-string",
    ast.Starred: "'*' before an argument",
    ast.SetComp: "a set comprehension",
    ast.DictComp: "a dict comprehension",
    ast.Slice: "a slice among several indexes",
    ast.Pow: "'**'",
    ast.MatMult: "'@'",
    ast.LShift: "'<<'",
    ast.RShift: "'>>'",
    ast.BitAnd: "'&'",
    ast.BitOr: "'|'",
    ast.BitXor: "'^'",
    ast.Invert: "'~'",
    ast.Tuple: "a tuple",
    ast.Set: "a set",
    ast.GeneratorExp: "a generator",
}


class Gate:
    """One walk over one tree, and what it found. Raises ConditionError for the first thing that is refused.

    A node waits with its depth and the variables of the comprehension it stands in (None: in none).
    """

    def __init__(self, source: Source, names: Names) -> None:
        self.roots: set[str] = set()
        self.result_ids: list[tuple[str, int]] = []
        self.whole_results = False
        self._source = source
        self._bytes = b"" if source.code.isascii() else source.code.encode()
        self._names = names
        self._pending: list[tuple[ast.expr, int, frozenset[str] | None]] = []
        self._nodes = 0
        self._comprehensions = 0

    def check(self, tree: ast.expr) -> None:
        """The whole tree of an expression."""
        if isinstance(tree, ast.Tuple | ast.Set | ast.GeneratorExp):
            hint = "take away the comma" if isinstance(tree, ast.Tuple) else "use a list"
            raise self._error(
                ForbiddenExpression, tree, f"{_WORDS[type(tree)]} cannot be the value of an expression", hint=hint
            )
        pending = self._pending
        pending.append((tree, 1, None))
        while pending:
            node, depth, scope = pending.pop()
            self._count(node, 1, depth)
            check = _CHECKS.get(node.__class__)
            if check is None:
                raise self._forbidden(node, node)
            check(self, node, depth + 1, scope)

    def _count(self, node: ast.AST, nodes: int, depth: int) -> None:
        self._nodes += nodes
        if depth > MAX_DEPTH:
            raise self._error(ExpressionTooComplex, node, f"more than {MAX_DEPTH} levels are nested in one another")
        if self._nodes > MAX_NODES:
            raise self._error(ExpressionTooComplex, node, f"the expression has more than {MAX_NODES} parts")

    def _push(self, nodes: Iterable[ast.expr | None], depth: int, scope: frozenset[str] | None) -> None:
        """The children of a node, in the order of the text: the walk takes the last one first."""
        self._pending += [(node, depth, scope) for node in reversed([*nodes]) if node is not None]

    # names

    def _name(self, node: ast.Name, _: int, scope: frozenset[str] | None) -> None:
        self._check_spelling(node, node.id, node.end_col_offset)
        name = node.id
        if scope is not None and name in scope:
            return
        if name not in self._names:
            raise self._unknown_name(node)
        self.roots.add(name)
        if name == "results":
            self.whole_results = True

    def _unknown_name(self, node: ast.Name) -> ConditionError:
        name, names = node.id, self._names
        if name in FUNCTIONS:
            return self._error(ForbiddenExpression, node, f"{name} is a function and must be called", name=name)
        known = near(name, {*names.fixed, *names.extra, "True", "False", "None"})
        if names.tasks is not None and name in names.tasks:
            hint = "the result of a task is under results"
        elif "context" in names.fixed:
            hint = "other keys of the context are read by context.get('key')"
        else:
            hint = ""
        return self._error(UnknownName, node, f"there is no name {name!r}", name=name, suggestions=known, hint=hint)

    def _check_spelling(self, node: ast.AST, name: str, end: int | None) -> None:
        """No underscore at the front, and in the text the very letters that Python reads."""
        if name[0] == "_":
            place = (end or 0) - len(name.encode())
            raise self._error(ForbiddenExpression, node, f"{name!r} begins with an underscore", place=place, name=name)
        if self._bytes and end is not None and not self._bytes.endswith(name.encode(), 0, end):
            raise self._error(
                ForbiddenExpression, node, f"a name is written with unusual letters; write {name!r}", name=name
            )

    def _attribute(self, node: ast.Attribute, depth: int, scope: frozenset[str] | None) -> None:
        self._check_spelling(node, node.attr, node.end_col_offset)
        place = (node.end_col_offset or 0) - len(node.attr.encode())
        self._member(node.value, node.attr, place, depth, scope)

    def _subscript(self, node: ast.Subscript, depth: int, scope: frozenset[str] | None) -> None:
        key = node.slice
        if isinstance(key, ast.Slice):
            self._count(node, 1, depth)
            self._push([node.value, key.lower, key.upper, key.step], depth + 1, scope)
        elif isinstance(key, ast.Constant):
            self._push([key], depth, scope)
            self._member(node.value, key.value, key.col_offset, depth, scope)
        else:
            self._push([node.value, key], depth, scope)

    # results

    def _member(self, owner: ast.expr, key: Any, place: int, depth: int, scope: frozenset[str] | None) -> None:
        """`owner.key` or `owner['key']`, the key at `place`: perhaps of `results`, or of the result of a task."""
        if self._is_results(owner, scope):
            self._count(owner, 1, depth)
            self._reference(owner, key, place)
            return
        if (
            isinstance(owner, ast.Attribute | ast.Subscript)
            and self._names.tasks is not None
            and self._is_results(owner.value, scope)
            and key not in RESULT_FIELDS
        ):
            raise self._error(
                UnknownField,
                owner,
                f"the result of a task has no field {key!r}",
                place=place,
                name=str(key),
                suggestions=near(str(key), RESULT_FIELDS),
                hint="what the skill gave back is under .data",
            )
        self._push([owner], depth, scope)

    def _is_results(self, node: ast.expr, scope: frozenset[str] | None) -> bool:
        return (
            isinstance(node, ast.Name)
            and node.id == "results"
            and "results" in self._names
            and not (scope and "results" in scope)
        )

    def _reference(self, owner: ast.expr, key: Any, place: int) -> None:
        self.roots.add("results")
        tasks = self._names.tasks
        if tasks is not None and (type(key) is not str or key not in tasks):
            raise self._error(
                UnknownTaskReference,
                owner,
                f"there is no task {key!r}",
                place=place,
                name=str(key),
                suggestions=near(str(key), tasks),
                hint="" if type(key) is str else "the id of a task is text: write it in quotes",
            )
        if type(key) is str:
            self.result_ids.append((key, self._source.column(place)))
        else:
            self.whole_results = True

    # calls

    def _call(self, node: ast.Call, depth: int, scope: frozenset[str] | None) -> None:
        func = node.func
        self._count(func, 1 + len(node.keywords), depth)
        options: frozenset[str] = frozenset()
        if isinstance(func, ast.Attribute):
            self._check_spelling(func, func.attr, func.end_col_offset)
            self._check_method(func, len(node.args))
            self._push([func.value, *node.args, *(option.value for option in node.keywords)], depth, scope)
        elif isinstance(func, ast.Name):
            self._check_spelling(func, func.id, func.end_col_offset)
            options = self._check_function(func, len(node.args))
            self._push([*node.args, *(option.value for option in node.keywords)], depth, scope)
        else:
            raise self._error(ForbiddenExpression, node, "only functions and methods that have a name can be called")
        for option in node.keywords:
            if option.arg not in options:
                raise self._error(ForbiddenExpression, option, f"{option.arg or '**'} is no option here")
            self._check_spelling(option, option.arg, option.col_offset + len(option.arg))

    def _check_method(self, func: ast.Attribute, arguments: int) -> None:
        name, place = func.attr, (func.end_col_offset or 0) - len(func.attr.encode())
        if name not in METHOD_NAMES:
            raise self._unknown_callee(func, place, name, METHOD_NAMES)
        self._check_arguments(func, place, name, METHOD_NAMES[name], arguments)

    def _check_function(self, func: ast.Name, arguments: int) -> frozenset[str]:
        callee = FUNCTIONS.get(func.id)
        if callee is None:
            raise self._unknown_callee(func, func.col_offset, func.id, FUNCTIONS)
        self._check_arguments(func, func.col_offset, func.id, (callee.least, callee.most), arguments)
        return callee.options

    def _unknown_callee(self, func: ast.expr, place: int, name: str, known: Iterable[str]) -> ConditionError:
        message = f"{name!r} cannot be called in an expression"
        return self._error(ForbiddenExpression, func, message, place=place, name=name, suggestions=near(name, known))

    def _check_arguments(self, func: ast.expr, place: int, name: str, takes: tuple[int, int], given: int) -> None:
        least, most = takes
        if not least <= given <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            message = f"{name!r} takes {wanted} argument{'' if wanted == '1' else 's'}, not {given}"
            raise self._error(ForbiddenExpression, func, message, place=place, name=name)

    # literals and operators

    def _constant(self, node: ast.Constant, _: int, __: object) -> None:
        value = node.value
        if type(value) not in _CONSTANTS:
            word = type(value).__name__
            raise self._error(ForbiddenExpression, node, f"a literal of the type {word} is not allowed")
        if isinstance(value, str):
            self._literal_text(node, value)
        elif isinstance(value, int):
            if value.bit_length() > MAX_LITERAL_BITS:
                message = f"a whole number in an expression has at most {MAX_LITERAL_BITS} bits"
                raise self._error(ExpressionTooComplex, node, message)
        elif isinstance(value, float) and not isfinite(value):
            raise self._error(ExpressionValue, node, "a number is too large")

    def _literal_text(self, node: ast.Constant, text: str) -> None:
        if len(text) > MAX_LITERAL_TEXT:
            message = f"a text in an expression has at most {MAX_LITERAL_TEXT} characters"
            raise self._error(ExpressionTooComplex, node, message)
        if not text.isprintable() and (bad := REFUSED_CHARACTERS.search(text)):
            raise refused_character(self._source.text, bad, self._source.column(node.col_offset))

    def _compare(self, node: ast.Compare, depth: int, scope: frozenset[str] | None) -> None:
        operands = [node.left, *node.comparators]
        for place, sign in enumerate(node.ops):
            if isinstance(sign, ast.Is | ast.IsNot) and not any(map(_is_singleton, operands[place : place + 2])):
                raise self._error(
                    ForbiddenExpression, operands[place + 1], "'is' is for None, True and False only", hint="use =="
                )
        self._push(operands, depth, scope)

    def _binary(self, node: ast.BinOp, depth: int, scope: frozenset[str] | None) -> None:
        if node.op.__class__ not in BINARY:
            raise self._forbidden(node, node.op)
        self._push([node.left, node.right], depth, scope)

    def _unary(self, node: ast.UnaryOp, depth: int, scope: frozenset[str] | None) -> None:
        if node.op.__class__ not in _SIGNS:
            raise self._forbidden(node, node.op)
        self._push([node.operand], depth, scope)

    def _boolean(self, node: ast.BoolOp, depth: int, scope: frozenset[str] | None) -> None:
        self._push(node.values, depth, scope)

    def _choice(self, node: ast.IfExp, depth: int, scope: frozenset[str] | None) -> None:
        self._push([node.body, node.test, node.orelse], depth, scope)

    def _display(self, node: ast.List | ast.Tuple | ast.Set, depth: int, scope: frozenset[str] | None) -> None:
        self._push(node.elts, depth, scope)

    def _dict(self, node: ast.Dict, depth: int, scope: frozenset[str] | None) -> None:
        if None in node.keys:
            raise self._error(ForbiddenExpression, node, "'**' is not allowed")
        self._push([part for pair in zip(node.keys, node.values, strict=True) for part in pair], depth, scope)

    # comprehensions

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, depth: int, scope: frozenset[str] | None) -> None:
        self._comprehensions += 1
        if scope is not None:
            raise self._error(ForbiddenExpression, node, "comprehensions cannot be nested")
        if self._comprehensions > MAX_COMPREHENSIONS:
            raise self._error(
                ExpressionTooComplex, node, f"an expression has at most {MAX_COMPREHENSIONS} comprehensions"
            )
        if len(node.generators) > 1 or node.generators[0].is_async:
            raise self._error(ForbiddenExpression, node, "a comprehension has one 'for'")
        generator = node.generators[0]
        variables = self._variables(generator.target)
        self._count(node, 1 + len(variables), depth)
        self._push([node.elt, *generator.ifs], depth, variables)
        self._push([generator.iter], depth, frozenset())

    def _variables(self, target: ast.expr) -> frozenset[str]:
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        for name in names:
            if not isinstance(name, ast.Name):
                raise self._error(ForbiddenExpression, name, "the variables of a comprehension are plain names")
            self._check_spelling(name, name.id, name.end_col_offset)
            if name.id in FUNCTIONS:
                raise self._error(ForbiddenExpression, name, f"{name.id} is a function; take another name")
        return frozenset(name.id for name in names if isinstance(name, ast.Name))

    # errors

    def _forbidden(self, node: ast.expr, what: ast.AST) -> ConditionError:
        word = _WORDS.get(type(what)) or type(what).__name__.lower()
        return self._error(ForbiddenExpression, node, f"{word} is not allowed in an expression")

    def _error(
        self, kind: type[ConditionError], node: ast.AST, message: str, *, place: int | None = None, **details: Any
    ) -> ConditionError:
        column = self._source.column(getattr(node, "col_offset", 0) if place is None else place)
        hint = did_you_mean(details.get("suggestions", ())) or details.pop("hint", "")
        return kind(message, expression=self._source.text, column=column, **{**details, "hint": hint})


def _is_singleton(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or node.value is True or node.value is False)


_CHECKS: Mapping[type[ast.AST], Callable[[Gate, Any, int, frozenset[str] | None], None]] = {
    ast.Name: Gate._name,
    ast.Attribute: Gate._attribute,
    ast.Subscript: Gate._subscript,
    ast.Call: Gate._call,
    ast.Constant: Gate._constant,
    ast.Compare: Gate._compare,
    ast.BinOp: Gate._binary,
    ast.UnaryOp: Gate._unary,
    ast.BoolOp: Gate._boolean,
    ast.IfExp: Gate._choice,
    ast.List: Gate._display,
    ast.Tuple: Gate._display,
    ast.Set: Gate._display,
    ast.Dict: Gate._dict,
    ast.ListComp: Gate._comprehension,
    ast.GeneratorExp: Gate._comprehension,
}
