"""The tables of a store, as scripts: each takes a database one version further, the first from nothing at all."""

from __future__ import annotations

from collections.abc import Sequence

from fsm_agent.errors import NotAStore, StoreTooNew
from fsm_agent.journal.statements import script

APPLICATION = "fsm-agent"
"""What a store says that it is of."""

VERSION = 1
"""The version of the tables that this package knows."""


def scripts(dialect: str) -> list[str]:
    """All scripts of a kind of database (`sqlite`, `postgres`), in their order."""
    return [script(f"{dialect}_{number}") for number in range(1, VERSION + 1)]


def missing(steps: Sequence[str], version: int, where: str) -> Sequence[str]:
    """The scripts that a database of this version (0: an empty one) has not had yet. Raises StoreTooNew."""
    if version > len(steps):
        raise StoreTooNew(
            f"the store {where} has version {version}, and this package knows versions up to {len(steps)}",
            hint="install a newer version of fsm-agent, or use another store",
        )
    return steps[version:]


def foreign(where: str, why: str) -> NotAStore:
    """The error for what is no store of ours."""
    return NotAStore(f"{where} is no store of fsm-agent: {why}", hint="nothing in it was changed; name another place")


def damaged(where: str, why: str) -> NotAStore:
    """The error for a store of ours in which something is missing."""
    return NotAStore(f"the store {where} is damaged: {why}", hint="nothing in it was changed; restore it from a copy")
