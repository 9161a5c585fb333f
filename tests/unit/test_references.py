"""`${…}` in parameters: what is a template, what it renders to, and what is refused."""

from __future__ import annotations

import copy
import threading
import time
import tracemalloc
from typing import Any

import pytest

from fsm_agent.errors import ConditionError
from fsm_agent.plan.expressions import Evaluator, Names
from fsm_agent.plan.references import Template, compile_template

NAMES = Names(frozenset({"context", "results", "inputs", "goal"}), frozenset({"city"}), {"a": object()})
DATA: dict[str, Any] = {
    "context": {
        "n": 3,
        "f": 1.0,
        "t": True,
        "none": None,
        "list": [1, {"x": None, "文": "字"}],
        "}": "brace",
        "'": "quote",
        "text": 'say "hi"',
    },
    "results": {"a": {"data": {"rows": [[1, 2]]}, "success": True}},
    "inputs": {},
    "goal": "go",
    "city": "乌尔姆",
}


def compiled(value: Any) -> Template:
    template, problems = compile_template(value, NAMES)
    assert problems == []
    assert template is not None
    return template


def problems(value: Any) -> list[tuple[str, str, int | None]]:
    template, found = compile_template(value, NAMES)
    assert (template is None) == bool(found)
    return [(path, error.code, error.column) for path, error in found]


RENDERED: list[tuple[Any, Any]] = [
    # a whole string keeps the type
    ("${context.n}", 3),
    ("${context.f}", 1.0),
    ("${context.t}", True),
    ("${context.none}", None),
    ("${context.list}", [1, {"x": None, "文": "字"}]),
    ("${city}", "乌尔姆"),
    ("${ context.n + 1 }", 4),
    ("${context.n\n + 1}", 4),
    # inside a longer string it is formatted
    (" ${context.n}", " 3"),
    ("${context.n} ", "3 "),
    ("${context.n}${context.f}", "31.0"),
    ("to ${city}: ${context.text}!", 'to 乌尔姆: say "hi"!'),
    ("${context.t}/${context.none}", "true/null"),
    ("rows ${context.list}", 'rows [1,{"x":null,"文":"字"}]'),
    ("${results.a.data.rows[0][1] * 2}%", "4%"),
    # literal braces and dollars
    ("$${city}", "${city}"),
    ("$${", "${"),
    ("$$${city}", "$${city}"),
    ("$${${city}}", "${乌尔姆}"),
    ("$5 {x} } $ {y}", "$5 {x} } $ {y}"),
    ("", ""),
    # braces inside the expression
    ("${context.get('}')}", "brace"),
    ('${context.get("}")}!', "brace!"),
    ("${{'a': 1}['a']}", 1),
    ("${{'a': {'b': 2}}}", {"a": {"b": 2}}),
    ("a${{'}': '{'}['}']}b", "a{b"),
    ("${context.get('\\'')}", "quote"),
    ('${context.get("\'")}', "quote"),
    ("${'''it's } here'''}", "it's } here"),
    ("${'\\\\'}", "\\"),
    ("${'${city}'}", "${city}"),
    # values of other kinds, nested
    (5, 5),
    (None, None),
    (True, True),
    ({"a": ["${city}", {"b": "x${context.n}", "c": 1}], "d": []}, {"a": ["乌尔姆", {"b": "x3", "c": 1}], "d": []}),
    ({"${city}": "${city}"}, {"${city}": "乌尔姆"}),
    ({}, {}),
    ([], []),
]


@pytest.mark.parametrize(("value", "expected"), RENDERED, ids=[ascii(value) for value, _ in RENDERED])
def test_a_template_renders_to_its_value(value: Any, expected: Any) -> None:
    before = copy.deepcopy(DATA)
    assert repr(compiled(value).render(DATA, Evaluator())) == repr(expected)
    assert before == DATA


def test_a_template_lists_its_expressions_with_their_paths() -> None:
    value = {"a": ["${city}", "x ${context.n} ${goal}"], "k w": "${goal}", "b-1": {"c": "no $${x}"}, "键": "${goal}"}
    found = [(path, expression.text) for path, expression in compiled(value).expressions]
    assert found == [
        ("parameters.a[0]", "city"),
        ("parameters.a[1]", "context.n"),
        ("parameters.a[1]", "goal"),
        ('parameters["k w"]', "goal"),
        ("parameters.键", "goal"),
    ]


@pytest.mark.parametrize(
    ("value", "constant"), [("x", True), ({"a": ["$${x}", 1]}, True), ("${goal}", False), ([[{"a": "${goal}"}]], False)]
)
def test_a_template_without_expressions_is_constant(value: Any, constant: bool) -> None:
    assert compiled(value).constant is constant


def test_every_problem_is_found_with_its_path_and_column() -> None:
    value = {
        "a": ["${nope}", "ok ${city}", "x ${1 +} ${nope}"],
        "b": {"c": "中文 ${", "d": "${results.b.data}"},
        "e": "${}",
        "f": "${f'{city}'}",
        "g": "$${fine}",
    }
    assert problems(value) == [
        ("parameters.a[0]", "unknown_name", 1),
        ("parameters.a[2]", "syntax", 4),
        ("parameters.a[2]", "unknown_name", 1),
        ("parameters.b.c", "syntax", 4),
        ("parameters.b.d", "unknown_field", 9),
        ("parameters.e", "syntax", 1),
        ("parameters.f", "forbidden", 1),
    ]


@pytest.mark.parametrize(
    ("text", "column"),
    [("${", 1), ("a ${b c", 3), ("${'}", 1), ("${city} ${{'a': 1}", 9), ("${\"}'", 1), ("$${ ${", 5), ("${'''a'}", 1)],
)
def test_what_is_never_closed_is_a_syntax_error_with_its_column(text: str, column: int) -> None:
    assert problems(text) == [("parameters", "syntax", column)]


def test_another_path_may_be_given() -> None:
    template, found = compile_template(["${nope}"], NAMES, path="compensation.parameters")
    assert (template, found[0][0]) == (None, "compensation.parameters[0]")


@pytest.mark.parametrize(
    ("value", "path", "code", "column"),
    [
        ({"a": ["${context.nope}"]}, "parameters.a[0]", "unknown_field", 9),
        ({"a": "x ${1 / 0}"}, "parameters.a", "value", 1),
        ("${context.none.x}", "parameters", "type", 14),
        ("x ${{1}}", "parameters", "forbidden", 1),
        ("x ${[{1}]}", "parameters", "type", 1),
        ({"k w": "${{1: 2}}"}, 'parameters["k w"]', "type", 1),
    ],
)
def test_an_error_at_rendering_tells_the_field(value: Any, path: str, code: str, column: int) -> None:
    template, found = compile_template(value, NAMES)
    if template is None:
        assert [(path, error.code, error.column) for path, error in found] == [(path, code, column)]
        return
    with pytest.raises(ConditionError) as caught:
        template.render(DATA)
    assert str(caught.value).startswith(f"{path}: ")
    assert (caught.value.code, caught.value.column) == (code, column)


def test_an_error_at_rendering_keeps_its_name_and_hint() -> None:
    with pytest.raises(ConditionError) as caught:
        compiled({"a": "${context.lst}"}).render(DATA)
    error = caught.value
    assert (error.expression, error.name, error.suggestions) == ("context.lst", "lst", ("list",))
    assert error.hint == "did you mean 'list'?"


def test_each_rendering_is_fresh() -> None:
    template = compiled({"a": "${context.list}", "b": [1], "c": {"d": ["${context.n}"], "e": {"f": []}}})
    first, second = template.render(DATA), template.render(DATA)
    assert first == second
    first["a"][1]["x"] = first["b"][0] = first["c"]["d"][0] = 99
    first["c"]["e"]["f"].append(99)
    assert template.render(DATA) == second
    assert DATA["context"]["list"] == [1, {"x": None, "文": "字"}]


def test_a_template_does_not_follow_later_changes_of_its_source() -> None:
    source: dict[str, Any] = {"a": [1, {"b": "${city}"}], "c": {"d": [2]}}
    template = compiled(source)
    expected = template.render(DATA)
    source["c"]["d"].append(3)
    source["a"].append(4)
    assert template.render(DATA) == expected


def test_threads_may_share_a_template() -> None:
    template = compiled({"a": "${[x + context.n for x in [1, 2]]}"})
    wrong: list[Any] = []

    def work(number: int) -> None:
        evaluator = Evaluator()
        for _ in range(200):
            found = template.render({"context": {"n": number}}, evaluator)
            if found != {"a": [1 + number, 2 + number]}:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def nested(depth: int, leaf: Any) -> Any:
    for level in range(depth):
        leaf = [leaf] if level % 2 else {"k": leaf}
    return leaf


def test_the_depth_of_a_value_is_bounded() -> None:
    assert compiled(nested(100, "${goal}")).render(DATA) == nested(100, "go")
    assert [code for _, code, _ in problems(nested(101, "${goal}"))] == ["too_complex"]
    assert [code for _, code, _ in problems(nested(50_000, 1))] == ["too_complex"]
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    assert [code for _, code, _ in problems(cyclic)] == ["too_complex"]


@pytest.mark.timing
@pytest.mark.parametrize(
    "text",
    [
        "${" * 500_000,
        "${" + "{" * 1_000_000,
        "${" + "'" * 999_999,
        "${" + "'\\" * 500_000,
        "${'" + "\\'" * 500_000,
        "${" + "\"'" * 500_000,
        "${'''" * 200_000,
        "}" * 1_000_000,
        "$" * 1_000_000,
        "$${" * 300_000,
        "${}" * 300_000,
        "${1}" * 250_000,
        "x" * 1_000_000 + "${goal}",
        "${'" + "a" * 1_000_000 + "'}",
    ],
    ids=lambda text: text[:8] + "…" + text[-4:],
)
def test_a_megabyte_is_read_in_linear_time(text: str) -> None:
    began = time.perf_counter()
    compile_template(text, NAMES)
    assert time.perf_counter() - began < 5 * 0.3


def test_one_string_holds_so_many_expressions_and_no_more() -> None:
    assert compiled("${goal}" * 1_000).render(DATA) == "go" * 1_000
    assert problems("${goal}" * 1_001) == [("parameters", "too_complex", None)]


@pytest.mark.parametrize(
    "value",
    [
        ["${context.text}"] * 20,
        "${context.text}" * 20,
        ["${context.list}"] * 10,
        "x ${[context.text for x in context.list]}",
        ["${sum(x for x in context.few)}"] * 100,
    ],
    ids=["texts", "long text", "lists", "references", "steps"],
)
def test_one_rendering_cannot_grow_or_last_without_end(value: Any) -> None:
    names = {"context": {"text": "x" * 1_000_000, "list": [0] * 50_000, "few": list(range(3_000))}}
    template = compiled(value)
    tracemalloc.start()
    try:
        with pytest.raises(ConditionError) as caught:
            template.render(names)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (caught.value.code, peak < 50_000_000) == ("budget", True)
