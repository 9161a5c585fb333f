"""Another process that uses a store: `python -m tests.journal.worker WHAT URL …`. It says `ready` when it has begun."""

from __future__ import annotations

import sys
from itertools import count
from time import sleep

from fsm_agent.core import events as ev
from fsm_agent.errors import RunHeld
from fsm_agent.journal.opening import open_store
from fsm_agent.journal.owners import this_process
from fsm_agent.journal.sql_store import SqlStore
from tests.journal.writing import STARTED, Pen, commit, logged


def drive(store: SqlStore, name: str, runs: str) -> None:
    """Whole runs, one after the other."""
    me = this_process(name)
    for number in range(int(runs)):
        pen = Pen(f"{name}-{number}")
        lease = store.create(pen.run_id, me, 60, pen.batch(STARTED, phase="idle"))
        for step in range(5):
            commit(store, lease, pen.batch(logged(f"step {step}"), logged()))
        end = ev.RunFinished(phase="completed", outcome="clean")
        commit(store, lease, pen.batch(end, phase="completed"))
        store.release(lease)


def acquire(store: SqlStore, name: str, run_id: str, moment: str) -> None:
    """Take a run at a moment, and say whether that went well."""
    sleep(max(0.0, float(moment) - store.now()))
    try:
        print(store.acquire(run_id, this_process(name), 60).fence)
    except RunHeld:
        print("held")


def hold(store: SqlStore, run_id: str) -> None:
    """Drive a run until the end of this process, which is to come from outside."""
    pen = Pen(run_id)
    lease = store.create(run_id, this_process("held"), 1000, pen.batch(STARTED, phase="idle"))
    print("held", flush=True)
    for step in count():
        commit(store, lease, pen.batch(logged(f"step {step}")))


if __name__ == "__main__":
    what, url, *rest = sys.argv[1:]
    opened = open_store(url)
    print("ready", flush=True)
    {"drive": drive, "acquire": acquire, "hold": hold}[what](opened, *rest)
    opened.close()
