"""How long is waited for a model, and how often it is asked: bounds as data, and when the next request is due."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fsm_agent.errors import UsageError


@dataclass(frozen=True, slots=True)
class ModelBounds:
    """What a client keeps to, whatever a server does. All times are in seconds."""

    connect: float = 10.0
    """To make a connection."""
    read: float = 120.0
    """Between two pieces of an answer; and to its first one, which takes a model long."""
    total: float = 300.0
    """For one answer, with all that is tried and waited."""
    retries: int = 3
    """How often a request is made again after 429, 5xx, or a connection that failed."""
    first_wait: float = 0.5
    """Before the first of them; each further one waits twice as long."""
    longest_wait: float = 30.0
    """At most, also when the server asks for more: then it is not asked again."""
    max_bytes: int = 10_000_000
    """An answer with more bytes is an error."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            least = 0 if field.name in ("retries", "first_wait", "longest_wait") else 1e-6
            if not number or not least <= value < 1e9:
                raise UsageError(f"the bound {field.name} must be a number of at least {least:g}, and not {value!r}")


def next_wait(bounds: ModelBounds, tries: int, wish: float | None, chance: float) -> float | None:
    """Seconds until the next request after `tries` that failed; None if there is none.

    `wish` is what the server asked for: it is waited out, or not asked again. Otherwise the wait doubles, and `chance`
    (from 0 to 1) takes up to half of it away, so that many clients do not come back at one moment.
    """
    if tries > bounds.retries:
        return None
    if wish is not None:
        return wish if wish <= bounds.longest_wait else None
    return min(bounds.longest_wait, bounds.first_wait * 2.0 ** min(tries - 1, 60)) * (1 - chance / 2)
