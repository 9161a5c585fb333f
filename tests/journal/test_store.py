"""What every store does: writing and reading the journals of runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from fsm_agent.core import events as ev
from fsm_agent.errors import JournalBroken, LeaseLost, RunExists, StoreUnavailable, UnknownRun
from fsm_agent.journal.codec import decode
from fsm_agent.journal.records import StoredEvent, StoredSnapshot, TaskRow
from fsm_agent.journal.sql_store import SqlStore
from tests.journal.conftest import Open
from tests.journal.writing import LONG, ME, STARTED, YOU, Pen, commit, counts, logged, plan_of, query

FINISHED = ev.RunFinished(phase="completed", outcome="clean")
HUGE = "中文 𝄞 \0 \\u0000 \"'; -- %s ? \u2028" * 40_000
"""More than a megabyte of what is hard to keep."""


# Runs and their events ----------------------------------------------------------------------------------------------


def test_a_new_run_is_there_as_it_was_written(store: SqlStore) -> None:
    pen = Pen()
    before = store.now()
    lease = store.create("r", ME, LONG, pen.batch(STARTED, logged(), phase="planning"))
    assert (lease.run_id, lease.fence) == ("r", 1)
    assert store.events("r") == pen.written
    head = store.head("r")
    assert (head.run_id, head.number, head.phase, head.seq) == ("r", lease.number, "planning", 2)
    assert (head.checksum, head.plan_version, head.plan) == (pen.checksum, 0, None)
    assert (head.driver, head.fence, head.created, head.changed) == (ME.to_text(), 1, 1001.0, 1002.0)
    assert before + LONG <= head.until <= store.now() + LONG


def test_a_second_run_of_one_id_is_refused_and_the_first_stays(store: SqlStore) -> None:
    pen = Pen()
    store.create("r", ME, LONG, pen.batch(STARTED))
    with pytest.raises(RunExists, match="'r'"):
        store.create("r", YOU, LONG, Pen().batch(STARTED, logged()))
    with pytest.raises(RunExists, match="'r'"):
        store.create("r", ME, LONG, Pen().batch(logged("another")))
    with pytest.raises(RunExists, match="'r'"):
        store.bring_in("r", Pen().batch(STARTED), 5.0)
    assert store.events("r") == pen.written
    assert counts(store)["journal"] == 1


def test_a_run_whose_creation_was_not_answered_is_created_once(store: SqlStore) -> None:
    batch = Pen().batch(STARTED)
    lease = store.create("r", ME, LONG, batch)
    assert store.create("r", ME, LONG, batch) == lease
    assert len(store.events("r")) == 1  # type: ignore[arg-type] # a list


def test_a_commit_adds_events_and_moves_the_run(store: SqlStore) -> None:
    pen = Pen()
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    plan = plan_of("d1", {"id": "a"})
    store.commit(lease, pen.batch(logged(), logged(), phase="paused", plan_version=1, plan="d1", plans=(plan,)))
    head = store.head("r")
    assert store.events("r") == pen.written
    assert (head.seq, head.phase, head.plan_version, head.plan) == (3, "paused", 1, "d1")
    assert (head.checksum, head.changed, head.created) == (pen.checksum, 1003.0, 1001.0)
    assert store.plan("d1") == plan


def test_a_batch_whose_answer_was_lost_is_not_written_again(store: SqlStore) -> None:
    pen = Pen()
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    batch = pen.batch(logged(), logged())
    store.commit(lease, batch)
    store.commit(lease, batch)
    assert store.events("r") == pen.written
    store.commit(lease, pen.batch(logged()))
    store.commit(lease, batch)
    assert store.events("r") == pen.written


@pytest.mark.parametrize(("written", "seq"), [(1, 2), (3, 5)], ids=["what is there already", "a gap"])
def test_a_batch_that_does_not_follow_on_is_refused(store: SqlStore, written: int, seq: int) -> None:
    pen = Pen()
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    store.commit(lease, pen.batch(logged()))
    other = Pen()
    other.seq = written
    with pytest.raises(JournalBroken, match="up to event 2") as refused:
        store.commit(lease, other.batch(logged("another"), *([logged()] * (seq - 2))))
    assert refused.value.seq == written + 1
    assert store.events("r") == pen.written
    assert store.head("r").checksum == pen.checksum


def test_of_two_that_write_the_same_place_the_second_is_refused(store: SqlStore) -> None:
    pen, other = Pen(), Pen()
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    other.batch(STARTED)
    store.commit(lease, pen.batch(logged("one"), logged("two")))
    with pytest.raises(JournalBroken):
        store.commit(lease, other.batch(logged("one"), logged("three")))
    assert store.events("r") == pen.written


@pytest.mark.parametrize(("after", "upto", "expected"), [
    (0, None, [1, 2, 3, 4, 5]), (2, None, [3, 4, 5]), (0, 2, [1, 2]), (1, 3, [2, 3]), (5, None, []), (3, 3, []),
    (9, None, []), (-1, 2**40, [1, 2, 3, 4, 5]), (0, 0, []), (4, 2, []),
])  # fmt: skip
def test_events_are_read_from_one_to_another(
    store: SqlStore, after: int, upto: int | None, expected: list[int]
) -> None:
    neighbour = Pen("q")
    store.create("q", ME, LONG, neighbour.batch(STARTED, logged()))
    pen = Pen()
    store.create("r", ME, LONG, pen.batch(STARTED, *[logged()] * 4))
    store.create("s", ME, LONG, Pen("s").batch(STARTED, logged()))
    assert [event.seq for event in store.events("r", after, upto)] == expected


def test_any_text_comes_back_exactly(store: SqlStore) -> None:
    pen = Pen("跑步 🏃 %s")
    batch = pen.batch(
        ev.RunStarted(goal=HUGE), ev.TaskEvaluated(task="a", visit=1, status="SUCCEEDED", data={HUGE[:99]: HUGE})
    )
    store.create(pen.run_id, ME, LONG, batch)
    assert store.events(pen.run_id) == pen.written
    started = decode(next(iter(store.events(pen.run_id))), pen.run_id)
    assert isinstance(started, ev.RunStarted)
    assert started.goal == HUGE
    assert len(pen.written[1].body) > 1_000_000


def test_moments_come_back_to_the_last_digit(store: SqlStore) -> None:
    events = tuple(StoredEvent(seq, 1796078898.2922928 + seq / 3, "progress", "{}") for seq in range(1, 20))
    pen = Pen()
    batch = pen.batch(STARTED)
    store.create("r", ME, LONG, type(batch)(events, 7, "executing"))
    assert store.events("r") == list(events)


def test_a_run_from_elsewhere_is_driven_by_nobody(store: SqlStore) -> None:
    pen = Pen()
    plan = plan_of("d1", {"id": "a"})
    row = TaskRow(0, "a", "SUCCEEDED", None, 1, 1, 0, None, 1, 2)
    batch = pen.batch(STARTED, FINISHED, phase="completed", plan="d1", plan_version=1, plans=(plan,), tasks=(row,))
    store.bring_in("r", batch, 77.0)
    head = store.head("r")
    assert store.events("r") == pen.written
    assert (head.driver, head.until, head.created, head.phase, head.plan) == (None, 0.0, 77.0, "completed", "d1")
    assert store.heads(unfinished=True) == []
    assert query(store, "SELECT task, status FROM tasks") == [("a", "SUCCEEDED")]
    assert store.acquire("r", ME, LONG).fence == 1


def test_runs_are_listed_the_latest_first_and_those_that_are_over_can_be_left_out(store: SqlStore) -> None:
    leases = {}
    for number, name in enumerate("abcd"):
        pen = Pen(name)
        pen.at = 1000.0 * number
        leases[name] = store.create(name, ME, LONG, pen.batch(STARTED, phase="planning"))
        if name in "bc":
            phase = {"b": "failed", "c": "cancelled"}[name]
            store.commit(leases[name], pen.batch(logged(), phase=phase))
            store.commit(leases[name], pen.batch(FINISHED, phase=phase))
    assert [head.run_id for head in store.heads()] == ["d", "c", "b", "a"]
    assert [head.run_id for head in store.heads(unfinished=True)] == ["d", "a"]
    assert store.heads()[0] == store.head("d")


def test_a_plan_that_is_not_there_is_none(store: SqlStore) -> None:
    assert store.plan("nothing") is None


def test_a_snapshot_takes_the_place_of_the_one_before(store: SqlStore) -> None:
    lease = store.create("r", ME, LONG, Pen().batch(STARTED))
    assert store.snapshot("r") is None
    for seq in (1, 2):
        store.keep_snapshot(lease, StoredSnapshot(seq, 2**32 - seq, "中" * seq))
    assert store.snapshot("r") == StoredSnapshot(2, 2**32 - 2, "中中")
    assert counts(store)["snapshot"] == 1


UNKNOWN: list[Callable[[SqlStore, str], Any]] = [
    lambda store, run_id: store.head(run_id),
    lambda store, run_id: store.events(run_id),
    lambda store, run_id: store.snapshot(run_id),
    lambda store, run_id: store.acquire(run_id, ME, LONG),
    lambda store, run_id: store.ask(run_id, "pause", "{}", at=1.0),
]


@pytest.mark.parametrize("call", UNKNOWN)
@pytest.mark.parametrize("run_id", ["nothing", "", "a\0b", "\udc80", "'; --"])
def test_a_run_that_is_not_there_is_unknown(store: SqlStore, call: Callable[[SqlStore, str], Any], run_id: str) -> None:
    with pytest.raises(UnknownRun):
        call(store, run_id)
    assert store.remove([run_id]) == 0


# What holds it together ---------------------------------------------------------------------------------------------


def test_events_are_neither_changed_nor_deleted_one_by_one(store: SqlStore) -> None:
    pen = Pen()
    store.create("r", ME, LONG, pen.batch(STARTED, logged()))
    for text in ("UPDATE journal SET body = '{}'", "DELETE FROM journal WHERE type = 'task_logged'"):
        with pytest.raises(Exception, match=r"^(single )?events are never"):
            query(store, text)
    assert store.events("r") == pen.written


def test_removing_takes_runs_that_nobody_drives_and_the_plans_that_only_they_used(store: SqlStore) -> None:
    plans = {name: plan_of(name, {"id": "a"}) for name in ("shared", "old", "new")}
    row = TaskRow(0, "a", "RUNNING", None, 1, 1, 0, None, 1, None)
    for name in "ab":
        pen = Pen(name)
        uses = [plans["shared"]] if name == "b" else list(plans.values())
        batch = pen.batch(STARTED, plan=uses[-1].digest, plans=tuple(uses), tasks=(row,))
        lease = store.create(name, ME, LONG, batch)
        store.keep_snapshot(lease, StoredSnapshot(1, 1, "{}"))
        store.ask(name, "pause", "{}", at=1.0)
        if name == "a":
            assert store.remove(["a"]) == 0
            store.release(lease)
    whole = counts(store)
    assert store.remove(["a", "a", "b", "c"]) == 1
    assert [head.run_id for head in store.heads()] == ["b"]
    assert counts(store) == {name: count // 2 for name, count in whole.items()} | {"plan": 1, "plan_use": 1}
    assert store.plan("shared") == plans["shared"]
    assert [request.run_id for request in store.requests(["a", "b"])] == ["b"]


def test_a_plan_is_kept_once_and_new_runs_may_bring_back_one_that_went(store: SqlStore) -> None:
    plan = plan_of("d", {"id": "a"})
    for name in "abc":
        batch = Pen(name).batch(STARTED, plan="d", plans=(plan,))
        store.bring_in(name, batch, 1.0)
        assert counts(store)["plan"] == 1
        if name == "b":
            assert store.remove("ab") == 2
            assert counts(store)["plan"] == 0


def test_the_number_of_a_run_that_went_is_not_used_again(store: SqlStore) -> None:
    lease = store.create("r", ME, LONG, Pen().batch(STARTED))
    store.release(lease)
    store.remove(["r"])
    assert store.create("r", ME, LONG, Pen().batch(STARTED)).number > lease.number
    with pytest.raises(LeaseLost):
        store.commit(lease, Pen().batch(STARTED, logged()))


def test_a_store_opened_again_by_its_own_url_has_all_that_was_written(store: SqlStore, opened: Open) -> None:
    pen = Pen()
    store.create("r", ME, LONG, pen.batch(STARTED))
    again = opened(store.url)
    assert again.url == store.url
    assert again.events("r") == pen.written
    assert again.head("r") == store.head("r")


def test_threads_may_share_one_store(store: SqlStore) -> None:
    faults: list[BaseException] = []

    def write(name: str) -> None:
        try:
            pen = Pen(name)
            lease = store.create(name, ME, LONG, pen.batch(STARTED))
            for _ in range(20):
                commit(store, lease, pen.batch(logged()))
                store.requests([name])
            assert store.events(name) == pen.written
        except BaseException as fault:  # noqa: BLE001 - it is shown below
            faults.append(fault)

    threads = [threading.Thread(target=write, args=(f"run-{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert len(store.heads()) == 6


def test_a_commit_that_is_interrupted_leaves_nothing_and_the_store_goes_on(store: SqlStore) -> None:
    pen = Pen()
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    batch = pen.batch(logged(), logged())

    class Interrupted:
        def __iter__(self) -> Any:
            raise KeyboardInterrupt

    database: Any = store._db
    steps = store._steps(lease, batch)
    with pytest.raises(KeyboardInterrupt):
        database.write([*steps, ("forget_task", Interrupted())])
    assert store.head("r").seq == 1
    store.commit(lease, batch)
    assert store.events("r") == pen.written


def test_a_store_that_was_closed_is_of_no_use(store: SqlStore) -> None:
    lease = store.create("r", ME, LONG, Pen().batch(STARTED))
    store.close()
    for call in (store.heads, store.now if not store.is_quick else store.news, lambda: store.release(lease)):
        with pytest.raises(StoreUnavailable, match="closed"):
            call()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.commit(lease, Pen().batch(STARTED))
    store.close()
