"""Taking writes back: newest first, without what others wrote since, and without the own share of merged keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.core.context import SharedContext
from fsm_agent.core.writes import NOBODY

RULES: dict[str, Any] = {"total": "sum", "log": "append", "tags": "union", "last": "last"}
Writes = list[tuple[int, str, Any]]


def after(initial: dict[str, Any], writes: Writes) -> SharedContext:
    context = SharedContext(dict(initial), RULES, undoable=True)
    for writer, key, value in writes:
        context.commit(writer, {key: value})
    return context


def taken_back(initial: dict[str, Any], writes: Writes, members: set[int]) -> tuple[dict[str, Any], dict[str, int]]:
    context = after(initial, writes)
    undone = context.undone(members, lambda place: {place})
    context.undo(undone)
    return context.values, undone.kept


@pytest.mark.parametrize(
    ("initial", "writes", "left", "kept"),
    [
        ({}, [], {}, {}),
        ({"k": 0}, [(1, "k", 1), (2, "k", 2)], {"k": 0}, {}),
        ({}, [(1, "k", 1)], {}, {}),
        ({"k": 0}, [(9, "k", 5), (1, "k", 1)], {"k": 5}, {}),
        ({"k": 0}, [(1, "k", 1), (9, "k", 5)], {"k": 5}, {"k": 9}),
        ({"k": 0}, [(1, "k", 1), (9, "k", 5), (2, "k", 2)], {"k": 5}, {"k": 9}),
        ({"k": 0}, [(1, "k", 1), (NOBODY, "k", 5)], {"k": 5}, {}),
        ({}, [(1, "last", 1), (9, "last", 2)], {"last": 2}, {"last": 9}),
        ({"total": 1}, [(1, "total", 2), (9, "total", 3), (2, "total", 4)], {"total": 4}, {}),
        ({}, [(1, "total", 2)], {}, {}),
        ({}, [(1, "log", "a"), (9, "log", "b"), (2, "log", "c")], {"log": ["b"]}, {}),
        ({"tags": ["x"]}, [(1, "tags", ["x", "y"]), (9, "tags", ["y", "z"])], {"tags": ["x", "y", "z"]}, {}),
        ({"k": {"deep": [1]}}, [(1, "k", None)], {"k": {"deep": [1]}}, {}),
    ],
)
def test_what_tasks_1_and_2_wrote_is_taken_back(
    initial: dict[str, Any], writes: Writes, left: dict[str, Any], kept: dict[str, int]
) -> None:
    assert taken_back(initial, writes, {1, 2}) == (left, kept)


def test_what_was_taken_back_is_not_taken_back_twice() -> None:
    context = after({"k": 0}, [(1, "k", 1)])
    context.undo(context.undone({1}, lambda place: {place}))
    context.commit(9, {"k": 7})
    undone = context.undone({1}, lambda place: {place})
    assert (undone.values, undone.kept) == ({}, {})


def test_a_key_that_stayed_can_be_taken_back_with_what_was_above_it() -> None:
    context = after({"k": 0}, [(1, "k", 1), (9, "k", 5)])
    context.undo(context.undone({1}, lambda place: {place}))
    context.undo(context.undone({1, 9}, lambda place: {place}))
    assert context.values == {"k": 0}


@pytest.mark.parametrize(("target", "left"), [(0, 1), (1, 0), (7, 0)])
def test_a_jump_from_outside_over_the_tasks_seals_what_they_wrote_before(target: int, left: int) -> None:
    reachable = {0: {0, 1, 2}, 1: {1, 2}, 7: {7}}
    context = after({"k": 0}, [(1, "k", 1)])
    context.jumped(target)
    context.commit(2, {"k": 2})
    context.undo(context.undone({1, 2}, reachable.__getitem__))
    assert context.values == {"k": left}


def test_concurrent_writes_are_taken_back_in_the_order_in_which_they_count() -> None:
    context = SharedContext({}, RULES, undoable=True)
    for place in (1, 2, 3):
        context.open_view(place)
    for place in (3, 1, 2):
        context.commit(place, {"log": place})
        context.close_view(place)
    assert context.values == {"log": [1, 2, 3]}
    context.undo(context.undone({2}, lambda place: {place}))
    assert context.values == {"log": [1, 3]}


def test_a_context_that_is_not_undoable_remembers_nothing() -> None:
    context = SharedContext({}, RULES)
    context.commit(1, {"k": 1})
    context.jumped(1)
    undone = context.undone({1}, lambda place: {place})
    context.undo(undone)
    assert (undone.values, context.values) == ({}, {"k": 1})


KEYS = st.sampled_from(("k", "last", "total", "log", "tags"))
VALUES = st.integers(0, 3)


@given(st.lists(st.tuples(st.integers(0, 3), KEYS, VALUES)), st.sets(st.integers(0, 3)))
def test_taking_back_all_newest_writes_gives_the_context_before_them(writes: Writes, members: set[int]) -> None:
    initial = {"k": 9, "total": 5, "log": [0]}
    others = [write for write in writes if write[0] not in members]
    own = [write for write in writes if write[0] in members]
    left, kept = taken_back(initial, [*others, *own], members)
    assert (left, kept) == (after(initial, others).values, {})


@given(st.lists(st.tuples(st.integers(0, 3), KEYS, VALUES)), st.sets(st.integers(0, 3)))
def test_whatever_the_order_no_write_of_others_is_lost(writes: Writes, members: set[int]) -> None:
    left, kept = taken_back({}, writes, members)
    for key in {key for _, key, _ in writes}:
        others = [(writer, name, value) for writer, name, value in writes if name == key and writer not in members]
        assert left.get(key) == after({}, others).values.get(key)
        assert (key in kept) <= bool(others)
