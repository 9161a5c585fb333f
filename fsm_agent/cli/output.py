"""What the process writes: text for people, one JSON document for programs, notes beside both.

Nothing from a plan, a skill or a model reaches a terminal as a command to it, no encoding of a stream is too small, and
a reader who has left (`| head`) is no error.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TextIO

from fsm_agent.views.text import harmless

FORMAT: Final = 1
"""The version of the JSON documents."""

# JSON leaves these as they are, and a terminal may obey them. In JSON they can only stand within a string.
_UNSAFE: Final = re.compile(
    "[\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def to_json(value: Any, *, ascii_only: bool = False) -> str:
    """A value as indented JSON, in which whatever a terminal might obey is escaped."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=2)
    return text if text.isascii() and "\x7f" not in text else _UNSAFE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


class Output:
    """The two streams of the process."""

    def __init__(self, out: TextIO | None, err: TextIO | None) -> None:
        """A stream may be None: the process was started without it."""
        self.out: Final = out if out is not None else io.StringIO()
        self.err: Final = err if err is not None else io.StringIO()
        self.lost: str | None = None
        """Why some of the output could not be written, if that is so. What stands beside it does not count."""
        self.has_begun = False
        """Whether anything was written to standard output."""
        for stream in (self.out, self.err):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")

    @property
    def is_terminal(self) -> bool:
        """Whether the text goes to a terminal."""
        return self.out.isatty()

    def text(self, text: str) -> None:
        """Text for people, on standard output."""
        self.write(self.out, harmless(text) + "\n")

    def note(self, text: str) -> None:
        """Text beside the output, on standard error."""
        self.write(self.err, harmless(text) + "\n")

    def document(self, document: Mapping[str, Any]) -> None:
        """The one JSON document of a command, with the version of its form."""
        self.json({"format": FORMAT, **document})

    def json(self, value: Any) -> None:
        """JSON as it is."""
        is_utf8 = (getattr(self.out, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
        self.write(self.out, to_json(value, ascii_only=not is_utf8) + "\n")

    def raw(self, content: bytes) -> None:
        """A file's content, as it is."""
        self.flush()
        buffer = getattr(self.out, "buffer", None)
        if buffer is None:
            self.write(self.out, content.decode(errors="replace"))
            return
        with self._writing(self.out):
            buffer.write(content)
            buffer.flush()

    def write(self, stream: TextIO, text: str) -> None:
        """Write to one of the streams, at once."""
        with self._writing(stream):
            stream.write(text)
            stream.flush()

    @contextmanager
    def _writing(self, stream: TextIO) -> Iterator[None]:
        """Whether anyone still reads is not our matter; a full disk is."""
        self.has_begun = self.has_begun or stream is self.out
        try:
            yield
        except BrokenPipeError:
            _forget(stream)
        except OSError as error:
            _forget(stream)
            if stream is self.out:
                self.lost = error.strerror or type(error).__name__

    def flush(self) -> None:
        """Write what is left."""
        for stream in (self.out, self.err):
            self.write(stream, "")

    def close(self) -> None:
        """Write what is left, and close what this process had not been given when it began."""
        self.flush()
        if self.out is not sys.stdout and self.out is not sys.__stdout__:
            self.out.close()


def _forget(stream: TextIO) -> None:
    """What is left to write, and what comes, goes nowhere, also when the interpreter ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def output_of_process() -> Output:
    """The streams that the process has now."""
    return Output(sys.stdout, sys.stderr)


def reserved_output() -> Output:
    """The same, for a program that reads standard output: from now on only this output writes there.

    What a skill prints, or a process that it starts, goes to standard error.
    """
    out, err = sys.stdout, sys.stderr
    if out is None or err is None:
        return Output(out, err)
    out.flush()
    private = os.fdopen(os.dup(out.fileno()), "w", encoding=out.encoding)
    os.dup2(err.fileno(), out.fileno())
    return Output(private, err)
