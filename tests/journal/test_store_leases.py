"""What every store does: one drives a run, and others leave word for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from fsm_agent.errors import LeaseLost, RunHeld
from fsm_agent.journal.records import Lease, StoredSnapshot
from fsm_agent.journal.sql_store import SqlStore
from tests.journal import processes
from tests.journal.conftest import Open
from tests.journal.writing import ELSEWHERE, LONG, ME, SHORT, STARTED, YOU, Pen, logged


@pytest.fixture
def pen() -> Pen:
    return Pen()


def past(store: SqlStore, run_id: str = "r") -> None:
    """Waits until the run's lease has run out."""
    while store.now() < store.head(run_id).until:
        time.sleep(0.01)


def test_a_run_that_somebody_drives_is_refused_by_who_and_until_when(store: SqlStore, pen: Pen) -> None:
    store.create("r", ME, LONG, pen.batch(STARTED))
    with pytest.raises(RunHeld, match=f"process {ME.pid} on ") as refused:
        store.acquire("r", YOU, LONG)
    assert (refused.value.holder, refused.value.until) == (str(ME), store.head("r").until)
    assert store.head("r").fence == 1


def test_a_run_whose_lease_ran_out_can_be_taken(store: SqlStore, pen: Pen) -> None:
    store.create("r", ELSEWHERE, SHORT, pen.batch(STARTED))
    past(store)
    lease = store.acquire("r", YOU, LONG)
    head = store.head("r")
    assert (lease.fence, head.fence, head.driver) == (2, 2, YOU.to_text())
    assert head.until > store.now() + LONG / 2
    store.commit(lease, pen.batch(logged()))
    assert store.events("r") == pen.written


def test_a_run_that_was_given_up_can_be_taken(store: SqlStore, pen: Pen) -> None:
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    store.release(lease)
    assert (store.head("r").driver, store.head("r").until) == (None, 0.0)
    assert store.acquire("r", YOU, LONG) == Lease("r", lease.number, 2)


def test_a_run_whose_process_was_killed_can_be_taken_at_once(store: SqlStore, place: str) -> None:
    process = processes.begin("hold", place, "r")
    assert processes.line_of(process) == "held"
    with pytest.raises(RunHeld, match=f"process {process.pid} on "):
        store.acquire("r", ME, LONG)
    processes.kill(process)
    assert store.acquire("r", ME, LONG).fence == 2
    events = list(store.events("r"))
    assert [event.seq for event in events] == list(range(1, store.head("r").seq + 1))
    processes.bury(process)


@pytest.mark.parametrize("one_store", [True, False], ids=["by one store", "by a store each"])
def test_of_several_threads_that_take_a_run_one_gets_it(
    store: SqlStore, place: str, opened: Open, pen: Pen, one_store: bool
) -> None:
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    store.release(lease)
    stores = [store if one_store else opened(place) for _ in range(6)]
    barrier = threading.Barrier(len(stores))
    came: list[object] = []

    def take(mine: SqlStore) -> None:
        barrier.wait()
        try:
            came.append(mine.acquire("r", YOU, LONG))
        except RunHeld as refused:
            came.append(refused)

    threads = [threading.Thread(target=take, args=(mine,)) for mine in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one for one in came if isinstance(one, Lease)] == [Lease("r", lease.number, 2)]
    assert len(came) == 6


def test_of_several_processes_that_take_a_run_one_gets_it(store: SqlStore, place: str, pen: Pen) -> None:
    store.release(store.create("r", ME, LONG, pen.batch(STARTED)))
    moment = str(store.now() + 1.5)
    others = [processes.launched("acquire", place, f"p{number}", "r", moment) for number in range(4)]
    said = [processes.end(process).split("\n")[-1] for process in others]
    assert sorted(said) == ["2", "held", "held", "held"]
    assert store.head("r").fence == 2


LOST: list[Callable[[SqlStore, Lease, Pen], Any]] = [
    lambda store, lease, pen: store.commit(lease, pen.batch(logged())),
    lambda store, lease, pen: store.keep_snapshot(lease, StoredSnapshot(1, 1, "{}")),
]


@pytest.mark.parametrize("call", LOST, ids=["commit", "snapshot"])
def test_who_lost_a_run_writes_nothing_more_of_it(store: SqlStore, pen: Pen, call: Callable[..., Any]) -> None:
    lost = store.create("r", ELSEWHERE, SHORT, pen.batch(STARTED))
    past(store)
    store.acquire("r", YOU, LONG)
    head, events = store.head("r"), store.events("r")
    with pytest.raises(LeaseLost, match="'r'"):
        call(store, lost, pen)
    store.release(lost)
    assert (store.head("r"), store.events("r"), store.snapshot("r")) == (head, events, None)


def test_who_lost_a_run_is_told_so_even_for_a_batch_that_is_there(store: SqlStore, pen: Pen) -> None:
    lost = store.create("r", ELSEWHERE, SHORT, pen.batch(STARTED))
    batch = pen.batch(logged())
    store.commit(lost, batch)
    past(store)
    store.acquire("r", YOU, LONG)
    with pytest.raises(LeaseLost):
        store.commit(lost, batch)


@pytest.mark.parametrize("call", LOST, ids=["commit", "snapshot"])
def test_who_gave_a_run_up_writes_nothing_more_of_it(store: SqlStore, pen: Pen, call: Callable[..., Any]) -> None:
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    store.release(lease)
    with pytest.raises(LeaseLost):
        call(store, lease, pen)
    assert store.renew([lease], LONG) == [lease]
    assert store.head("r").driver is None


def test_who_is_late_writes_as_long_as_nobody_took_the_run(store: SqlStore, pen: Pen) -> None:
    lease = store.create("r", ELSEWHERE, SHORT, pen.batch(STARTED))
    past(store)
    store.commit(lease, pen.batch(logged()))
    assert store.renew([lease], LONG) == []
    assert store.events("r") == pen.written


def test_renewing_holds_many_runs_and_tells_those_that_are_lost(store: SqlStore) -> None:
    leases = [store.create(f"r{i}", ELSEWHERE, SHORT, Pen(f"r{i}").batch(STARTED)) for i in range(30)]
    assert store.renew([], LONG) == []
    past(store, "r29")
    lost = [leases[3], leases[17]]
    for lease in lost:
        store.acquire(lease.run_id, YOU, 2 * LONG)
    assert store.renew(leases, LONG) == lost
    assert store.renew([lease for lease in leases if lease not in lost], LONG) == []
    for head in store.heads():
        assert (head.until > store.now() + 1.5 * LONG) == (head.run_id in ("r3", "r17"))
        assert head.until > store.now() + 0.9 * LONG


# Requests -----------------------------------------------------------------------------------------------------------


def test_what_is_asked_of_runs_is_there_in_its_order_until_it_is_answered(store: SqlStore, pen: Pen) -> None:
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    store.create("s", ME, LONG, Pen("s").batch(STARTED))
    for place, (run_id, kind) in enumerate([("r", "pause"), ("s", "cancel"), ("r", "decide"), ("r", "pause")]):
        assert store.ask(run_id, kind, f'{{"by":"Ünal \\u0000","n":{2**70 + place}}}', at=place + 0.25) is None
    asked = store.requests(["r", "nothing"])
    assert [(one.run_id, one.kind, one.at) for one in asked] == [
        ("r", "pause", 0.25), ("r", "decide", 2.25), ("r", "pause", 3.25),
    ]  # fmt: skip
    assert asked[0].body == {"by": "Ünal \0", "n": 2**70}
    assert len(store.requests(["r", "s"])) == 4
    assert store.requests([]) == []
    store.commit(lease, pen.batch(logged(), taken=(asked[0].number, asked[1].number)))
    assert store.requests(["r"]) == [asked[2]]
    assert len(store.requests(["s"])) == 1


def test_of_one_key_the_first_request_counts_until_it_is_answered(store: SqlStore, pen: Pen) -> None:
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    store.create("s", ME, LONG, Pen("s").batch(STARTED))
    assert store.ask("r", "decide", '{"by":"Ann"}', at=1.0, key="a1") is None
    first = store.requests(["r"])[0]
    assert store.ask("r", "decide", '{"by":"Bob"}', at=2.0, key="a1") == first
    assert store.ask("r", "decide", '{"by":"Bob"}', at=2.0, key="a2") is None
    assert store.ask("s", "decide", '{"by":"Bob"}', at=2.0, key="a1") is None
    assert [one.body["by"] for one in store.requests(["r"])] == ["Ann", "Bob"]
    store.commit(lease, pen.batch(logged(), taken=(first.number,)))
    assert store.ask("r", "decide", '{"by":"Cem"}', at=3.0, key="a1") is None


def test_a_request_that_a_refused_commit_would_have_answered_stays(store: SqlStore, pen: Pen) -> None:
    lease = store.create("r", ME, LONG, pen.batch(STARTED))
    store.ask("r", "pause", "{}", at=1.0)
    asked = store.requests(["r"])
    store.release(lease)
    with pytest.raises(LeaseLost):
        store.commit(lease, pen.batch(logged(), taken=(asked[0].number,)))
    assert store.requests(["r"]) == asked


def test_there_is_news_when_others_have_written_or_something_was_asked(
    store: SqlStore, place: str, opened: Open, pen: Pen
) -> None:
    store.create("r", ME, LONG, pen.batch(STARTED))
    last = store.news()
    assert store.news() == last
    store.requests(["r"])
    store.head("r")
    assert store.news() == last
    opened(place).ask("r", "pause", "{}", at=1.0)
    assert store.news() != last
    last = store.news()
    store.ask("r", "pause", "{}", at=1.0)
    assert store.news() != last
