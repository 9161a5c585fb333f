"""Every error that this package raises, in one tree.

    FsmAgentError
    ├── InvalidPlan                 a plan, its inputs or a model's draft has problems (all of them at once)
    ├── ConditionError              an expression is refused, or failed when it was evaluated
    │   ├── ExpressionSyntax            code "syntax"
    │   ├── ForbiddenExpression         code "forbidden"
    │   ├── ExpressionTooComplex        code "too_complex"
    │   ├── UnknownName                 code "unknown_name"
    │   ├── UnknownField                code "unknown_field"
    │   │   └── UnknownTaskReference        `results.X` without a task X
    │   ├── ExpressionType              code "type"
    │   ├── ExpressionBudget            code "budget"
    │   └── ExpressionValue             code "value"
    ├── IllegalTransition           a trigger that the machine does not allow
    ├── NotJson                     a value cannot be kept as plain JSON data
    ├── SkillError
    │   ├── BadSkill                    a function cannot be a skill as it is declared
    │   ├── SkillLoadError              a skill file or module failed to import
    │   ├── DuplicateSkill              two skills of one name
    │   ├── UnknownSkill                no skill of that name
    │   ├── BadParameters               what a call was given does not fit the skill's signature
    │   ├── RefusedByFilter             a before or after filter refused parameters or a result
    │   ├── CallTimeout                 an attempt took longer than it may
    │   ├── TooLarge                    a result or a file has more bytes than it may
    │   ├── VisitClosed                 a write to the context after the attempt was over
    │   ├── UndeclaredWrite             a write to a context key that is not declared
    │   ├── FileError                   a file cannot be read or written
    │   ├── HttpError                   an HTTP request got no good answer
    │   │   ├── HttpUnreachable             no connection was made: nothing was sent
    │   │   └── HttpBusy                    the server says: not now (429, 503)
    │   └── SkillFailed                 a safe-executed function failed for good
    ├── RunError
    │   ├── UnknownRun                  no run of that id
    │   ├── RunExists                   a run of that id is there already
    │   ├── RunNotActive                the run has ended, or nobody drives it
    │   ├── RunHeld                     another process drives the run
    │   ├── LeaseLost                   another process has taken the run over
    │   ├── MissingSecret               a run cannot go on before its secret inputs are given again
    │   ├── UnknownTask                 the run has no task of that id
    │   └── DecisionRefused             a decision that fits no waiting approval, or comes second
    ├── StoreError                  the place where runs are kept
    │   ├── StoreBusy                   somebody else is writing
    │   ├── StoreUnavailable            it cannot be opened, read or written: no disk, no connection, no right
    │   ├── NotAStore                   a file or database of another program, or a damaged one
    │   ├── StoreTooNew                 written by a newer version of this package
    │   ├── JournalBroken               a run's journal was cut off or changed, or does not fit this program
    │   └── SnapshotRefused             a folded run that was kept to start from is of no use
    ├── NoTemplate                  no plan template fits the goal, or several do
    ├── DiagramError                a picture cannot be drawn here
    └── UsageError                  wrong use of the command line or the API

Messages say what, where and what to do. They never hold a data value that may be secret.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

Severity = Literal["error", "warning"]


class FsmAgentError(Exception):
    """The root of the tree. `code` is stable and short; `hint` says what to do, or is empty."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong (or worth a warning) in a plan.

    `rule` is the stable name of the rule, `field` a path under the normal names
    (`dependencies[1]`, `parameters.a[0]`), `line` and `column` are 1-based or None.
    """

    rule: str
    message: str
    severity: Severity = "error"
    task: str | None = None
    field: str | None = None
    hint: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The problem as plain JSON data, under the keys of the command line."""
        return asdict(self)


class InvalidPlan(FsmAgentError):
    """A plan (or what was given to it) has problems; nothing was run and nothing was changed.

    `problems` holds every problem that was found, warnings included.
    """

    code = "invalid_plan"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        errors = [p for p in self.problems if p.severity == "error"]
        first = errors[0] if errors else None
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        where = f" in task {first.task!r}" if first and first.task else ""
        text = f"{first.rule}{where}: {first.message}{more}" if first else "the plan is not valid"
        super().__init__(text, hint=first.hint if first else "")


class ConditionError(FsmAgentError):
    """An expression was refused, or failed. It never means false.

    `column` is 1-based in characters of `expression`; `name` is the name or field concerned;
    `suggestions` are up to two known names near to it.
    """

    code = "condition"

    def __init__(
        self,
        message: str,
        *,
        expression: str = "",
        column: int | None = None,
        name: str | None = None,
        suggestions: Sequence[str] = (),
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.expression = expression
        self.column = column
        self.name = name
        self.suggestions: tuple[str, ...] = tuple(suggestions)


class ExpressionSyntax(ConditionError):
    """The text is no single expression of the language."""

    code = "syntax"


class ForbiddenExpression(ConditionError):
    """The text uses something outside the allow-list."""

    code = "forbidden"


class ExpressionTooComplex(ConditionError):
    """The text is too long, too deep or has too many parts."""

    code = "too_complex"


class UnknownName(ConditionError):
    """A name that the expression cannot have."""

    code = "unknown_name"


class UnknownField(ConditionError):
    """A key or index that the data does not have."""

    code = "unknown_field"


class UnknownTaskReference(UnknownField):
    """`results.X` where X is no task of the plan; `name` is X."""


class ExpressionType(ConditionError):
    """An operation on types that do not go together."""

    code = "type"


class ExpressionBudget(ConditionError):
    """The evaluation took more steps or memory than it may."""

    code = "budget"


class ExpressionValue(ConditionError):
    """A value that an operation cannot take: a division by zero, a number out of range."""

    code = "value"


class IllegalTransition(FsmAgentError):
    """A trigger that does not exist in this phase, or none of whose guards holds. The phase is unchanged.

    `legal` are the triggers that the phase has; `guards` are those that were tried and refused.
    """

    code = "illegal_transition"

    def __init__(
        self, phase: str, trigger: str, legal: Sequence[str], guards: Sequence[str] = (), detail: str = ""
    ) -> None:
        self.phase = phase
        self.trigger = trigger
        self.legal = tuple(legal)
        self.guards = tuple(guards)
        if detail:
            why = detail
        elif guards:
            why = f"none of its guards holds ({', '.join(guards)})"
        else:
            why = "the table has no such row"
        could = ", ".join(self.legal) or "nothing: the phase is final"
        super().__init__(f"trigger {trigger!r} is illegal in phase {phase!r}: {why}; legal: {could}")


class NotJson(FsmAgentError):
    """A value cannot be kept as plain JSON data. `path` leads to it (`$.items[0]`), `type_name` is its type."""

    code = "not_json"

    def __init__(self, path: str, type_name: str, why: str) -> None:
        self.path = path
        self.type_name = type_name
        super().__init__(
            f"{path} is no plain JSON data: {why} ({type_name})",
            hint="return dicts, lists, strings, finite numbers, booleans or None",
        )


class SkillError(FsmAgentError):
    """Something about skills: their declaration, their loading, or a call that failed."""

    code = "skill"


class BadSkill(SkillError):
    """A function cannot be a skill as it is declared."""

    code = "bad_skill"


class SkillLoadError(SkillError):
    """A skill file or module failed to import. The others are loaded all the same.

    `line` is the line of the file at which it failed, where that is known.
    """

    code = "skill_load"

    def __init__(
        self,
        where: str,
        reason: str,
        line: int | None = None,
        *,
        hint: str = "mend it; what other files hold is loaded all the same",
    ) -> None:
        self.where = where
        self.reason = reason
        self.line = line
        at = f" (line {line})" if line is not None else ""
        super().__init__(f"{where} could not be loaded: {reason}{at}", hint=hint)


class DuplicateSkill(SkillError):
    """Two skills have one name; `first` and `second` say where they are from."""

    code = "duplicate_skill"

    def __init__(self, name: str, first: str, second: str) -> None:
        self.name = name
        self.first = first
        self.second = second
        super().__init__(
            f"two skills are named {name!r}: one in {first}, one in {second}",
            hint="rename one of them: @skill(name=…)",
        )


class UnknownSkill(SkillError):
    """No skill of that name; `near` are known names that look like it."""

    code = "unknown_skill"

    def __init__(self, name: str, near: Sequence[str] = ()) -> None:
        self.name = name
        self.near = tuple(near)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "see the list of skills"
        shown = name if len(name) <= 100 else name[:100] + "…"
        super().__init__(f"there is no skill {shown!r}", hint=hint)


class BadParameters(SkillError):
    """What a call was given does not fit the skill's signature. `problems`: (path, message) pairs, without values."""

    code = "parameters"

    def __init__(self, skill: str, problems: Sequence[tuple[str, str]]) -> None:
        self.skill = skill
        self.problems: tuple[tuple[str, str], ...] = tuple(problems)
        shown = "; ".join(f"{path}: {message}" for path, message in self.problems[:5])
        more = f"; and {len(self.problems) - 5} more" if len(self.problems) > 5 else ""
        super().__init__(f"the parameters do not fit skill {skill!r}: {shown}{more}", hint="see the skill's parameters")


class RefusedByFilter(SkillError):
    """Raised by a before or after filter to refuse parameters or a result, with the reason in words."""

    code = "refused"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class CallTimeout(SkillError):
    """An attempt took longer than it may, or returned after its time (then what it returned does not count).

    `timeout` and `elapsed` are seconds; `abandoned` says that it still runs and cannot be stopped; `blocked` for how
    many seconds at least an async skill held up the event loop, 0.0 where that is not known.
    """

    code = "timeout"

    def __init__(self, timeout: float, elapsed: float, *, abandoned: bool = False, blocked: float = 0.0) -> None:
        self.timeout = timeout
        self.elapsed = elapsed
        self.abandoned = abandoned
        self.blocked = blocked
        what = f"no result within {timeout:g} s"
        if abandoned:
            what += "; it still runs, and what it comes to is dropped"
        elif blocked:
            what += f"; it held up the event loop and came back after {elapsed:.3g} s"
        super().__init__(what, hint="a blocking call belongs in a sync skill" if blocked else "")


class TooLarge(SkillError):
    """A result or a file has more bytes than it may."""

    code = "too_large"

    def __init__(self, what: str, size: int, most: int, hint: str) -> None:
        self.size = size
        self.most = most
        super().__init__(f"{what} is too large: {size:,} bytes, at most {most:,} are allowed", hint=hint)


class VisitClosed(SkillError):
    """The attempt is over (timed out, cancelled or done); it can write nothing any more."""

    code = "visit_closed"


class UndeclaredWrite(SkillError):
    """A write to a context key that neither the skill nor the task declares."""

    code = "undeclared_write"

    def __init__(self, key: str, declared: Collection[str]) -> None:
        self.key = key
        super().__init__(
            f"context key {key!r} is not among the declared writes ({', '.join(declared) or 'none'})",
            hint="declare it: writes=… of the skill, or writes: of the task",
        )


class FileError(SkillError):
    """A file cannot be read or written, or is outside the root folder."""

    code = "file"


class HttpError(SkillError):
    """An HTTP request got no good answer. `status` is None where there was none at all.

    `retry_after` is the wait that the server asks for, in seconds, where it does.
    """

    code = "http"

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: float | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.retry_after = retry_after


class HttpUnreachable(HttpError):
    """No connection was made: the server has seen nothing of the request."""

    code = "http_unreachable"


class HttpBusy(HttpError):
    """The server refused the request for the moment (429, 503)."""

    code = "http_busy"


class SkillFailed(SkillError):
    """A call failed for good, after its retries and its fallback. The last error is `__cause__`.

    `kind` is one of the error kinds of a task, `attempts` counts the calls that were made.
    """

    code = "skill_failed"

    def __init__(self, name: str, kind: str, attempts: int, detail: str = "", *, hint: str = "") -> None:
        self.name = name
        self.kind = kind
        self.attempts = attempts
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        super().__init__(f"{name} failed ({kind}) after {times}" + (f": {detail}" if detail else ""), hint=hint)


class RunError(FsmAgentError):
    """Something about a run."""

    code = "run"


class UnknownRun(RunError):
    """No run of that id is known here."""

    code = "unknown_run"


class RunExists(RunError):
    """A run of that id is there already."""

    code = "run_exists"


class RunNotActive(RunError):
    """The run has ended, or is driven already."""

    code = "run_not_active"


class DecisionRefused(RunError):
    """A decision that fits no waiting approval, fits several, or comes second."""

    code = "decision_refused"


class RunHeld(RunError):
    """Another process drives the run. `holder` says who, `until` when its lease runs out (seconds since 1970)."""

    code = "run_held"

    def __init__(self, run_id: str, holder: str, until: float) -> None:
        self.run_id = run_id
        self.holder = holder
        self.until = until
        moment = datetime.fromtimestamp(until, UTC).isoformat(timespec="seconds")
        super().__init__(
            f"run {run_id!r} is driven by {holder}, whose lease holds until {moment}",
            hint="pause or cancel it, or wait: a driver that is gone loses its lease then",
        )


class LeaseLost(RunError):
    """Another process has taken the run over. This one can write nothing more of it, and has stopped what it ran."""

    code = "lease_lost"

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"run {run_id!r} was taken over by another process", hint="its journal tells how it goes on there"
        )


class MissingSecret(RunError):
    """A run cannot go on before its secret inputs are given again: they are in no store. `names` are those missing."""

    code = "missing_secret"

    def __init__(self, run_id: str, names: Sequence[str], ways: str) -> None:
        self.run_id = run_id
        self.names = tuple(names)
        inputs = "input" if len(self.names) == 1 else "inputs"
        super().__init__(
            f"run {run_id!r} needs its secret {inputs} again: {', '.join(self.names)}; secrets are not stored",
            hint=ways,
        )


class UnknownTask(RunError):
    """The run's plan has no task of that id, or the run has no plan yet. `suggestions` are up to two near ids."""

    code = "unknown_task"

    def __init__(self, message: str, *, suggestions: Sequence[str] = (), hint: str = "") -> None:
        self.suggestions = tuple(suggestions)
        super().__init__(message, hint=hint)


class StoreError(FsmAgentError):
    """Something about the place where runs are kept."""

    code = "store"


class StoreBusy(StoreError):
    """Somebody else is writing. Nothing was written."""

    code = "store_busy"


class StoreUnavailable(StoreError):
    """The store cannot be opened, read or written: a full disk, a lost connection, no right to do so."""

    code = "store_unavailable"


class NotAStore(StoreError):
    """A file or a database that another program made, or one that is damaged. Nothing in it was changed."""

    code = "not_a_store"


class StoreTooNew(StoreError):
    """The store was written by a newer version of this package. Nothing in it was changed."""

    code = "store_too_new"


class JournalBroken(StoreError):
    """A run's journal was cut off or changed, or holds what this program cannot read. `seq` is the event's number."""

    code = "journal_broken"

    def __init__(self, run_id: str, why: str, *, seq: int | None = None, hint: str = "") -> None:
        self.run_id = run_id
        self.seq = seq
        at = f" at event {seq}" if seq is not None else ""
        super().__init__(f"the journal of run {run_id!r} is broken{at}: {why}", hint=hint or "nothing of it was run")


class SnapshotRefused(StoreError):
    """A snapshot is of another format, another run or another plan, or it is damaged. The journal alone will do."""

    code = "snapshot_refused"

    def __init__(self, run_id: str, why: str) -> None:
        self.run_id = run_id
        super().__init__(f"the snapshot of run {run_id!r} is of no use: {why}", hint="fold the run from its events")


class NoTemplate(FsmAgentError):
    """No template fits the goal, or several do."""

    code = "no_template"


class DiagramError(FsmAgentError):
    """A picture cannot be drawn here."""

    code = "diagram"


class UsageError(FsmAgentError):
    """Wrong use of the command line or of the API."""

    code = "usage"
