"""Random expressions, beside plain Python: the same value or a typed error, no crash, and the names unchanged."""

from __future__ import annotations

import copy
import warnings
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent.errors import ConditionError
from fsm_agent.plan.expressions import Evaluator, Names, compile_expression

DATA: dict[str, Any] = {
    "context": {
        "n": 7,
        "f": -2.5,
        "t": True,
        "none": None,
        "s": "Ulm, 乌尔姆",
        "xs": [3, -1, 2, 2],
        "ws": ["b", "", "乌尔姆"],
        "d": {"a": 1, "b": [2, None]},
        "rows": [{"k": 1, "w": "x"}, {"k": 5, "w": "y"}],
    },
    "n": 2,
    "s": "ulm",
    "x": [9],
}
NAMES = Names(frozenset({"context"}), frozenset({"n", "s", "x"}))


class Fields(dict[str, Any]):
    """A dict as the language sees it, for Python: keys are attributes, `keys`, `values` and `items` give lists."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError from None

    def keys(self) -> Any:
        return list(super().keys())

    def values(self) -> Any:
        return list(super().values())

    def items(self) -> Any:
        return [[key, value] for key, value in super().items()]


def with_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return Fields({key: with_fields(item) for key, item in value.items()})
    return [with_fields(item) for item in value] if isinstance(value, list) else value


def python(text: str) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return eval(text, {"__builtins__": BUILTINS, **with_fields(DATA)})


BUILTINS = {
    function.__name__: function
    for function in (len, min, max, sum, any, all, round, abs, int, float, str, bool, sorted, list)
}


def words(text: str) -> list[str]:
    return text.split()


def infix(operands: st.SearchStrategy[str], *signs: str) -> st.SearchStrategy[str]:
    return st.builds("({} {} {})".format, operands, st.sampled_from(signs), operands)


def call(form: str, *arguments: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(form.format, *arguments)


def well_typed() -> tuple[st.SearchStrategy[str], ...]:
    """Numbers, texts, truths and lists of numbers, in terms of one another."""
    number = st.deferred(lambda: numbers)
    text = st.deferred(lambda: texts)
    truth = st.deferred(lambda: truths)
    series = st.deferred(lambda: lists)
    series_of_texts = st.one_of(
        st.just("context.ws"), call("{}.split()", text), call("{}.split(',', {})", text, number), call("list({})", text)
    )
    numbers = st.one_of(
        st.sampled_from(["0", "1", "2.5", "-3", "10", "context.n", "n", "context['f']", "context.get('n', 4)"]),
        st.integers(-9, 9).map(str),
        infix(number, "+", "-", "*", "/", "//", "%"),
        call("-{}", number),
        call("abs({})", number),
        call("round({}, {})", number, st.integers(-15, 15).map(str)),
        call("round({})", number),
        call("len({})", st.one_of(text, series, series_of_texts)),
        call("{}({}, {})", st.sampled_from(["min", "max"]), number, number),
        call("{}({}, default={})", st.sampled_from(["min", "max"]), series, number),
        call("sum({})", series),
        call("int({})", number),
        call("float({})", number),
        call("{}.find({})", text, text),
        call("{}.count({})", series, number),
        call("{}[{}]", series, st.integers(-3, 3).map(str)),
        call("({} if {} else {})", number, truth, number),
        call("sum(x * {} for x in {} if {})", st.sampled_from(["x", "2", "n"]), series, truth),
    )
    texts = st.one_of(
        st.sampled_from(["''", "'a'", "'Ulm'", "s", "context.s", "'乌'", "context.d.get('z', 'no')"]),
        infix(text, "+"),
        call("str({})", st.one_of(number, truth, series)),
        call("{}.{}()", text, st.sampled_from(["lower", "upper", "title", "strip", "lstrip", "rstrip"])),
        call("{}[{}:{}]", text, st.integers(-3, 3).map(str), number),
        call("{}({})", st.sampled_from(["min", "max"]), series_of_texts),
        call("({} or {})", text, text),
    )
    truths = st.one_of(
        st.sampled_from(["True", "False", "context.t", "context.none is None", "'a' in context.d"]),
        infix(number, "<", "<=", ">", ">=", "==", "!="),
        infix(text, "<", "<=", ">", ">=", "==", "!=", "in", "not in"),
        infix(truth, "and", "or", "==", "!="),
        call("({} in {})", number, series),
        call("({} < {} <= {})", number, number, number),
        call("not {}", truth),
        call("bool({})", st.one_of(number, text, series)),
        call("{}.{}({})", text, st.sampled_from(["startswith", "endswith"]), text),
        call("{}.{}()", text, st.sampled_from(["isdigit", "isalpha", "isalnum"])),
        call("{}(x > {} for x in {})", st.sampled_from(["any", "all"]), st.sampled_from(["n", "0", "2"]), series),
        call("({} == {})", series, series),
    )
    lists = st.one_of(
        st.just("context.xs"),
        call("[{}, {}]", number, number),
        call("[{}]", truth),
        call("sorted({}, reverse={})", series, truth),
        infix(series, "+"),
        call("{}[{}:]", series, st.integers(-3, 3).map(str)),
        call("[x + {} for x in {} if x != {}]", st.sampled_from(["x", "1", "n"]), series, st.sampled_from(["n", "2"])),
        call("[{}[0] for k, v in context.d.items()]", st.sampled_from(["[1]", "context.xs"])),
        call("list({})", series),
    )
    return numbers, texts, truths, lists


ANYTHING = st.recursive(
    st.sampled_from(
        words(
            "0 1 -1 2.5 True None '' 'a' s n x context context.n context.s context.xs context.d context.rows "
            "context.none context['d']['b'] context.nope [] {} () {'a':1} 1e300 18446744073709551615"
        )
    ),
    lambda inner: st.one_of(
        infix(inner, *words("+ - * / // % < <= > >= == != in and or is"), "not in", "is not"),
        call("(not {})", inner),
        call("-{}", inner),
        call("({} if {} else {})", inner, inner, inner),
        call("[{}, {}]", inner, inner),
        call("({}, {})", inner, inner),
        call("{{{}, {}}}", inner, inner),
        call("{{{}: {}}}", inner, inner),
        call("{}[{}]", inner, inner),
        call("{}[{}:{}]", inner, inner, inner),
        call("{}.a", inner),
        call("{}({})", st.sampled_from(sorted(BUILTINS)), inner),
        call("{}({}, {})", st.sampled_from(["min", "max", "sum", "round"]), inner, inner),
        call("{}.{}({})", inner, st.sampled_from(words("get split startswith strip count find index")), inner),
        call("{}.{}()", inner, st.sampled_from(words("keys values items lower split title isalpha"))),
        call("[{} for x in {} if x]", inner, inner),
        call("any({} for x, y in {})", inner, inner),
    ),
    max_leaves=8,
)


def ours(text: str, evaluator: Evaluator) -> tuple[str, Any]:
    """The value, or the code of the error and its column."""
    data = copy.deepcopy(DATA)
    try:
        found: tuple[str, Any] = "ok", compile_expression(text, NAMES).value(data, evaluator)
    except ConditionError as error:
        found = error.code, error.column
    assert data == DATA
    return found


def pythons(text: str) -> tuple[str, Any]:
    try:
        return "ok", python(text)
    except Exception as error:  # noqa: BLE001  # whatever Python raises
        return "error", type(error)


@settings(max_examples=400, deadline=None)
@given(st.one_of(*well_typed()))
def test_a_well_typed_expression_gives_what_python_gives(text: str) -> None:
    code, value = ours(text, Evaluator())
    kind, expected = pythons(text)
    if code == "ok":
        assert (kind, repr(value)) == ("ok", repr(expected))
    else:
        assert kind == "error" or code in ("too_complex", "forbidden", "value", "budget")


@settings(max_examples=600, deadline=None)
@given(ANYTHING)
def test_any_expression_gives_what_python_gives_or_a_typed_error(text: str) -> None:
    evaluator = Evaluator()
    code, value = ours(text, evaluator)
    if code == "ok":
        kind, expected = pythons(text)
        assert (kind, repr(expected)) == ("ok", repr(value))
    else:
        assert 1 <= value <= len(text) + 1
    assert ours("1 + 1 == 3", evaluator) == ("ok", False)


TOKENS = [
    *words("context n s x results . . , : ( ) [ ] { } + - * ** / < == = := and or not in is if else for lambda await"),
    *words("yield async f'{ ' \" ''' \\ # 1 2.5 1e9 0x 'a' b'a' __class__ _ len sum sorted get 中 ＞ 😀 $ ! ? ; ..."),
    *words("True None @ ~ & | ^ >> % reverse= *context **context"),
    *("\n", "\t", "\r", "\x00", "\u3000", "\u202e", "\ud800"),
]


@settings(max_examples=600, deadline=None)
@given(st.one_of(st.lists(st.sampled_from(TOKENS), max_size=25).map(" ".join), st.text(max_size=40)))
def test_any_text_is_an_expression_or_a_typed_error(text: str) -> None:
    code, column = ours(text, Evaluator())
    assert code == "ok" or 1 <= column <= len(text) + 1
