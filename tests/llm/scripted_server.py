"""A real HTTP server on loopback that does to a client what it is told to, byte by byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sends:
    """One answer: a status, headers, and a body in chunks that are written one by one."""

    body: bytes | str | Sequence[bytes] = b""
    status: int = 200
    type: str | None = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """The connection ends within the body, which was said to be longer."""
    hangs: bool = False
    """Nothing more comes, and the connection stays."""
    silent: bool = False
    """Not even a status comes: the connection ends (or hangs) at once."""

    @property
    def chunks(self) -> list[bytes]:
        """The body as it is written."""
        body = self.body.encode() if isinstance(self.body, str) else self.body
        return [body] if isinstance(body, bytes) else list(body)


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.raw)


class ScriptedServer:
    """Answers from a list, one entry a request; the last one repeats."""

    def __init__(self, answers: Sequence[Sends]) -> None:
        self.asked: list[Asked] = []
        self.port = 0
        self.left = asyncio.Event()
        """Set when a connection has ended: by the client, where an answer hangs."""
        self._answers = list(answers)

    @property
    def base_url(self) -> str:
        """For clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request, one answer."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            raw = await reader.readexactly(int(headers.get("content-length", 0)))
            method, target, _ = first.split(" ")
            self.asked.append(Asked(method, target, headers, raw))
            await self._answer(self._answers[min(len(self.asked), len(self._answers)) - 1], reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has left: some tests are about that
        finally:
            self.left.set()
            writer.close()

    async def _answer(self, sends: Sends, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        headers = {"Connection": "close", **sends.headers}
        if sends.type is not None:
            headers["Content-Type"] = sends.type
        if sends.cut or sends.hangs:
            headers["Content-Length"] = str(sum(map(len, sends.chunks)) + 1000)
        if not sends.silent:
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(f"HTTP/1.1 {sends.status} Told\r\n{head}\r\n".encode())
            for chunk in sends.chunks:
                writer.write(chunk)
                await writer.drain()
                await asyncio.sleep(0)  # so that chunks arrive as such, as a rule
        if sends.hangs:
            await reader.read()  # until the client goes away


@asynccontextmanager
async def serving(*answers: Sends) -> AsyncIterator[ScriptedServer]:
    """A server that gives these answers, for as long as the block lasts."""
    scripted = ScriptedServer(answers)
    handlers: set[asyncio.Task[Any]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        with suppress(asyncio.CancelledError):  # else asyncio logs it as a fault
            await scripted.handle(reader, writer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    scripted.port = server.sockets[0].getsockname()[1]
    try:
        yield scripted
    finally:
        server.close()
        for task in handlers:
            task.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


# What servers send ----------------------------------------------------------------------------------------------------


def completion(text: Any = "Hello", **more: Any) -> Sends:
    """A good answer; `more` goes into the choice, but for `usage` and `model`."""
    outside = {key: more.pop(key) for key in ("usage", "model") if key in more}
    message = text if isinstance(text, dict) else {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop", **more}
    return Sends(json.dumps({"object": "chat.completion", "model": "served", "choices": [choice], **outside}))


def refusal(status: int, message: str = "no", **headers: str) -> Sends:
    """An error as OpenAI-compatible servers tell it."""
    body = json.dumps({"error": {"message": message}})
    return Sends(body, status, headers={name.replace("_", "-"): value for name, value in headers.items()})


def delta(text: str | None = None, **more: Any) -> str:
    """One event of a stream."""
    part = {"content": text} if text is not None else {}
    finish = more.pop("finish_reason", None)
    usage = {"usage": more.pop("usage")} if "usage" in more else {}
    choice = {"index": 0, "delta": {**part, **more}, "finish_reason": finish}
    return "data: " + json.dumps({"model": "served", "choices": [choice], **usage}, ensure_ascii=False) + "\n\n"


def events(*parts: str, done: bool = True, **more: Any) -> Sends:
    """A stream of events."""
    whole = "".join(parts) + ("data: [DONE]\n\n" if done else "")
    return Sends(whole, type="text/event-stream", **more)
