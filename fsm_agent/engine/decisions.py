"""What people decided about runs, as it was left in the store: the events that these decisions are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from fsm_agent.core.approvals import decision_on, has_expired
from fsm_agent.core.events import ApprovalDecided, DecisionIgnored, Verdict
from fsm_agent.core.run import Run
from fsm_agent.errors import DecisionRefused


def request_body(approval: str, verdict: Verdict, by: str | None, why: str | None, result: Any) -> dict[str, Any]:
    """A decision as it is left in the store. `result` is plain data."""
    return {"approval": approval, "decision": verdict, "by": by, "why": why, "result": result}


def decision_in(run: Run, body: Mapping[str, Any], at: float) -> ApprovalDecided | DecisionIgnored:
    """What the body of a request decides that was left in the store at the time of day `at`: it counts as of then, or
    comes to nothing.
    """
    approval, word = str(body.get("approval")), body.get("decision")
    verdict = cast(Verdict, word if word in get_args(Verdict) else "rejected")
    by, why = text_in(body, "by"), text_in(body, "why")
    try:
        asked = run.approvals.find(approval, verdict)
    except DecisionRefused as refused:
        return DecisionIgnored(approval=approval, decision=verdict, by=by, why=why, message=refused.message)
    if has_expired(asked, at):
        return decision_on(asked, "expired")
    return decision_on(asked, verdict, by=by, why=why, result=body.get("result"))


def text_in(body: Mapping[str, Any], name: str) -> str | None:
    """One text of a request: nothing where another program left something else."""
    value = body.get(name)
    return value if isinstance(value, str) else None
