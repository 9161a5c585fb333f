"""What an explanation is made of: facts with the events that show them, and one sentence that sums them up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Literal

from fsm_agent.core.result import FORMAT

Kind = Literal[
    "origin", "omitted", "active", "dependency", "join", "loop", "phase", "condition", "decision", "approval", "visit",
    "attempt", "verification", "context", "filter", "driver", "event", "skip", "failure", "wait", "ending",
]  # fmt: skip

MOST_LISTED: Final = 10
"""So many tasks of one sort are named; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is so: its kind, the words for it, and the values that decided, by their names.

    `seq` is the event that shows it; None for what follows from the plan, or from the state as a whole.
    """

    kind: Kind
    text: str
    seq: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """All four fields as plain data."""
        return {"kind": self.kind, "text": self.text, "seq": self.seq, "values": dict(self.values)}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task stands as it does: its status (and a skip's reason), one sentence, and the facts, in their order."""

    task: str
    status: str
    reason: str | None
    summary: str
    facts: tuple[Fact, ...]

    def to_json(self) -> dict[str, Any]:
        """The document that the command line prints."""
        return {
            "format": FORMAT,
            "task": self.task,
            "status": self.status,
            "reason": self.reason,
            "summary": self.summary,
            "facts": [fact.to_json() for fact in self.facts],
        }


@dataclass(frozen=True, slots=True)
class Telling:
    """Part of an explanation: what its sentence says, and the facts for that."""

    summary: str
    facts: Sequence[Fact] = ()


def listed(words: Iterable[str], total: int) -> str:
    """The first of the words with commas between them, and how many of the `total` are left out."""
    shown = list(islice(words, MOST_LISTED))
    left = total - len(shown)
    return ", ".join(shown) + (f" … and {left:,} more" if left > 0 else "")


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: 1 attempt, 2 attempts."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def bounded(facts: Sequence[Fact], first: int, last: int) -> list[Fact]:
    """The facts; of very many only the first and the last ones, with one between them that says so."""
    left = len(facts) - first - last
    if left <= 1:
        return list(facts)
    between = Fact("omitted", f"… and {left:,} more", facts[first].seq)
    return [*facts[:first], between, *facts[len(facts) - last :]]
