"""The stream of progress lines, which keep quiet while a question waits for its answer."""

from __future__ import annotations

import io
from typing import TextIO

from fsm_agent.cli.output import Output


class Screen(io.TextIOBase):
    """A text stream over one of the output's: what is written while it is held comes when it is released."""

    def __init__(self, output: Output, stream: TextIO) -> None:
        self._output = output
        self._stream = stream
        self._held: list[str] | None = None

    @property
    def encoding(self) -> str:  # type: ignore[override] # typeshed has an attribute; this stream follows another's
        """The encoding of what it writes to."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        """Whether the lines go to a terminal."""
        return self._stream.isatty()

    def write(self, text: str) -> int:
        """Write, or keep it for later."""
        if self._held is None:
            self._output.write(self._stream, text)
        else:
            self._held.append(text)
        return len(text)

    def hold(self) -> None:
        """Keep what comes."""
        self._held = self._held or []

    def release(self) -> None:
        """Write what was kept, and what comes."""
        held, self._held = self._held, None
        if held:
            self._output.write(self._stream, "".join(held))
