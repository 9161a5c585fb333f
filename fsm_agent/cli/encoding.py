"""Text that comes into the process from outside."""

from __future__ import annotations

import os


def as_utf8(text: str) -> str:
    """A text from the command line or the environment, which Python has read by the locale, as the UTF-8 that it is.

    Paths are not for this: they are given back to the system as they came.
    """
    try:
        return os.fsencode(text).decode()
    except UnicodeError:
        return text
