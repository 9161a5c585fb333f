"""What other programs rely on: the exit codes, and the option by which a program asks for a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

JSON: Final = "--json"
"""The option by which a program says that it reads standard output. It is looked for before anything is understood."""

OK: Final = 0
"""Completed, or valid."""
FAILED: Final = 1
"""The run failed; or this program did, or it could not write what it had to tell."""
BAD: Final = 2
"""Bad usage, bad input, or an invalid plan."""
PAUSED: Final = 3
"""A person must decide."""
CANCELLED: Final = 4
"""The run was cancelled."""
INTERRUPTED: Final = 130
"""Ctrl-C."""

BY_PHASE: Final[Mapping[str, int]] = {"completed": OK, "failed": FAILED, "paused": PAUSED, "cancelled": CANCELLED}
"""The exit code of a run that rests in this phase."""

BY_OUTCOME: Final[Mapping[str, int]] = {
    "clean": OK, "handled_failures": OK, "failed": FAILED, "paused": PAUSED, "cancelled": CANCELLED,
}  # fmt: skip
"""The exit code of a run that came to this: one that its store stopped is paused, whatever its phase."""
