"""Interpreters for expressions: one a thread, for all runs of an engine.

An evaluation is synchronous, calls nothing of a user's, and leaves nothing behind, so that runs which share a thread
can share its interpreter. Threads never do.
"""

from __future__ import annotations

import threading

from fsm_agent.plan.expressions import Evaluator


class Evaluators(threading.local):
    """The interpreter of the current thread, made when it is first asked for."""

    def __init__(self) -> None:
        self.mine = Evaluator()
