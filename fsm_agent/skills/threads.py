"""Daemon threads for sync skills: reused when idle, left behind when hung, never waited for at exit.

`concurrent.futures` joins its threads when the program ends, so that one hung skill would keep it from ending.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

IDLE_SECONDS = 10.0
"""How long a thread waits for more work before it ends."""

Work = Callable[[], None]


class Threads:
    """As many daemon threads as there is work at once. There is no queue: work never waits behind hung work."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self.idle_seconds = idle_seconds
        self.idle: deque[_Worker] = deque()
        self.busy: set[_Worker] = set()
        """Those at work, hung ones included."""
        self._pid = os.getpid()

    def submit(self, work: Work) -> None:
        """Do `work`, which must not raise, on an idle thread or a new one. Raises RuntimeError where none can start."""
        if self._pid != os.getpid():  # after a fork the threads are gone, though the list of them is not
            self.idle, self.busy, self._pid = deque(), set(), os.getpid()
        try:
            worker = self.idle.pop()
        except IndexError:
            worker = _Worker(self)
            threading.Thread(target=worker.loop, name="fsm-agent-skill", daemon=True).start()
        self.busy.add(worker)
        worker.inbox.put(work)


class _Worker:
    """One thread's inbox. Whoever takes it off the idle list owes it work."""

    __slots__ = ("_threads", "inbox")

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self.inbox: SimpleQueue[Work] = SimpleQueue()

    def loop(self) -> None:
        idle = self._threads.idle
        work: Work | None = self.inbox.get()
        while work is not None:
            work()
            del work  # what it holds should not live on while this thread is idle
            self._threads.busy.discard(self)
            idle.append(self)
            work = self._next()

    def _next(self) -> Work | None:
        try:
            return self.inbox.get(timeout=self._threads.idle_seconds)
        except Empty:
            pass
        try:
            self._threads.idle.remove(self)
        except ValueError:
            return self.inbox.get()  # taken off the list at this very moment: its work is on the way
        return None


THREADS = Threads()
"""The process's skill threads. They belong to the process, as threads do, and hold nothing of any run."""
