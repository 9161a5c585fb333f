"""The bytes of an answer become a completion: whole as JSON, or streamed as events. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

from fsm_agent.llm.completion import Completion, NoCompletion, error_in
from fsm_agent.llm.refusal import Refusal
from fsm_agent.llm.sse import DONE, SseEvent, SseReader


class NotWhole(Exception):
    """The bytes are at an end, and the answer is not."""


class AnswerReader(Protocol):
    """Takes the bytes of one answer as they come. Raises Refusal, NoCompletion and NotWhole."""

    completion: Completion
    done: bool
    """Whether the answer is at its end, so that no further byte is of interest."""

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The texts that are known now; each is there before what goes wrong after it is raised."""

    def close(self) -> Iterator[str]:
        """The last texts. After them the completion is whole."""


class WholeAnswer:
    """An answer that is one JSON text. Whether it is one decides, not what the server says that it is."""

    def __init__(self) -> None:
        self.completion = Completion()
        self.done = False
        self._bytes = bytearray()

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Nothing is known before the end."""
        self._bytes += chunk
        return iter(())

    def close(self) -> Iterator[str]:
        """The whole text."""
        data = _json(bytes(self._bytes))
        if (error := error_in(data)) is not None:
            raise Refusal.within(error)
        yield self.completion.take(data)
        yield self.completion.finish()


class StreamedAnswer:
    """An answer in events. A server that answers as a whole, though it was asked for a stream, is understood too."""

    def __init__(self) -> None:
        self.completion = Completion()
        self.done = False
        self._events = SseReader()
        self._whole: WholeAnswer | None = WholeAnswer()

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The texts of the events that end here."""
        if self._whole is not None:
            self._whole.feed(chunk)
        for event in self._events.feed(chunk):
            if not self.done:
                yield self._take(event)

    def close(self) -> Iterator[str]:
        """The last text. Raises NotWhole unless the server said that this is the end, or why the model stopped."""
        if not self.done:
            for event in self._events.close():
                try:
                    yield self._take(event)
                except NoCompletion:
                    raise NotWhole from None  # the half of an event
        if self._whole is not None:
            self._whole.completion = self.completion
            yield from self._whole.close()
        elif not self.done and self.completion.finish_reason is None:
            raise NotWhole
        else:
            yield self.completion.finish()

    def _take(self, event: SseEvent) -> str:
        self._whole = None
        if event.data.strip() == DONE:
            self.done = True
            return ""
        data = _json(event.data.encode())
        error = error_in(data)
        if error is None and event.type == "error":
            error = data if isinstance(data, dict) else {"message": str(data)}
        if error is not None:
            raise Refusal.within(error)
        return self.completion.take(data, "delta")


def _json(content: bytes) -> Any:
    text = content.decode("utf-8-sig", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    start = text.lstrip()[:1]
    if not start:
        raise NoCompletion("it is empty")
    raise NoCompletion("it is HTML" if start == "<" else "it is no JSON")
