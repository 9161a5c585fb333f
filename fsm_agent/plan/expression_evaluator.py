"""asteval behind the gate: an interpreter that knows nothing but the allow-list, and guards each step."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from asteval import Interpreter

from fsm_agent.errors import (
    ConditionError,
    ExpressionBudget,
    ExpressionType,
    ExpressionValue,
    UnknownField,
    UnknownName,
)
from fsm_agent.plan.expression_functions import FUNCTIONS, METHODS, Callee
from fsm_agent.plan.expression_operators import BINARY, COMPARISONS, signed
from fsm_agent.plan.expression_text import Source
from fsm_agent.plan.expression_values import SURE_KINDS, Meter, Set, Stream, Tuple, checked, kind_of
from fsm_agent.plan.nearness import did_you_mean, near


class Evaluator(Interpreter):  # type: ignore[misc]  # asteval has no types
    """Walks checked trees, one at a time: one per run, never shared between threads.

    The tree of an expression must have passed the gate; text is never handed to asteval.
    """

    def __init__(self) -> None:
        super().__init__(symtable={}, minimal=True, use_numpy=False)
        self.meter = Meter()
        self.symtable: Mapping[str, Any] = {}
        self.node_handlers: Mapping[type[ast.AST], Callable[[Any], Any]] = {
            ast.Name: self.on_name,
            ast.Constant: self.on_constant,
            ast.Attribute: self.on_attribute,
            ast.Call: self.on_call,
            ast.Compare: self.on_compare,
            ast.BoolOp: self.on_boolop,
            ast.UnaryOp: self.on_unaryop,
            ast.BinOp: self.on_binop,
            ast.IfExp: self.on_ifexp,
            ast.Subscript: self.on_subscript,
            ast.Slice: self.on_slice,
            ast.List: self.on_list,
            ast.Tuple: self.on_tuple,
            ast.Dict: self.on_dict,
            ast.Set: self.on_set,
            ast.ListComp: self.on_listcomp,
            ast.GeneratorExp: self.on_generatorexp,
        }
        self._source = Source("", "", 0)
        self._locals: Mapping[str, Any] | None = None

    def evaluate(
        self, tree: ast.expr, source: Source, names: Mapping[str, Any], steps: int, check: Callable[[Any], Any]
    ) -> Any:
        """The value of a checked tree over these names, in at most so many steps, if `check` lets it pass.

        Raises ConditionError.
        """
        self._source = source
        self.meter.left = steps
        self.symtable = names
        try:
            return check(self.run(tree))
        except ConditionError as error:
            if not error.expression:
                self._placed(error, tree)
            raise
        finally:
            self.symtable, self._locals = {}, None

    def run(self, node: ast.expr | None, *_: Any, **__: Any) -> Any:
        """The value of one node. Whatever goes wrong comes out as a ConditionError with its place."""
        if node is None:  # a part of a slice that is not given
            return None
        meter = self.meter
        meter.left -= 1
        try:
            if meter.left < 0:
                meter.charge(0)
            return self.node_handlers[node.__class__](node)
        except ConditionError as error:
            if not error.expression:
                self._placed(error, node)
            raise
        except Exception as error:  # noqa: BLE001  # nothing but typed errors leaves an expression
            raise self._placed(_typed(error), node) from None

    def _placed(self, error: ConditionError, node: ast.expr, place: int | None = None) -> ConditionError:
        error.expression = self._source.text
        error.column = self._source.column(node.col_offset if place is None else place)
        return error

    def on_name(self, node: ast.Name) -> Any:
        """A variable of the comprehension, else one of the names given."""
        name = node.id
        if self._locals is not None and name in self._locals:
            return self._locals[name]
        try:
            value = self.symtable[name]
        except KeyError:
            meant = near(name, self.symtable)
            raise UnknownName(
                f"there is no name {name!r} here", name=name, suggestions=meant, hint=did_you_mean(meant)
            ) from None
        return value if type(value) in SURE_KINDS else checked(value)

    def on_attribute(self, node: ast.Attribute) -> Any:
        """A key of the data: nothing is looked up on a Python object."""
        owner = self.run(node.value)
        if type(owner) is not dict:
            raise self._at_attribute(
                ExpressionType(f"{kind_of(owner)} has no fields, so no {node.attr!r}", name=node.attr), node
            )
        try:
            value = owner[node.attr]
        except KeyError:
            raise self._at_attribute(_unknown_field(node.attr, owner), node) from None
        return value if type(value) in SURE_KINDS else checked(value)

    def _at_attribute(self, error: ConditionError, node: ast.Attribute) -> ConditionError:
        return self._placed(error, node, (node.end_col_offset or 0) - len(node.attr.encode()))

    def on_subscript(self, node: ast.Subscript) -> Any:
        """A key of an object, or an index or a slice of a list, a text or a tuple."""
        owner, key = self.run(node.value), self.run(node.slice)
        kind = type(owner)
        if kind not in (dict, list, str, Tuple):
            raise ExpressionType(f"{kind_of(owner)} has no items")
        if type(key) is slice:
            return self._part(owner, key)
        if kind is not dict and type(key) not in (int, bool):
            raise ExpressionType(f"an index is a whole number, not {kind_of(key)}")
        try:
            return checked(owner[key])
        except LookupError:
            written = node.slice.value if isinstance(node.slice, ast.Constant) else None
            raise self._placed(_unknown_field(written, owner), node.slice) from None

    def _part(self, owner: Any, key: slice) -> Any:
        if type(owner) is dict:
            raise ExpressionType("an object has keys, and no slices")
        length = len(range(*key.indices(len(owner))))
        if type(owner) is str:
            self.meter.charge(length // 32)
            return owner[key]
        self.meter.charge(length)
        return Tuple(owner[key]) if type(owner) is Tuple else owner[key]

    def on_compare(self, node: ast.Compare) -> bool:
        """A comparison, or a chain of them: each operand is evaluated once, and only as far as needed."""
        left = self.run(node.left)
        for sign, operand in zip(node.ops, node.comparators, strict=True):
            right = self.run(operand)
            if not COMPARISONS[sign.__class__](self.meter, left, right):
                return False
            left = right
        return True

    def on_unaryop(self, node: ast.UnaryOp) -> Any:
        """`not` of anything, a sign of a number."""
        value = self.run(node.operand)
        return not value if node.op.__class__ is ast.Not else signed(node.op.__class__, value)

    def on_binop(self, node: ast.BinOp) -> Any:
        """Arithmetic."""
        return BINARY[node.op.__class__](self.meter, self.run(node.left), self.run(node.right))

    def on_call(self, node: ast.Call) -> Any:
        """A function by its name, or a method by the exact type of its receiver. No callable is ever a value."""
        func = node.func
        receiver: tuple[Any, ...] = ()
        if isinstance(func, ast.Attribute):
            owner = self.run(func.value)
            callee = METHODS.get(type(owner), _NO_METHODS).get(func.attr)
            if callee is None:
                message = f"{kind_of(owner)} has no method {func.attr!r}"
                raise self._at_attribute(ExpressionType(message, name=func.attr), func)
            receiver = (owner,)
        else:
            callee = FUNCTIONS[func.id]  # type: ignore[attr-defined]  # the gate lets through attributes and names
        arguments = [self.run(argument) for argument in node.args]
        options = {str(option.arg): self.run(option.value) for option in node.keywords}
        return callee.call(self.meter, *receiver, *arguments, **options)

    def on_tuple(self, node: ast.Tuple) -> Tuple:
        """A tuple, of the kind that tells it from one in the data."""
        return Tuple(self.on_list(node))

    def on_set(self, node: ast.Set) -> Set:
        """A set, likewise."""
        return Set(self.on_list(node))

    def on_listcomp(self, node: ast.ListComp) -> list[Any]:
        """A list comprehension."""
        return list(self._comprehended(node, self._ranged(node)))

    def on_generatorexp(self, node: ast.GeneratorExp) -> Stream:
        """A generator expression: as in Python, what it ranges over is evaluated now, the rest when asked for."""
        return Stream(self._comprehended(node, self._ranged(node)))

    def _ranged(self, node: ast.ListComp | ast.GeneratorExp) -> Iterator[Any]:
        return self.meter.ordered_items(self.run(node.generators[0].iter))

    def _comprehended(self, node: ast.ListComp | ast.GeneratorExp, items: Iterator[Any]) -> Iterator[Any]:
        # Comprehensions are not nested, so no other one has variables while this one is at work.
        target, tests = node.generators[0].target, node.generators[0].ifs
        for item in items:
            self._locals = _bound(target, item)
            wanted = all(self.run(test) for test in tests)
            value = self.run(node.elt) if wanted else None
            self._locals = None
            if wanted:
                yield value


_NO_METHODS: Mapping[str, Callee] = {}


def _bound(target: ast.expr, item: Any) -> Mapping[str, Any]:
    """The variables of a comprehension for one item."""
    if isinstance(target, ast.Name):
        return {target.id: item}
    names = [name.id for name in target.elts]  # type: ignore[attr-defined]  # the gate allows a tuple of names only
    if type(item) not in (list, Tuple):
        raise ExpressionType(f"{kind_of(item)} cannot be taken apart into {len(names)} variables")
    if len(item) != len(names):
        raise ExpressionValue(f"an item does not have the {len(names)} parts that there are variables for")
    return dict(zip(names, map(checked, item), strict=True))


def _unknown_field(key: Any, owner: Any) -> UnknownField:
    """`key` as it is written in the expression; None where it was computed, and so may be data."""
    if type(owner) is not dict:
        return UnknownField(f"{kind_of(owner)} has no item at this index", name=None if key is None else str(key))
    if key is None:
        return UnknownField("the object has no such key")
    meant = near(str(key), [name for name in owner if type(name) is str])
    return UnknownField(
        f"the object has no key {key!r}",
        name=str(key),
        suggestions=meant,
        hint=did_you_mean(meant) or "read a key that may be missing by .get('key')",
    )


def _typed(error: Exception) -> ConditionError:
    """A foreign exception as one of ours. Its own message may hold data values and is left out."""
    if isinstance(error, ZeroDivisionError):
        return ExpressionValue("division by zero")
    if isinstance(error, OverflowError):
        return ExpressionValue("a number is too large")
    if isinstance(error, TypeError):
        return ExpressionType("the types do not fit the operation")
    if isinstance(error, RecursionError | MemoryError):
        return ExpressionBudget("the data is too deep or too large for the operation")
    return ExpressionValue(f"the operation cannot take these values ({type(error).__name__})")
