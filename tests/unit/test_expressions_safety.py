"""What an expression must never do: reach Python, change data, tell data, or mix two runs."""

from __future__ import annotations

import copy
import gc
import threading
import time
import tracemalloc
import warnings
from contextlib import suppress
from typing import Any

import asteval
import pytest

from fsm_agent import errors
from fsm_agent.errors import ConditionError
from fsm_agent.plan.expressions import Evaluator, Names, compile_expression

NAMES = Names(frozenset({"context", "results", "goal"}))

F09 = [
    "().__class__.__base__.__subclasses__()",
    "__import__('os').system('id')",
    "results.a.__class__",
    "9**9**9",
    "'a'*10**9",
    "'a' * 1000000000",
    "[0 for _ in range(10**9)]",
    "[0 for x in range(1000000000)]",
    "(lambda: 0).__globals__",
    "context.get.__self__",
    "'{0.__class__}'.format(context)",
    "'\\x5f\\x5fimport\\x5f\\x5f'('os')",
    "context['__class__']",
    "1+" * 50_000 + "1",
    "(" * 5_000 + "1" + ")" * 5_000,
    "(x := 1)",
    "f'{context.__class__}'",
    "[x for x in ().__class__.__mro__]",
    "context.get('a').__init__.__globals__",
    "str.mro()",
    "sorted([context], key=print)",
    "getattr(context, '__class__')",
    "globals()",
    "print(1)",
    "print",
    "symtable",
    "exec('1')",
    "breakpoint()",
    "break",
    "pass",
    "raise ValueError",
    "assert 0",
]


@pytest.mark.parametrize("text", F09, ids=lambda text: text[:40])
def test_a_condition_cannot_run_code(text: str) -> None:
    data = {"context": {"a": 5}, "results": {"a": {"data": {}}}, "goal": "go"}
    before, evaluator = copy.deepcopy(data), Evaluator()
    tracemalloc.start()
    began = time.perf_counter()
    with pytest.raises(ConditionError):
        compile_expression(text, NAMES).value(data, evaluator)
    took, peak = time.perf_counter() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (data, took < 1, peak < 50_000_000) == (before, True, True)
    assert compile_expression("1 + 1 == 3", NAMES).test(data, evaluator) is False


SECRET = "s3cr3t-token"
"""A data value; no message may hold it."""


@pytest.mark.parametrize(
    "text",
    [
        "context.k + 1",
        "context.k > 1",
        "context.k * 2",
        "-context.k",
        "int(context.k)",
        "float(context.k)",
        "round(context.k)",
        "abs(context.k)",
        "sum([context.k])",
        "sum(context.k)",
        "min(1, context.k)",
        "sorted([context.k, 1])",
        "context[context.k]",
        "context.d[context.k]",
        "context.list[context.k]",
        "context.k[99]",
        "context.k.x",
        "context.k.index(1)",
        "context.list.index(context.k + '!')",
        "context.k in 5",
        "1 in context.k",
        "context.k.split('')",
        "context.k.startswith(1)",
        "'a'.find('a', context.k)",
        "{context.list: 1}",
        "{1, context.d}",
        "[a for a, b in [context.k]]",
        "[a for a, b in context.pairs]",
        "[x.y for x in context.list]",
        "round(1, context.k)",
        "(1, context.k)",
        "1 and (1, context.k)",
        "{context.k: {1}}",
        "context.odd",
        "context.list == context.odd",
        "str({context.k})",
        "[1][context.k:]",
    ],
)
def test_a_message_never_holds_data(text: str) -> None:
    data = {
        "context": {
            "k": SECRET,
            "d": {"a": SECRET},
            "list": [SECRET],
            "pairs": [[SECRET]],
            "odd": {SECRET},
        }
    }
    with pytest.raises(ConditionError) as caught:
        compile_expression(text, NAMES).value(data)
    error = caught.value
    told = [str(error), error.message, error.hint, str(error.name), *error.suggestions, repr(error), repr(error.args)]
    assert SECRET not in " ".join(told)
    assert error.__cause__ is None


def test_nothing_foreign_leaves_an_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Evaluator, node: Any) -> Any:
        raise OSError(SECRET)

    monkeypatch.setattr(Evaluator, "on_constant", broken)
    with pytest.raises(errors.ExpressionValue) as caught:
        compile_expression("goal or 1", NAMES).value({"goal": ""})
    assert (caught.value.column, SECRET in str(caught.value)) == (9, False)


def test_the_evaluator_is_astevals_with_an_allow_list() -> None:
    evaluator = Evaluator()
    assert isinstance(evaluator, asteval.Interpreter)
    assert not evaluator.use_numpy
    assert dict(evaluator.symtable) == {}
    assert sorted(kind.__name__ for kind in evaluator.node_handlers) == sorted(
        [
            *("Name", "Constant", "Attribute", "Call", "Subscript", "Slice", "IfExp"),
            *("Compare", "BoolOp", "UnaryOp", "BinOp"),
            *("List", "Tuple", "Dict", "Set", "ListComp", "GeneratorExp"),
        ]
    )


def test_the_process_wide_tables_of_asteval_are_left_alone() -> None:
    plain = asteval.Interpreter(use_numpy=False)
    assert plain("2 ** 3 + sum([len('abc')])") == 11


def test_no_data_stays_behind_in_the_evaluator() -> None:
    class Marked(list[int]):
        """A list that may be looked for among the living."""

    evaluator = Evaluator()
    data = {"context": {"xs": [1], "odd": Marked()}}
    for text in ("context.xs", "[x for x in context.xs if x.y]", "context.odd"):
        with suppress(ConditionError):
            compile_expression(text, NAMES).value(data, evaluator)
    del data
    gc.collect()
    assert not [thing for thing in gc.get_objects() if type(thing) is Marked]


def test_two_threads_with_an_evaluator_each_do_not_disturb_one_another() -> None:
    expression = compile_expression(
        "sum(x * context.n for x in context.xs) == context.n * 45 and [x + context.n for x in context.xs][9]", NAMES
    )
    wrong: list[Any] = []

    def work(number: int) -> None:
        evaluator = Evaluator()
        names = {"context": {"n": number, "xs": list(range(10))}}
        for _ in range(300):
            value = expression.value(names, evaluator)
            if value != 9 + number:
                wrong.append((number, value))

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 1_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("text", [r"'\d' == goal", r"'\777' == goal", "1or goal", "1if goal else 2", "0x1for goal"])
@pytest.mark.parametrize("action", ["ignore", "error", "default"])
def test_what_python_warns_about_is_refused_whatever_the_filters(text: str, action: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        with pytest.raises(errors.ExpressionSyntax):
            compile_expression(text, NAMES)


@pytest.mark.parametrize("text", [r"r'\d' == goal", r"'\\d' == goal", "goal == '1or 2'", "0x1f or 1e5 or 1_0 or 1."])
def test_what_only_looks_like_it_is_allowed(text: str) -> None:
    compile_expression(text, NAMES)


def test_the_value_shares_no_state_between_evaluations() -> None:
    expression = compile_expression("[1, {'a': []}]", NAMES)
    first = expression.value({})
    first[1]["a"].append(5)
    assert expression.value({}) == [1, {"a": []}]
