"""Why a task of a run ran, waits, or was not taken: with the guard or the join and the values that decided it.

A pure reading of the run's events. It costs one pass over them, and the run is folded at no more than a few moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from fsm_agent.core import events as ev
from fsm_agent.redaction import Redactor
from fsm_agent.views.explaining.case import Case, Fold
from fsm_agent.views.explaining.endings import ended_before
from fsm_agent.views.explaining.facts import Explanation, Fact, Telling, counted
from fsm_agent.views.explaining.failures import failed, skipped_as_optional
from fsm_agent.views.explaining.skips import not_taken, upstream_failed
from fsm_agent.views.explaining.turns import in_short, last_turn
from fsm_agent.views.explaining.values import in_words
from fsm_agent.views.explaining.waits import approval, pending, ready, running
from fsm_agent.views.text import one_line, pad, width, wrap

__all__ = ["Explanation", "Fact", "Fold", "explain", "explanation_text"]

_MOST_VALUES: Final = 4
"""So many values are in a summary."""

_MOST_LINES: Final = 20
"""So many lines a fact may take."""

_EXPRESSIONS: Final = ("condition", "decision", "verification")
_WITHOUT_TURN: Final = ("not_taken", "upstream_failed")


def explain(events: Sequence[ev.Event], fold: Fold, task: str, *, redactor: Redactor | None = None) -> Explanation:
    """Why a task of a run stands as it does. `events` are all of the run so far, in order.

    `fold(n)` gives the run as it was after event n; what it gives is only read, and asked for a handful of moments.
    What `redactor` knows as secrets, and what is named like one, is shown as ***. Raises UnknownTask.
    """
    case = Case(events, fold, task, redactor or Redactor())
    status = "PENDING" if case.node.status == "READY" and case.now.final else case.node.status
    told = _told(case, status)
    summary = one_line(f"{task!r} is {_standing(status, case.node.reason)}: {told.summary}.")
    return Explanation(task, status, case.node.reason, summary, tuple(told.facts))


def _standing(status: str, reason: str | None) -> str:
    return f"{status} ({reason})" if reason else status


def _told(case: Case, status: str) -> Telling:
    turns = case.history.turns
    had_turn = status not in ("PENDING", "READY") and case.node.reason not in _WITHOUT_TURN
    if not had_turn or not turns:
        why = _WITHOUT[status](case) if not (status == "PENDING" and _is_over(case)) else ended_before(case)
        return Telling(why.summary, [*_copied(case), *in_short(case, turns), *why.facts])
    facts = [*_copied(case), *in_short(case, turns[:-1])]
    turn = last_turn(case, turns[-1])
    why = _WITH_TURN[case.node.reason or status](case, turn)
    return Telling(why.summary, [*facts, *turn.facts, *why.facts])


def _is_over(case: Case) -> bool:
    return case.now.final or case.now.is_ending


def _copied(case: Case) -> Iterator[Fact]:
    forked, turn = case.history.forked, case.history.last
    if forked is not None and turn is not None and turn.opening.seq <= forked.upto:
        text = f"up to event {forked.upto} the run is a copy of run {forked.source!r}, where that much happened"
        yield Fact("origin", text, forked.seq)


# Tasks that have had a turn -------------------------------------------------------------------------------------------


def _succeeded(case: Case, turn: Telling) -> Telling:
    node = case.node
    last = case.history.turns[-1].events[-1]
    if isinstance(last, ev.ApprovalDecided) and last.decision == "done":
        return Telling(f"it was declared done{case.by(last.by, last.why)}")
    read = _read(turn)
    if case.compiled.is_decision:
        return Telling(f"{turn.summary}{read}")
    how = "by its fallback" if node.fallback_used else f"visit {node.visits}"
    unverified = ", not verified" if node.verified is False else ""
    attempts = counted(_attempts(case), "attempt")
    return Telling(f"{turn.summary}{read}, and it succeeded ({how}, {attempts}{unverified})")


def _attempts(case: Case) -> int:
    """The calls of the last visit."""
    ends = [event for event in case.history.turns[-1].events if isinstance(event, ev.TaskEvaluated)]
    return ends[-1].attempts if ends else 0


def _read(turn: Telling) -> str:
    """What the task's expression read at its turn, to be put behind the reason for that."""
    fact = next((fact for fact in reversed(turn.facts) if fact.kind in ("condition", "decision")), None)
    return f", {fact.text}{_where(fact)}" if fact is not None else ""


def _where(fact: Fact) -> str:
    words = list(in_words(dict(list(fact.values.items())[:_MOST_VALUES])))
    return f" where {', '.join(words)}" if words else ""


def _by_condition(_: Case, turn: Telling) -> Telling:
    fact = next(fact for fact in turn.facts if fact.kind == "condition")
    return Telling(f"{fact.text}{_where(fact)}")


def _by_person(case: Case, _: Telling) -> Telling:
    last = case.history.turns[-1].events[-1]
    by = case.by(last.by, last.why) if isinstance(last, ev.ApprovalDecided) else ""
    return Telling(f"it was skipped{by or ' by a person'}")


def _failed(case: Case, turn: Telling) -> Telling:
    why = failed(case)
    error = case.node.error
    if error is not None and error.kind not in ("condition", "verification"):
        return why
    read = next((fact for fact in reversed(turn.facts) if fact.kind in _EXPRESSIONS), None)
    return Telling(f"{read.text}{_where(read)}; {why.summary}" if read is not None else why.summary, why.facts)


_WITH_TURN: Final[dict[str, Callable[[Case, Telling], Telling]]] = {
    "SUCCEEDED": _succeeded,
    "FAILED": _failed,
    "RUNNING": lambda case, _: running(case),
    "WAITING_APPROVAL": lambda case, _: approval(case),
    "condition": _by_condition,
    "optional": lambda case, _: skipped_as_optional(case),
    "person": _by_person,
}

_WITHOUT: Final[dict[str, Callable[[Case], Telling]]] = {
    "PENDING": pending,
    "READY": ready,
    "SKIPPED": lambda case: not_taken(case) if case.node.reason == "not_taken" else upstream_failed(case),
}


# As text --------------------------------------------------------------------------------------------------------------


def explanation_text(explanation: Explanation, columns: int = 100) -> str:
    """The explanation as plain lines of at most about so many columns: the sentence, then each fact with its event."""
    lines = [*wrap(one_line(explanation.summary), columns, _MOST_LINES), ""]
    seqs = [f"#{fact.seq}" if fact.seq is not None else "" for fact in explanation.facts]
    widest = max(map(len, seqs), default=0)
    for seq, fact in zip(seqs, explanation.facts, strict=True):
        head = f"{seq:>{widest}}  {pad(fact.kind, 12)}"
        lines += _hung(head, fact.text, columns)
        for words in in_words(fact.values):
            lines += _hung(" " * width(head) + "  ", words, columns)
    return "\n".join(lines).rstrip() + "\n"


def _hung(head: str, text: str, columns: int) -> Iterator[str]:
    """The text behind its head, its further lines under its first."""
    indent = width(head)
    for place, line in enumerate(wrap(one_line(text), max(20, columns - indent), _MOST_LINES)):
        yield (head if place == 0 else " " * indent) + line
