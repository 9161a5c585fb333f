"""The facts of one turn: how the machine came to it, what its expressions read, and what happened in its visit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fsm_agent.core import events as ev
from fsm_agent.core.names import names_of
from fsm_agent.core.run import Run
from fsm_agent.plan.expressions import Expression
from fsm_agent.views.explaining.case import Case
from fsm_agent.views.explaining.facts import Fact, Telling, bounded
from fsm_agent.views.explaining.happenings import tell
from fsm_agent.views.explaining.history import Turn
from fsm_agent.views.explaining.origins import origin
from fsm_agent.views.explaining.values import parameters_of
from fsm_agent.views.text import one_line

_FIRST, _LAST = 10, 20
"""Of what happened in one turn, so many facts are told from its beginning and from its end."""

_EARLIER: Final = 5
"""So many turns are told in short."""


def in_short(case: Case, turns: Sequence[Turn]) -> list[Fact]:
    """Turns that do not decide how the task stands now, in short, and of many only the last ones."""
    facts: list[Fact] = []
    left = len(turns) - _EARLIER
    if left > 0:
        facts.append(Fact("omitted", f"… {left:,} earlier turns", turns[0].opening.seq))
    for turn in turns[-_EARLIER:]:
        if turn.jump is not None:
            facts.append(Fact("loop", f"round {turn.jump.round} began: {case.jumped(turn.jump)}", turn.jump.seq))
        facts += [*entered(turn), *(fact for event in turn.events[-2:] if (fact := tell(case, event)) is not None)]
    return facts


def last_turn(case: Case, turn: Turn) -> Telling:
    """The last turn in full. The summary says why the task had it."""
    before = case.before(turn.opening.seq)
    why = _again(case, turn.rerun) if turn.rerun is not None else origin(case, before, turn.jump)
    facts = [*why.facts, *entered(turn), *_condition(case, turn, before)]
    happened: list[Fact] = []
    for event in turn.events:
        if isinstance(event, ev.TaskStarted):
            happened.append(_with_parameters(case, turn, event))
        elif isinstance(event, ev.TaskEvaluated):
            happened += [*_decision(case, event, before), *_verification(case, turn, event)]
        fact = tell(case, event)
        if fact is not None and not isinstance(event, ev.TaskStarted):
            happened.append(fact)
    return Telling(why.summary, [*facts, *bounded(happened, _FIRST, _LAST)])


def _again(case: Case, decided: ev.ApprovalDecided) -> Telling:
    text = f"it was to be run again{case.by(decided.by, decided.why)}"
    return Telling(text, [Fact("active", text, decided.seq)])


def entered(turn: Turn) -> list[Fact]:
    """The transition by which the machine was executing when the turn came."""
    change = turn.entered
    if change is None:
        return []
    guard = f"guard {change.guard}" if change.guard else "no guard: nothing else was due"
    return [Fact("phase", f"{change.source} → {change.dest} by {change.trigger} ({guard})", change.seq)]


def _condition(case: Case, turn: Turn, before: Run) -> list[Fact]:
    expression = case.compiled.condition
    if expression is None:
        return []
    opening = turn.opening
    erred = _error_in(opening, "condition")
    if isinstance(opening, ev.TaskSkipped):
        verdict = "was false"
    elif erred is not None:
        verdict = f"could not be evaluated: {case.said(erred)}"
    else:
        verdict = "was not false" if isinstance(opening, ev.VisitRefused) else "was true"
    values = case.read(expression, names_of(before, expression))
    return [Fact("condition", f"its condition `{one_line(expression.text)}` {verdict}", opening.seq, values)]


def _decision(case: Case, event: ev.TaskEvaluated, before: Run) -> list[Fact]:
    expression = case.compiled.decision_expression
    if expression is None or _error_in(event, "condition") is not None:
        return []
    erred = _error_in(event, "verification")
    verdict = "was true" if event.status == "SUCCEEDED" else "was false"
    if erred is not None:
        verdict = f"could not be evaluated: {case.said(erred)}"
    values = case.read(expression, names_of(before, expression))
    return [
        Fact(
            "decision",
            f"it is a decision, and its verification `{one_line(expression.text)}` {verdict}",
            event.seq,
            values,
        )
    ]


def _error_in(event: ev.Event, what: str) -> str | None:
    """The message of an error in one of the task's own expressions, if that is what ended the turn."""
    error = event.error if isinstance(event, ev.TaskEvaluated) else None
    if error is None or error.kind != "condition" or not error.message.startswith(f"{what}: "):
        return None
    return error.message.removeprefix(f"{what}: ")


def _verification(case: Case, turn: Turn, event: ev.TaskEvaluated) -> list[Fact]:
    """What a result was measured by, where it was. The result of a call that failed is not in the journal."""
    expression = case.compiled.verification
    if expression is None or event.attempts == 0:
        return []
    erred = _error_in(event, "verification")
    if event.fallback_used:
        return [Fact("verification", "its fallback stood in, and that is not verified", event.seq)]
    if erred is not None:
        verdict = f"could not be evaluated: {case.said(erred)}"
    elif event.verified is not None:
        verdict = "was true" if event.verified else "was false, which its on_unverified lets pass"
    elif event.error is not None and event.error.kind == "verification":
        verdict = "was false"
    else:
        return []
    values = _read_by_visit(case, turn, event, expression)
    return [Fact("verification", f"its verification `{one_line(expression.text)}` {verdict}", event.seq, values)]


def _read_by_visit(case: Case, turn: Turn, event: ev.TaskEvaluated, expression: Expression) -> Mapping[str, Any]:
    committed = next((each for each in turn.events if isinstance(each, ev.ContextChanged)), None)
    run = case.before(committed.seq if committed is not None else event.seq)
    writes = committed.changes if committed is not None else None
    running = run.schedule.nodes[case.place].status == "RUNNING"
    view = run.context.view_of(case.place) if running else None
    names = names_of(run, expression, view=view, writes=writes, result=event.data)
    if event.verified is None:
        names.pop("result", None)
    return case.read(expression, names, result="(not kept: the call failed)")


def _with_parameters(case: Case, turn: Turn, event: ev.TaskStarted) -> Fact:
    parameters = event.parameters
    if parameters is None:
        asked = [each for each in turn.events if isinstance(each, ev.ApprovalAsked) and each.seq < event.seq]
        parameters = asked[-1].parameters if asked else case.compiled.task.parameters
    named = parameters_of(parameters)
    left = len(parameters or {}) - len(named)
    more = f" (… and {left:,} more parameters)" if left > 0 else ""
    return Fact("visit", f"visit {event.visit} began{more}", event.seq, case.values(named))
