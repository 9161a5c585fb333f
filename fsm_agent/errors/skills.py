"""Errors of skills and their calls."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fsm_agent.errors.root import FsmAgentError


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
