"""Random expressions, beside plain Python: the same value or a typed error, no crash, and the names unchanged."""

from __future__ import annotations

import ast
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


class DisplaysWithFields(ast.NodeTransformer):
    """What the expression makes has fields too."""

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        self.generic_visit(node)
        return ast.Call(ast.Name("Fields", ast.Load()), [node], [])


def python(text: str) -> Any:
    with warnings.catch_warnings(action="ignore"):
        tree = ast.fix_missing_locations(DisplaysWithFields().visit(ast.parse(text, mode="eval")))
        return eval(compile(tree, "", "eval"), {"__builtins__": BUILTINS, "Fields": Fields, **with_fields(DATA)})


BUILTINS = {
    function.__name__: function
    for function in (len, min, max, sum, any, all, round, abs, int, float, str, bool, sorted, list)
}


def words(text: str) -> list[str]:
    return text.split()


def infix(kinds: str, signs: str) -> list[tuple[str, str]]:
    return [(f"(%s {sign} %s)", kinds) for sign in signs.replace("%", "%%").split(",")]


LEAVES = {
    "number": words("0 1 2.5 -3 10 -7 999 context.n n context['f'] context.get('n',4) context.d.a True"),
    "text": words("'' 'a' 'Ulm' s context.s '乌' context.d.get('z','no') context.ws[0]"),
    "truth": [*words("True False context.t"), "context.none is None", "'a' in context.d", "context.t is not True"],
    "numbers": words("context.xs [] [0] x context.d['b'][:1]"),
    "texts": words("context.ws []"),
    "small": [str(number) for number in range(-4, 5)],
    "number function": words("abs round int float"),
    "changed": words("lower upper title strip lstrip rstrip"),
    "judged": words("isdigit isalpha isalnum"),
    "anything": words(
        "0 1 -1 2.5 True None '' 'a' s n x context context.n context.s context.xs context.d context.d.a context.rows "
        "context.none context['d']['b'] context.nope [] {} () {'a':1} 1e300 18446744073709551615"
    ),
    "function": sorted(BUILTINS),
    "method": words("get split startswith strip count find index"),
    "bare method": words("keys values items lower split title isalpha"),
}

FORMS = {
    "number": [
        *infix("number number", "+,-,*,/,//,%"),
        ("-%s", "number"),
        ("%s(%s)", "number function,number"),
        ("round(%s, %s)", "number small"),
        ("len(%s)", "text"),
        ("len(%s)", "texts"),
        ("min(%s, %s)", "number number"),
        ("max(%s, default=%s)", "numbers number"),
        ("sum(%s)", "numbers"),
        ("%s.find(%s)", "text text"),
        ("%s.count(%s)", "text text"),
        ("%s.count(%s)", "numbers number"),
        ("%s[%s]", "numbers small"),
        ("(%s if %s else %s)", "number truth number"),
        ("sum(x * %s for x in %s if %s)", "number numbers truth"),
    ],
    "text": [
        *infix("text text", "+,or,and"),
        ("str(%s)", "number"),
        ("str(%s)", "truth"),
        ("str(%s)", "numbers"),
        ("%s.%s()", "text,changed"),
        ("%s.strip(%s)", "text text"),
        ("%s[%s:%s]", "text small small"),
        ("%s[::%s]", "text small"),
        ("min(%s)", "texts"),
        ("max(%s, default=%s)", "texts text"),
    ],
    "truth": [
        *infix("number number", "<,<=,>,>=,==,!="),
        *infix("text text", "<,<=,>,>=,==,!=,in,not in"),
        *infix("truth truth", "and,or,==,!="),
        *infix("numbers numbers", "==,!="),
        ("(%s in %s)", "number numbers"),
        ("(%s < %s <= %s)", "number number number"),
        ("(not %s)", "truth"),
        ("bool(%s)", "texts"),
        ("%s.startswith(%s)", "text text"),
        ("%s.endswith((%s, %s))", "text text text"),
        ("%s.%s()", "text,judged"),
        ("any(x > %s for x in %s)", "number numbers"),
        ("all(x for x in %s)", "texts"),
    ],
    "numbers": [
        *infix("numbers numbers", "+,or"),
        ("[%s, %s]", "number number"),
        ("sorted(%s, reverse=%s)", "numbers truth"),
        ("%s[%s:]", "numbers small"),
        ("[x + %s for x in %s if x != %s]", "number numbers number"),
        ("[%s for k, v in context.d.items()]", "number"),
        ("list(%s)", "numbers"),
    ],
    "texts": [
        ("%s.split()", "text"),
        ("%s.split(',', %s)", "text small"),
        ("list(%s)", "text"),
        ("sorted(%s)", "texts"),
        ("[%s, %s]", "text text"),
        ("[x.lower() for x in %s if x > %s]", "texts text"),
    ],
    "anything": [
        *infix("anything anything", "+,-,*,/,//,%,<,<=,>,>=,==,!=,in,not in,and,or,is,is not"),
        ("(not %s)", "anything"),
        ("-%s", "anything"),
        ("(%s if %s else %s)", "anything anything anything"),
        ("[%s, %s]", "anything anything"),
        ("(%s, %s)", "anything anything"),
        ("{%s, %s}", "anything anything"),
        ("{%s: %s}", "anything anything"),
        ("%s[%s]", "anything anything"),
        ("%s[%s:%s]", "anything anything anything"),
        ("%s(%s)", "function,anything"),
        ("max(%s, %s)", "anything anything"),
        ("sum(%s, %s)", "anything anything"),
        ("round(%s, %s)", "anything anything"),
        ("%s.%s(%s)", "anything,method,anything"),
        ("%s.%s()", "anything,bare method"),
        ("[%s for x in %s if x]", "anything anything"),
        ("any(%s for x, y in %s)", "anything anything"),
    ],
}


@st.composite
def expressions(draw: st.DrawFn, kind: str, depth: int = 4) -> str:
    """An expression that gives a value of this kind, as a rule; `anything` knows no types."""
    if kind not in FORMS or depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(LEAVES[kind]))
    form, parts = draw(st.sampled_from(FORMS[kind]))
    kinds = parts.split("," if "," in parts else " ")
    return form % tuple(draw(expressions(part, depth - 1)) for part in kinds)


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
@given(st.sampled_from(["number", "text", "truth", "numbers", "texts"]).flatmap(expressions))
def test_a_well_typed_expression_gives_what_python_gives(text: str) -> None:
    code, value = ours(text, Evaluator())
    kind, expected = pythons(text)
    if code == "ok":
        assert (kind, repr(value)) == ("ok", repr(expected))
    else:
        assert kind == "error" or code in ("too_complex", "forbidden", "value", "budget")


@settings(max_examples=600, deadline=None)
@given(expressions("anything"))
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
