"""What somebody wants of a run that another process drives: written down in the store, taken up by its driver."""

from __future__ import annotations

from fsm_agent.core.events import CancelAsked, PauseAsked
from fsm_agent.engine.decisions import decision_in, text_in
from fsm_agent.engine.driver import Driver
from fsm_agent.journal.records import Request


def answer(driver: Driver, request: Request, *, is_stale: bool = False) -> None:
    """Do what was asked for: each request becomes an event, and is gone from the store with it. A stale one is only
    gone.
    """
    driver.answering(request.number)
    if is_stale:
        return
    body = driver.filled(request.body)
    by, why = text_in(body, "by"), text_in(body, "why")
    if request.kind == "pause":
        driver.tell(PauseAsked(by=by, why=why))
    elif request.kind == "cancel":
        driver.tell(CancelAsked(by=by, why=why))
    else:
        driver.decided(decision_in(driver.run, body, request.at))
