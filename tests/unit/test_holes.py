"""Holes: no form of a secret is in what is kept, and what is filled is what was there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import isfinite
from typing import Any, get_args
from urllib.parse import quote, quote_plus, urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.core import events as ev
from fsm_agent.forms import forms_of, leaves_of, number_text
from fsm_agent.journal import codec
from fsm_agent.journal.holes import ALL_LEVELS, DATA, EDGE, RECORDS, Holes

MARK = "5eedf00d"
HOLE = re.compile(f"{EDGE}{MARK}/[^{EDGE}]*{EDGE}|{EDGE}{MARK}#{EDGE}")
NASTY = "p\"a\\s's\n\t中文&/é "
WAYS: tuple[Callable[[str], str], ...] = (
    str,
    json.dumps,
    lambda text: json.dumps(text, ensure_ascii=False),
    repr,
    ascii,
    quote,
    quote_plus,
    lambda text: quote(text, safe=""),
    lambda text: urlencode({"k": text}),
    lambda text: str(text.encode()),
    lambda text: f"before {text} 'and' \"after\"",
    lambda text: str({"k": [text]}),
    lambda text: json.dumps({text: {"k": text}}),
)


def kept_of(holes: Holes, event: ev.Event) -> Any:
    """What the store has, as data."""
    return json.loads(codec.encode(holes.punched(event)).body)


def inner(value: Any) -> Iterator[Any]:
    """All leaves and keys."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from inner(item)
    elif isinstance(value, list):
        for item in value:
            yield from inner(item)
    elif value is not None and not isinstance(value, bool):
        yield value


def is_hidden(secret: Any, kept: Any) -> bool:
    """Whether no form of a secret is in what is kept, but for the holes themselves."""
    forms = [form for leaf in leaves_of(secret) for form in forms_of(leaf)]
    for leaf in inner(kept):
        text = HOLE.sub(EDGE, leaf) if isinstance(leaf, str) else number_text(leaf)
        if any(form.text == text or (form.within and form.text in text) for form in forms):
            return False
    return True


def told(data: Any) -> ev.TaskEvaluated:
    return ev.TaskEvaluated(task="t", visit=1, status="SUCCEEDED", data=data)


# Holes are told by their edge: a secret that has one is a case of its own below.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=EDGE), max_size=12) | st.text(
    "a'\"\\\n\té中文&/%0", max_size=8
)
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 99_999)
leaves = st.none() | st.booleans() | numbers | texts | numbers.map(str)
secrets = st.recursive(leaves, lambda deeper: st.lists(deeper, max_size=3) | st.dictionaries(texts, deeper, max_size=3))


@st.composite
def written(draw: st.DrawFn, secret: Any) -> Any:
    """Data that has a secret in it, somehow."""
    leaf = draw(st.sampled_from(list(leaves_of(secret)) or [""]))
    text = leaf if isinstance(leaf, str) else repr(leaf)
    for way in draw(st.lists(st.sampled_from(WAYS), max_size=2)):
        text = way(text)
    found: list[Any] = [secret, leaf, text, draw(leaves)]
    with suppress(ValueError, OverflowError):
        found += [int(leaf), float(leaf), float(leaf) + 0.5]
    found = [value for value in found if not isinstance(value, float) or isfinite(value)]
    inside = st.sampled_from(found)
    shape = st.recursive(
        inside, lambda deeper: st.lists(deeper, max_size=3) | st.dictionaries(st.just(text) | texts, deeper, max_size=3)
    )
    return draw(shape)


@given(st.data())
def test_no_form_of_any_secret_is_kept_and_all_of_it_comes_back(data: st.DataObject) -> None:
    secret = data.draw(secrets)
    event = told(data.draw(written(secret)))
    holes = Holes(MARK, {"s": secret})
    body = codec.encode(event).body
    assert is_hidden(secret, kept_of(holes, event)["data"] if event.data is not None else None)
    assert codec.encode(holes.filled(holes.punched(event))).body == body
    assert holes.may_be_in(body) or holes.punched(event) is event, "what is told quickly is right"


@pytest.mark.parametrize("form", forms_of(NASTY), ids=lambda form: form.word)
def test_each_form_of_a_text_has_a_hole_of_its_own(form: Any) -> None:
    holes = Holes(MARK, {"s": NASTY})
    for text in (form.text, f"so: {form.text}!"):
        kept = kept_of(holes, told({"it": text}))
        assert f"/{form.word}{EDGE}" in kept["data"]["it"]
        assert holes.filled(holes.punched(told({"it": text}))).data == {"it": text}  # type: ignore[attr-defined]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("outer", [str, json.dumps, repr, ascii])
def test_a_text_is_found_however_it_was_written_once_and_again(way: Any, outer: Any) -> None:
    holes = Holes(MARK, {"s": NASTY})
    assert is_hidden(NASTY, kept_of(holes, told([outer(way(NASTY))])))
    assert "文" not in json.dumps(kept_of(holes, told([way(NASTY)])), ensure_ascii=False)
    assert "u6587" not in json.dumps(kept_of(holes, told([outer(way(NASTY))])))


@pytest.mark.parametrize("secret", [49152077, "49152077", "049152077", 49152077.0, "4.9152077e7"])
@pytest.mark.parametrize(
    "data",
    [
        49152077,
        49152077.0,
        "49152077",
        "pin 49152077.",
        {"49152077": 1},
        [{"k": "a49152077b"}],
        149152077.5,
        "49152077.0",
    ],
)
def test_a_number_is_found_as_a_number_as_a_text_as_a_key_and_within_others(secret: Any, data: Any) -> None:
    holes = Holes(MARK, {"s": secret})
    kept = kept_of(holes, told(data))
    assert "49152077" not in json.dumps(kept)
    back = holes.filled(holes.punched(told(data))).data  # type: ignore[attr-defined]
    assert (back, repr(back)) == (data, repr(data))


@pytest.mark.parametrize("secret", [12, "12", "ab", 7.0, "'"])
def test_a_short_secret_is_one_only_where_it_is_the_whole_value(secret: Any) -> None:
    holes = Holes(MARK, {"s": secret})
    aside = told(["12 of 120", 120, "abc", 17.05, "it's"])
    assert holes.punched(aside) is aside
    whole = told([secret, {str(secret): 1}])
    assert is_hidden(secret, kept_of(holes, whole))
    assert holes.filled(holes.punched(whole)) == whole


def test_a_secret_with_the_edge_of_a_hole_in_it_comes_back_too() -> None:
    secret = f"{EDGE}ab{EDGE}cd"
    holes = Holes(MARK, {f"na{EDGE}me": secret})
    event = told([secret, f"{EDGE}{secret}{secret}{EDGE}"])
    assert secret not in kept_of(holes, event)["data"][1]
    assert holes.filled(holes.punched(event)) == event


def test_without_the_secrets_what_is_hidden_is_shown_so() -> None:
    event = told(["a hunter22!", 4711, 14711, {"hunter22": 1}])
    kept = Holes(MARK, {"s": ["hunter22", 4711]}).punched(event)
    assert Holes(MARK, {}).filled(kept).data == ["a ***!", "***", "***", {"***": 1}]  # type: ignore[attr-defined]


def test_a_number_that_is_filled_with_what_is_no_number_is_hidden() -> None:
    kept = Holes(MARK, {"s": "4711"}).punched(told(4711))
    assert Holes(MARK, {"s": "none"}).filled(kept).data == "***"  # type: ignore[attr-defined]


def test_the_parts_of_a_secret_keep_their_places_whatever_the_order_of_its_keys_and_of_other_secrets() -> None:
    kept = Holes(MARK, {"a": "aaaa-1", "b": {"x": "xxxx-1", "y": "yyyy-1"}}).punched(told(["xxxx-1", "yyyy-1"]))
    again = Holes(MARK, {"b": {"y": "yyyy-1", "x": "xxxx-1"}})
    assert again.filled(kept).data == ["xxxx-1", "yyyy-1"]  # type: ignore[attr-defined]


def test_the_keys_of_the_programs_own_records_stay() -> None:
    holes = Holes(MARK, {"s": ["token", "message"]})
    adopted = ev.PlanAdopted(version=1, digest="d", inputs={"token": {"token": "a token"}}, secrets=("s",))
    kept = kept_of(holes, adopted)["inputs"]
    assert list(kept) == ["token"]
    assert is_hidden("token", kept["token"])
    finished = ev.RunFinished(phase="failed", outcome="failed", reason={"message": "a message"})
    assert list(kept_of(holes, finished)["reason"]) == ["message"]
    assert holes.filled(holes.punched(adopted)) == adopted
    state = {"token": {"message": ["token", 1]}}
    assert holes.filled_record(holes.punched_record(state, ALL_LEVELS), ALL_LEVELS) == state


NAMES = {
    "run_id", "task", "approval", "digest", "default_skill", "guarded", "mark", "driver", "source", "guard", "seal",
    "tasks", "to", "kind", "risk", "filter", "grants", "secrets", "workers", "status", "phase", "outcome", "trigger",
    "dest", "then", "verdicts", "setting", "decision", "what", "when",
}  # fmt: skip
"""Texts of the plan's, or of the program's own: names, digests and words of which there are but some."""
OWN_WORDS = {(ev.CallAbandoned, "why"), (ev.RunTakenUp, "why"), (ev.TaskSkipped, "reason")}


@pytest.mark.parametrize("kind", get_args(ev.AnyEvent))
def test_each_field_that_may_hold_a_text_is_looked_at_or_holds_names_only(kind: type[ev.Event]) -> None:
    looked_at = {*DATA.get(kind, ()), *RECORDS.get(kind, ())}
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    assert looked_at <= fields.keys()
    for name, of in fields.items():
        if of in (int, float, bool, int | None, float | None, bool | None) or name in looked_at or name in NAMES:
            continue
        assert (kind, name) in OWN_WORDS, f"{kind.__name__}.{name}"


@pytest.mark.parametrize("kind", get_args(ev.AnyEvent))
def test_whatever_is_said_in_an_event_has_a_hole_for_a_secret_and_comes_back(kind: type[ev.Event]) -> None:
    holes = Holes(MARK, {"s": "hunter22"})
    said = {name: _some(name) for name in (*DATA.get(kind, ()), *RECORDS.get(kind, ()))}
    others = {
        field.name: 1 if field.type in (int, float) else "x"
        for field in msgspec.structs.fields(kind)
        if field.required and field.name not in said
    }
    event = kind(**others, **said)
    assert "hunter22" not in str(holes.punched(event).to_json())
    assert holes.filled(holes.punched(event)) == event


def _some(name: str) -> Any:
    if name == "error":
        return ev.TaskError("exception", "it was hunter22", "hunter22Error")
    if name in ("parameters", "changes", "fields", "labels", "kept", "inputs"):
        return {"k": "a hunter22"}
    if name == "problems":
        return ({"message": "hunter22"},)
    return ("hunter22",) if name == "undone" else {"message": "hunter22"} if name == "reason" else "by hunter22"
