"""The case in hand: one task of one run, the run as it is now, and as it was at the few moments that matter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from fsm_agent.core.events import Event, TaskError
from fsm_agent.core.nodes import Node
from fsm_agent.core.run import Run
from fsm_agent.errors import UnknownTask
from fsm_agent.plan.compiled import CompiledTask
from fsm_agent.plan.expressions import Expression
from fsm_agent.plan.nearness import did_you_mean, near
from fsm_agent.redaction import Redactor
from fsm_agent.views.explaining.causes import settled_at
from fsm_agent.views.explaining.facts import MOST_LISTED, Fact
from fsm_agent.views.explaining.history import History, Jump
from fsm_agent.views.explaining.values import values_of
from fsm_agent.views.text import clip, one_line

Fold = Callable[[int], Run]
"""Gives the run as it was after the event of that number; 0 is before the first."""

_MOST_SAID: Final = 500
"""So many columns of what somebody said are told."""


class Case:
    """What all parts of an explanation ask."""

    def __init__(self, events: Sequence[Event], fold: Fold, task: str, redactor: Redactor) -> None:
        """Raises UnknownTask."""
        self.now = fold(events[-1].seq if events else 0)
        self.place = _place_of(self.now, task)
        self.task = task
        self.graph = self.now.compiled.graph
        self.history = History(events, self.now, task)
        self.redactor = redactor
        self._fold = fold
        self._folded = {self.now.seq: self.now}
        self._moments: dict[int, dict[int, int | None]] = {}

    @property
    def compiled(self) -> CompiledTask:
        """The plan's task."""
        return self.now.task(self.place)

    @property
    def node(self) -> Node:
        """The task's present state."""
        return self.now.schedule.nodes[self.place]

    def before(self, seq: int) -> Run:
        """The run as it was just before an event. Each moment is folded once."""
        if seq - 1 not in self._folded:
            self._folded[seq - 1] = self._fold(seq - 1)
        return self._folded[seq - 1]

    def said(self, text: str | None) -> str:
        """What people, plans and skills have said: without secrets, on one line, harmless to a terminal, not long."""
        return clip(one_line(self.redactor.text(text)), _MOST_SAID) if text else ""

    def error(self, error: TaskError | Mapping[str, Any]) -> str:
        """An error in words: its kind, its type and its message."""
        kind, of_type, message = (
            (error.kind, error.type, error.message)
            if isinstance(error, TaskError)
            else (error["kind"], None, error["message"])
        )
        return f"{kind} {of_type}: {self.said(message)}" if of_type else f"{kind}: {self.said(message)}"

    def by(self, who: str | None, why: str | None) -> str:
        """Who did something and why, as far as that is known, to be put behind a verb."""
        by = f" by {self.said(who)}" if who else ""
        return f"{by}: {self.said(why)}" if why else by

    def values(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Values as they may be shown."""
        masked: Mapping[str, Any] = self.redactor.value(dict(values))
        return masked

    def read(self, expression: Expression, names: Mapping[str, Any], **absent: str) -> Mapping[str, Any]:
        """The values that an expression read, as they may be shown."""
        secret = {name: "(a secret)" for name, each in self.now.compiled.plan.inputs.items() if each.secret}
        return self.values(values_of(expression, names, {**secret, **absent}))

    # Tasks in words -------------------------------------------------------------------------------------------------

    def name(self, place: int) -> str:
        """A task's id, in quotes."""
        return repr(self.graph.ids[place])

    def standing(self, run: Run, place: int) -> str:
        """How a task stands in a run: its status, with a skip's reason, a failure's error, or what it waits for."""
        node = run.schedule.nodes[place]
        if node.status == "SKIPPED":
            return f"SKIPPED ({node.reason})"
        if node.false_decision:
            return "FAILED (its verification is false)"
        if node.status == "FAILED" and node.error is not None:
            return f"FAILED ({self.error(node.error)})"
        return node.status

    def jumped(self, jump: Jump) -> str:
        """A jump back in words."""
        edge = "on_success" if jump.status == "SUCCEEDED" else "on_failure"
        target = "it" if jump.target == self.place else self.name(jump.target)
        return f"{self.name(jump.source)} {jump.status} and its {edge} jumped back to {target}"

    def settled_at(self, run: Run, place: int) -> int | None:
        """The event by which a task stands as it does in a run; for what follows from others, the last of theirs."""
        moments = self._moments.setdefault(run.seq, {})
        return settled_at(run, place, self.history, moments)

    def standings(self, run: Run, places: Sequence[int], kind: Any, words: str) -> list[Fact]:
        """A fact for each of some tasks, `{task} is {status}`; of very many only for the first ones."""
        facts = []
        for place in places[:MOST_LISTED]:
            settled = run.schedule.nodes[place].settled
            text = f"{words} {self.name(place)}: {self.standing(run, place)}"
            facts.append(Fact(kind, text, self.settled_at(run, place) if settled else None))
        left = places[MOST_LISTED:]
        if left:
            facts.append(Fact("omitted", f"… and {len(left):,} more: {_tally(run, left)}"))
        return facts


def moment(at: float) -> str:
    """A time of day, as people and programs read it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _tally(run: Run, places: Iterable[int]) -> str:
    nodes = run.schedule.nodes
    counts = Counter(f"{nodes[place].status}" for place in places)
    return ", ".join(f"{number:,} {status}" for status, number in counts.items())


def _place_of(run: Run, task: str) -> int:
    if not run.plan_version:
        raise UnknownTask(f"run {run.run_id!r} has no plan, and so no task {task!r}", hint="look at its events")
    index = run.compiled.graph.index
    if task not in index:
        names = near(task, index)
        raise UnknownTask(
            f"run {run.run_id!r} has no task {task!r}",
            suggestions=names,
            hint=did_you_mean(names) or "look at the run's tasks",
        )
    return index[task]
