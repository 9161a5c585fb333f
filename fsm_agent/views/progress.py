"""Plain progress lines of a run: one for each event that a person cares about, on any stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from msgspec import structs

from fsm_agent.core import events as ev
from fsm_agent.plan.graph import is_decision
from fsm_agent.plan.model import Plan
from fsm_agent.redaction import Redactor
from fsm_agent.views.text import clip, one_line, pad, width

_WORD_COLUMNS: Final = 9
_MOST_ID_COLUMNS: Final = 28
_MOST_DETAIL_COLUMNS: Final = 160
_PROGRESS_EVERY: Final = 1.0
"""A task that tells more often than this, in seconds, is shown less often."""

_COLOURS: Final = {
    "done": "32", "true": "32", "completed": "1;32",
    "failed": "31", "blocked": "31", "limit": "31", "cancelled": "1;31",
    "retry": "33", "waiting": "33", "fallback": "33", "abandoned": "33", "discarded": "33", "rollback": "33",
    "undone": "33",
    "skipped": "2", "false": "2", "log": "2", "progress": "2",
    "phase": "36", "run": "1",
}  # fmt: skip


_DATA: Final = frozenset({"goal", "message", "text", "fields", "reason", "error", "by", "why"})
"""Fields of events that hold what people, plans and skills say. The rest is the engine's own: ids, counts, words."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one line says: a word, the task it is about (if any), and the details."""

    word: str
    task: str | None = None
    detail: str = ""


class ProgressLines:
    """A listener that writes a line for each event worth one: `  1.2s  done      sales   2 attempts`.

    Times are seconds since the first event. Secrets in data become ***, and what data says cannot command a terminal.
    """

    def __init__(
        self,
        stream: TextIO,
        plan: Plan | None = None,
        *,
        redactor: Redactor | None = None,
        colour: bool | None = None,
        every_phase: bool = False,
    ) -> None:
        """`plan` sets the width of the task column and tells decisions from tasks.

        `colour` is by default on where the stream is a terminal. With `every_phase`, the steps between *executing* and
        *evaluating* are lines too: one or more for every task that settles.
        """
        self._stream = stream
        self._redactor = redactor or Redactor()
        self._colour = stream.isatty() if colour is None else colour
        self._every_phase = every_phase
        self._columns, self._decisions = _measured(plan)
        self._began: float | None = None
        self._started: dict[str, float] = {}
        self._told: dict[str, float] = {}

    def __call__(self, event: ev.Event) -> None:
        """Write the event's line, if it has one."""
        if self._began is None:
            self._began = event.at
        line = self._line(event)
        if line is not None:
            self._write(event.at - self._began, line)

    def _line(self, event: ev.Event) -> Line | None:
        if isinstance(event, ev.TaskEvaluated):
            return self._evaluated(event)
        if isinstance(event, ev.TaskLogged):
            return _logged(_masked(event, self._redactor))
        if isinstance(event, ev.TaskStarted):
            self._started[event.task] = event.at
            self._told.pop(event.task, None)
        teller = None if self._is_noise(event) else _TELLERS.get(type(event))
        return teller(_masked(event, self._redactor)) if teller is not None else None

    def _is_noise(self, event: ev.Event) -> bool:
        if isinstance(event, ev.PhaseChanged):
            return not self._every_phase and {event.source, event.dest} == {"executing", "evaluating"}
        return isinstance(event, ev.Progress) and not self._is_due(event)

    def _is_due(self, event: ev.Progress) -> bool:
        last = self._told.get(event.task)
        if last is not None and event.share < 1 and event.at - last < _PROGRESS_EVERY:
            return False
        self._told[event.task] = event.at
        return True

    def _evaluated(self, event: ev.TaskEvaluated) -> Line:
        began = self._started.pop(event.task, None)
        if event.error is None and event.task in self._decisions:
            return Line("true" if event.status == "SUCCEEDED" else "false", event.task)
        details = [
            f"took {event.at - began:.1f}s" if began is not None else "",
            f"visit {event.visit}" if event.visit > 1 else "",
            f"{event.attempts} attempts" if event.attempts > 1 else "",
            "by its fallback" if event.fallback_used else "",
            "not verified" if event.verified is False else "",
        ]
        if event.status == "SUCCEEDED":
            return Line("done", event.task, _joined(*details))
        return Line("failed", event.task, _joined(_error(_masked(event, self._redactor).error), *details))

    def _write(self, elapsed: float, line: Line) -> None:
        detail = clip(one_line(line.detail), _MOST_DETAIL_COLUMNS)
        if line.task is not None:
            task = clip(one_line(line.task), self._columns)
            detail = f"{pad(task, self._columns)}  {detail}"
        word = pad(line.word, _WORD_COLUMNS)
        if self._colour and line.word in _COLOURS:
            word = f"\x1b[{_COLOURS[line.word]}m{word}\x1b[0m"
        text = f"{elapsed:7.1f}s  {word} {detail}".rstrip()
        self._stream.write(_writable(text, self._stream) + "\n")
        self._stream.flush()


def _measured(plan: Plan | None) -> tuple[int, frozenset[str]]:
    """How wide the task column is, and which tasks are decisions."""
    if plan is None:
        return _MOST_ID_COLUMNS // 2, frozenset()
    widest = max(width(one_line(task.id)) for task in plan.tasks)
    return min(widest, _MOST_ID_COLUMNS), frozenset(task.id for task in plan.tasks if is_decision(task, plan))


def _writable(text: str, stream: TextIO) -> str:
    """The text with what the stream's encoding lacks escaped, so that no name can break the output."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _masked(event: Any, redactor: Redactor) -> Any:
    """The event without secrets in its data."""
    if isinstance(event, ev.CallAbandoned):
        return event  # its `why` is a word of the engine
    if isinstance(event, ev.RunFinished):
        reason = event.reason or {}
        message = {"message": redactor.value(reason["message"])} if "message" in reason else {}
        return structs.replace(event, reason={**reason, **message})
    names = _DATA.intersection(event.__struct_fields__)
    return structs.replace(event, **{name: _without(getattr(event, name), redactor) for name in names})


def _without(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, ev.TaskError):
        return structs.replace(value, message=redactor.text(value.message))
    return redactor.value(value)


def _joined(*parts: str | None) -> str:
    return " · ".join(part for part in parts if part)


def _error(error: ev.TaskError | None) -> str:
    if error is None:
        return "its verification is false"
    kind = f"{error.kind} {error.type}" if error.type else error.kind
    return f"{kind}: {error.message}"


def _by(who: str | None, why: str | None) -> str:
    return _joined(f"by {who}" if who else "", why)


def _phase_changed(event: ev.PhaseChanged) -> Line:
    because = f"{event.trigger}: {event.guard}" if event.guard else event.trigger
    return Line("phase", None, f"{event.source} → {event.dest} ({because})")


def _attempt_failed(event: ev.AttemptFailed) -> Line:
    failed = f"attempt {event.attempt} failed: {_error(event.error)}"
    if event.then == "fallback":
        return Line("fallback", event.task, failed)
    return Line("retry", event.task, _joined(f"again in {event.delay:.1f}s", failed))


_QUESTIONS: Final[dict[ev.ApprovalKind, str]] = {
    "task": "must be approved",
    "plan": "the plan must be approved",
    "failed": "has failed, a person must decide",
    "interrupted": "was interrupted, a person must decide",
    "compensation": "was not undone, a person must look",
}


def _back_to(to: str | None) -> str:
    return f"back to {to}" if to is not None else "back to the plan's start"


def _undoing(tasks: Sequence[str]) -> str:
    return f"undoing {', '.join(tasks)}" if tasks else "nothing to undo"


def _compensated(event: ev.Compensated) -> Line:
    attempts = f"{event.attempts} attempts" if event.attempts > 1 else ""
    if event.status == "SUCCEEDED":
        return Line("undone", event.task, attempts)
    return Line("failed", event.task, _joined(f"its compensation: {_error(event.error)}", attempts))


def _rolled_back(event: ev.RolledBack) -> Line:
    kept = (f"{key} stays, {task} has written it since" for key, task in event.kept.items())
    return Line("rollback", event.task, _joined(_back_to(event.to), "all runs again from there", *kept))


_STILL_GOING: Final = {"timeout": "its call timed out and goes on", "cancelled": "its call was cancelled and goes on"}


def _approval_asked(event: ev.ApprovalAsked) -> Line:
    risk = f"{event.risk} risk" if event.risk else ""
    whom = "the approver is asked" if event.approver else ""
    return Line("waiting", event.task, _joined(_QUESTIONS[event.kind], risk, whom, f"approval {event.approval}"))


def _logged(event: ev.TaskLogged) -> Line:
    return Line("log", event.task, _joined(event.message, *(f"{key}={item}" for key, item in event.fields.items())))


def _finished(event: ev.RunFinished) -> Line:
    reason = event.reason or {}
    why = ": ".join(str(reason[key]) for key in ("kind", "task", "message") if reason.get(key) is not None)
    outcome = event.outcome.replace("_", " ") if event.outcome != event.phase else ""
    return Line(event.phase, None, _joined(f"run {event.run_id}", outcome, why))


def _criteria(event: ev.CriteriaJudged) -> Line | None:
    if event.error is not None:
        return Line("criteria", None, _error(event.error))
    counts = (
        f"{event.verdicts.count(verdict)} {verdict.replace('_', ' ')}" for verdict in dict.fromkeys(event.verdicts)
    )
    return Line("criteria", None, _joined(*counts)) if event.verdicts else None


_AFTER_INTERRUPTION: Final = {
    "again": "it is called again",
    "fallback": "its fallback has its turn",
    "ask": "a person must decide",
}
_TELLERS: Final[dict[type[ev.Event], Callable[[Any], Line | None]]] = {
    ev.RunStarted: lambda event: Line("run", None, _joined(event.run_id, event.goal)),
    ev.PlanAdopted: lambda event: Line("plan", None, _joined(f"version {event.version}", event.reason)),
    ev.PlanRejected: lambda event: Line("plan", None, f"rejected: {event.message}"),
    ev.RunTakenUp: lambda event: Line("taken up", None, _joined(event.why, f"by {event.driver}")),
    ev.RunForked: lambda event: Line("forked", None, f"from event {event.upto} of run {event.source}"),
    ev.PhaseChanged: _phase_changed,
    ev.TaskStarted: lambda event: Line("started", event.task, f"visit {event.visit}" if event.visit > 1 else ""),
    ev.AttemptFailed: _attempt_failed,
    ev.TaskInterrupted: lambda event: Line(
        "cut off", event.task, _joined(f"attempt {event.attempt}", _AFTER_INTERRUPTION[event.then])
    ),
    ev.CallAbandoned: lambda event: Line("abandoned", event.task, _STILL_GOING[event.why]),
    ev.LoopBlocked: lambda event: Line("blocked", event.task, f"it held up everything for {event.seconds:.1f}s"),
    ev.TaskSkipped: lambda event: Line("skipped", event.task, "its condition is false"),
    ev.VisitRefused: lambda event: Line("limit", event.task, f"{event.setting} is {event.count}"),
    ev.VisitDiscarded: lambda event: Line("discarded", event.task, "it was reset meanwhile, it runs again"),
    ev.RollbackStarted: lambda event: Line("rollback", event.task, _joined(_back_to(event.to), _undoing(event.tasks))),
    ev.CompensationStarted: lambda event: Line(
        "undoing", event.task, f"visit {event.visit}" if event.visit > 1 else ""
    ),
    ev.Compensated: _compensated,
    ev.RolledBack: _rolled_back,
    ev.ApprovalAsked: _approval_asked,
    ev.ApprovalHandedOn: lambda event: Line("waiting", event.task, _joined("a person must decide", event.message)),
    ev.ApprovalDecided: lambda event: Line("decided", event.task, _joined(event.decision, _by(event.by, event.why))),
    ev.DecisionIgnored: lambda event: Line(
        "too late", event.task, _joined(event.decision, _by(event.by, event.why), event.message)
    ),
    ev.CriteriaJudged: _criteria,
    ev.PauseAsked: lambda event: Line("pause", None, _joined("asked for", _by(event.by, event.why))),
    ev.CancelAsked: lambda event: Line("cancel", None, _joined("asked for", _by(event.by, event.why))),
    ev.LimitPassed: lambda event: Line("limit", None, f"{event.setting} of {event.count:g}s has passed"),
    ev.Progress: lambda event: Line("progress", event.task, _joined(f"{event.share:.0%}", event.text)),
    ev.FilterApplied: lambda event: Line("filter", event.task, _joined(f"{event.filter} {event.what}", event.why)),
    ev.RunFinished: _finished,
}
"""How each event is told; others are not worth a line."""
