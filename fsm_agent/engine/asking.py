"""What somebody wants of a run that another process drives: written down in the store, taken up by its driver."""

from __future__ import annotations

from typing import Any, cast, get_args

from fsm_agent.core.events import CancelAsked, DecisionIgnored, PauseAsked, Verdict
from fsm_agent.engine.driver import Driver
from fsm_agent.errors import FsmAgentError
from fsm_agent.journal.records import Request


def answer(driver: Driver, request: Request, *, is_stale: bool = False) -> None:
    """Do what was asked for: each request becomes an event, and is gone from the store with it. A stale one is only
    gone.
    """
    by, why = _text(request.body.get("by")), _text(request.body.get("why"))
    driver.answering(request.number)
    if is_stale:
        return
    if request.kind == "pause":
        driver.tell(PauseAsked(by=by, why=why))
    elif request.kind == "cancel":
        driver.tell(CancelAsked(by=by, why=why))
    else:
        _decide(driver, request, by, why)


def _decide(driver: Driver, request: Request, by: str | None, why: str | None) -> None:
    body = request.body
    approval = str(body.get("approval"))
    word = body.get("decision")
    verdict = cast(Verdict, word if word in get_args(Verdict) else "rejected")
    try:
        driver.decide(approval, verdict, by=by, why=why, result=body.get("result"), at=request.at)
    except FsmAgentError as error:
        driver.tell(DecisionIgnored(approval=approval, decision=verdict, by=by, why=why, message=error.message))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
