"""The shared context: snapshots, conflicts of concurrent writers, merge rules."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any

import pytest

from fsm_agent.core.context import SharedContext, same
from fsm_agent.plan.model import MergeRule


def shared(rules: dict[str, MergeRule] | None = None, **values: Any) -> SharedContext:
    return SharedContext(values, rules or {})


def commit(context: SharedContext, owner: int, **writes: Any) -> None:
    context.commit(owner, writes)
    context.close_view(owner)


def test_a_visit_sees_the_context_as_it_was_when_it_began() -> None:
    context = shared(a=1)
    view = context.open_view(0)
    context.open_view(1)
    commit(context, 1, a=2, b=3)
    assert (view.get("a"), view.get("b", "none")) == (1, "none")
    assert view.values() == {"a": 1}
    assert context.values == {"a": 2, "b": 3}


def test_a_visit_that_begins_later_sees_what_was_committed() -> None:
    context = shared(a=1)
    context.open_view(0)
    commit(context, 0, a=2)
    assert context.open_view(1).get("a") == 2


def test_what_is_read_can_be_changed_without_changing_the_context() -> None:
    context = shared(items=[1])
    context.open_view(0).get("items").append(2)
    assert context.values == {"items": [1]}


def test_of_the_open_views_only_those_of_visits_that_go_on_are_kept() -> None:
    context = shared({"k": "append"})
    for owner in (0, 1, 2):
        context.open_view(owner)
    commit(context, 0, k="a")
    context.keep_views([2])
    assert context.owners() == [2]
    context.keep_views([])
    assert context._merging == {}
    with pytest.raises(LookupError):
        context.keep_views([1])


def test_a_visits_own_writes_lie_on_top() -> None:
    assert shared(a=1).open_view(0).values({"a": 5, "b": 6}) == {"a": 5, "b": 6}


def test_concurrent_different_writes_are_a_conflict_that_names_the_other() -> None:
    context = shared()
    context.open_view(0)
    context.open_view(1)
    commit(context, 0, k=1)
    assert context.conflict(1, {"k": 2}) == ("k", 0)


def test_concurrent_equal_writes_are_none() -> None:
    context = shared()
    context.open_view(0)
    context.open_view(1)
    commit(context, 0, k=[1, {"a": 2}])
    assert context.conflict(1, {"k": [1, {"a": 2}]}) is None


def test_one_after_the_other_is_no_conflict() -> None:
    context = shared()
    context.open_view(0)
    commit(context, 0, k=1)
    context.open_view(1)
    assert context.conflict(1, {"k": 2}) is None


def test_a_long_visit_conflicts_with_an_earlier_of_two_writers() -> None:
    context = shared()
    context.open_view(9)
    for owner, value in ((0, 5), (1, 6)):
        context.open_view(owner)
        commit(context, owner, k=value)
    assert context.conflict(9, {"k": 6}) == ("k", 0)
    assert context.conflict(9, {"k": 5}) == ("k", 1)


@pytest.mark.parametrize(("left", "right"), [(1, True), (1, 1.0), (0, False), ("1", 1), (None, False)])
def test_values_of_different_types_are_not_the_same(left: Any, right: Any) -> None:
    assert not same(left, right)
    assert not same([left], [right])
    assert not same({"a": left}, {"a": right})


def test_the_order_of_keys_makes_no_difference() -> None:
    assert same({"a": 1, "b": 2}, {"b": 2, "a": 1})


RULES: list[tuple[MergeRule, Any, list[Any], Any]] = [
    ("sum", 10, [1, 2, 3.5], 16.5),
    ("append", ["x"], ["a", ["b"], "c"], ["x", "a", ["b"], "c"]),
    ("union", ["a"], [["a", "b"], ["c", "b"], "d"], ["a", "b", "c", "d"]),
]


@pytest.mark.parametrize(("rule", "base", "writes", "merged"), RULES, ids=str)
def test_a_merge_does_not_depend_on_who_finished_first(
    rule: MergeRule, base: Any, writes: list[Any], merged: Any
) -> None:
    for order in permutations(range(len(writes))):
        context = shared({"k": rule}, k=base)
        for owner in range(len(writes)):
            context.open_view(owner)
        for owner in order:
            assert context.conflict(owner, {"k": writes[owner]}) is None
            commit(context, owner, k=writes[owner])
        assert context.values["k"] == merged, order


def test_sums_of_floats_come_out_the_same_to_the_last_bit_in_any_order() -> None:
    writes = [0.1, 0.2, 0.3, 1e16, -1e16, 0.7]
    results = set()
    for seed in range(200):
        context = shared({"k": "sum"})
        for owner in range(len(writes)):
            context.open_view(owner)
        order = list(range(len(writes)))
        random.Random(seed).shuffle(order)
        for owner in order:
            commit(context, owner, k=writes[owner])
        results.add(context.values["k"])
    assert len(results) == 1


def test_writes_one_after_the_other_are_merged_in_their_own_order() -> None:
    context = shared({"k": "append"})
    for owner in (2, 0, 1):
        context.open_view(owner)
        commit(context, owner, k=owner)
    assert context.values["k"] == [2, 0, 1]


def test_the_rule_last_takes_the_later_evaluated() -> None:
    context = shared({"k": "last"})
    context.open_view(0)
    context.open_view(1)
    commit(context, 1, k="first")
    assert context.conflict(0, {"k": "second"}) is None
    commit(context, 0, k="second")
    assert context.values["k"] == "second"


@pytest.mark.parametrize(
    ("rule", "there", "written"), [("sum", "text", 1), ("sum", 1, "text"), ("sum", 1, True), ("append", 5, 1)]
)
def test_what_a_rule_cannot_merge_is_said(rule: MergeRule, there: Any, written: Any) -> None:
    assert rule in str(shared({"k": rule}, k=there).unmergeable({"k": written}))


def test_a_merged_list_that_someone_holds_is_not_changed_under_them() -> None:
    context = shared({"k": "append"}, k=[1])
    held = context.values["k"]
    context.open_view(0)
    commit(context, 0, k=2)
    assert held == [1]
