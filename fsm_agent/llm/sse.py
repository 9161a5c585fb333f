"""Server-sent events out of bytes, however those are split. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\r|\n")
_MARK = b"\xef\xbb\xbf"
DONE = "[DONE]"
"""The data of the event after which nothing follows."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event: its type (`message` where the server names none) and its data."""

    data: str
    type: str = "message"


class SseReader:
    """Takes bytes as they come, and gives the events that have come whole. What is no UTF-8 becomes U+FFFD.

    Lines are split as bytes: no end of a line is ever a part of a character, so a character that comes in two parts
    needs no care.
    """

    def __init__(self) -> None:
        self._tail: list[bytes] = []
        self._after_return = False
        self._first = True
        self._type = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that end within this chunk."""
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")  # of a CRLF that came in two parts
            self._after_return = False
        if not chunk:
            return []
        self._after_return = chunk.endswith(b"\r")
        *lines, rest = _LINE_END.split(chunk)
        if lines:
            lines[0] = b"".join((*self._tail, lines[0]))
            self._tail = []
        self._tail.append(rest)
        return [event for line in lines if (event := self._line(line)) is not None]

    def close(self) -> list[SseEvent]:
        """The event that the end of the bytes ends: many servers leave out the empty line after the last one."""
        last = [event for line in (b"".join(self._tail), b"") if (event := self._line(line)) is not None]
        self._tail = []
        return last

    def _line(self, raw: bytes) -> SseEvent | None:
        if self._first:
            raw = raw.removeprefix(_MARK)
            self._first = False
        if not raw:
            return self._event()
        name, _, value = raw.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        elif name == "error":  # no field of the standard, but some servers tell their errors so
            self._type = name
            self._data.append(value)
        return None

    def _event(self) -> SseEvent | None:
        data, kind = self._data, self._type
        self._data, self._type = [], ""
        return SseEvent("\n".join(data), kind or "message") if data else None
