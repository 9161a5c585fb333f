"""The root of the tree, and errors that are of no family."""

from __future__ import annotations

from typing import ClassVar


class FsmAgentError(Exception):
    """The root of the tree. `code` is stable and short; `hint` says what to do, or is empty."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


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


class DiagramError(FsmAgentError):
    """A picture cannot be drawn here."""

    code = "diagram"


class UsageError(FsmAgentError):
    """Wrong use of the command line or of the API."""

    code = "usage"
