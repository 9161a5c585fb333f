"""How long a server asks to be left alone."""

from __future__ import annotations

from datetime import UTC

MAX_RETRY_AFTER = 86_400.0
"""A server that asks for a longer wait is asked again after this one, in seconds."""


def parse_retry_after(wish: object, now: float) -> float | None:
    """A wish for a wait (seconds, or a date as in HTTP) as seconds from 0 to MAX_RETRY_AFTER; None for nonsense."""
    if isinstance(wish, bool) or not isinstance(wish, (int, float, str)):
        return None
    try:
        seconds = float(wish)
    except OverflowError:
        return MAX_RETRY_AFTER
    except ValueError:
        seconds = _seconds_until(str(wish), now)
    if seconds != seconds:  # noqa: PLR0124 - only NaN differs from itself
        return None
    return min(MAX_RETRY_AFTER, max(0.0, seconds))


def _seconds_until(date: str, now: float) -> float:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - a slow import, and hardly any server sends a date

    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, TypeError, IndexError, OverflowError):
        return float("nan")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
