"""The exit codes, which other programs rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OK: Final = 0
"""Completed, or valid."""
FAILED: Final = 1
"""The run failed; or this program did."""
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
