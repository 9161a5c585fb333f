"""What an expression may name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """What an expression may name.

    `fixed` are the names of the language (`context`, `inputs`, `results`, `goal`, …), `extra` other bare names;
    `tasks` are the ids that `results` may be asked for, None where they are not checked.
    """

    fixed: frozenset[str]
    extra: frozenset[str] = frozenset()
    tasks: Collection[str] | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.fixed or name in self.extra
