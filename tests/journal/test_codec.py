"""Events as text, and back."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.core import events as ev
from fsm_agent.core.machine import TABLE
from fsm_agent.errors import JournalBroken
from fsm_agent.journal.codec import checksum, decode, encode
from fsm_agent.journal.records import StoredEvent

KINDS = get_args(ev.AnyEvent)
PLACE = {"seq", "at", "run_id"}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**1000), 2**1000) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def values_of(kind: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    """Any value that a field of this type may have."""
    match kind:
        case msgspec.inspect.AnyType():
            return DATA
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.IntType():
            return st.integers(-(2**70), 2**70)
        case msgspec.inspect.FloatType():
            return FLOATS
        case msgspec.inspect.StrType():
            return TEXTS
        case msgspec.inspect.LiteralType(values=values):
            return st.sampled_from(list(values))
        case msgspec.inspect.UnionType(types=types):
            return st.one_of(*map(values_of, types))
        case msgspec.inspect.VarTupleType(item_type=item):
            return st.lists(values_of(item), max_size=3).map(tuple)
        case msgspec.inspect.DictType(value_type=value):
            return st.dictionaries(TEXTS, values_of(value), max_size=3)
        case msgspec.inspect.StructType(cls=cls):
            return events_of(cls)
    raise AssertionError(kind)


def events_of(cls: Any) -> st.SearchStrategy[Any]:
    """Any event of a type."""
    fields = msgspec.inspect.type_info(cls).fields  # type: ignore[attr-defined] # it is that of a struct
    return st.builds(cls, **{field.name: values_of(field.type) for field in fields})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_event_comes_back_as_it_was(kind: Any, data: st.DataObject) -> None:
    event = data.draw(events_of(kind))
    stored = encode(event)
    assert decode(stored, event.run_id) == event
    assert (stored.seq, stored.at, stored.type) == (event.seq, event.at, event.type)
    assert json.loads(stored.body) is not None
    assert "\0" not in stored.body


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.trigger}-{row.source}-{row.dest}-{row.guard}")
def test_every_row_of_the_machine_comes_back_as_it_was(row: Any) -> None:
    event = ev.PhaseChanged(
        trigger=row.trigger, source=row.source, dest=row.dest, guard=row.guard, seq=7, at=1.5, run_id="r"
    )
    assert decode(encode(event), "r") == event


BODIES: list[tuple[ev.Event, str]] = [
    (ev.RunStarted(), "{}"),
    (ev.RunStarted(goal="去上海", seq=1, at=5.0, run_id="r"), '{"goal":"去上海"}'),
    (ev.TaskStarted(task="a", visit=1), '{"task":"a","visit":1}'),
    (ev.TaskStarted(task="a", visit=1, parameters={}), '{"task":"a","visit":1,"parameters":{}}'),
    (
        ev.TaskEvaluated(task="a", visit=1, status="SUCCEEDED", data={"n": 2**64}),
        '{"task":"a","visit":1,"status":"SUCCEEDED","data":{"n":18446744073709551616}}',
    ),
    (ev.PhaseChanged(trigger="start", source="idle", dest="planning"), '["start","idle","planning",null]'),
    (ev.PhaseChanged(trigger="evaluated", source="evaluating", dest="executing"), '"evaluated"'),
    (
        ev.PhaseChanged(trigger="settled", source="executing", dest="evaluating", guard="something_to_judge"),
        '"settled"',
    ),
    (
        ev.PhaseChanged(trigger="settled", source="executing", dest="evaluating", guard="another"),
        '["settled","executing","evaluating","another"]',
    ),
]


@pytest.mark.parametrize(("event", "body"), BODIES)
def test_a_body_holds_what_is_the_events_own_and_no_defaults(event: ev.Event, body: str) -> None:
    assert encode(event).body == body


BROKEN = [
    ("task_began", "{}", "not known"),
    ("task_started", "{", "its JSON"),
    ("task_started", "{}", "does not fit"),
    ("task_started", "[]", "does not fit"),
    ("task_started", '{"task":"a","visit":"1"}', r"\$\.visit"),
    ("task_started", '{"task":"a","visit":1,"colour":"secret"}', "does not fit"),
    ("task_started", '{"type":"run_started","task":"a","visit":1}', "does not fit"),
    ("task_evaluated", '{"task":"a","visit":1,"status":"secret"}', r"\$\.status"),
    ("phase_changed", '"secret"', "does not fit"),
    ("phase_changed", '["start","idle"]', "does not fit"),
    ("phase_changed", '["start","idle","nowhere",null]', "does not fit"),
    ("phase_changed", "{}", "does not fit"),
]


@pytest.mark.parametrize(("kind", "body", "why"), BROKEN)
def test_what_cannot_be_read_is_refused_by_its_number_and_without_its_values(kind: str, body: str, why: str) -> None:
    with pytest.raises(JournalBroken, match=why) as refused:
        decode(StoredEvent(12, 1.0, kind, body), "r")
    assert (refused.value.seq, refused.value.run_id) == (12, "r")
    assert "secret" not in str(refused.value)


def test_a_checksum_tells_any_change_and_any_gap() -> None:
    events = [StoredEvent(1, 1.5, "progress", "{}"), StoredEvent(2, 2.5, "progress", '{"task":"a"}')]
    whole = checksum(checksum(0, events[0]), events[1])
    changes = {"seq": 3, "at": 2.6, "type": "progres", "body": '{"task":"b"}'}
    others = [checksum(checksum(0, events[0]), events[1]._replace(**{name: value})) for name, value in changes.items()]
    others += [checksum(0, events[0]), checksum(0, events[1]), checksum(checksum(0, events[1]), events[0])]
    assert whole not in others
    assert len({*others, whole}) == len(others) + 1
