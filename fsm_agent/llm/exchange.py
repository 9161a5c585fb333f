"""One HTTP exchange with a model's server, by httpx: in time, within its size, its errors in our own words."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import SecretStr

from fsm_agent._version import __version__
from fsm_agent.clock import Clock
from fsm_agent.errors import AnswerCut, AnswerTooLarge, ModelError, ModelTimeout, ModelUnreachable, NotAModel
from fsm_agent.llm.address import Address, authorization, target
from fsm_agent.llm.refusal import Refusal
from fsm_agent.llm.retrying import ModelBounds
from fsm_agent.redaction import Redactor
from fsm_agent.retry_after import parse_retry_after

if TYPE_CHECKING:
    import httpx

MAX_REFUSAL = 64_000
"""As many bytes of a refusal are read."""

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Server:
    """A server, and how it is spoken to. It keeps no connections: each question has a client of its own."""

    address: Address
    key: SecretStr | None
    bounds: ModelBounds
    clock: Clock
    redactor: Redactor
    _certificates: ssl.SSLContext | None = None

    @property
    def host(self) -> str:
        """As errors name it."""
        return self.address.shown

    def http(self) -> httpx.AsyncClient:
        """The client of one question. Redirects are not followed: the key would go along."""
        import httpx  # noqa: PLC0415 - it is slow to import, and most runs ask no model

        if self._certificates is None:  # read once: that takes long, and is of use for https only
            secure = self.address.secure
            self._certificates = httpx.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        times = httpx.Timeout(self.bounds.read, connect=self.bounds.connect, pool=self.bounds.connect)
        return httpx.AsyncClient(timeout=times, verify=self._certificates, trust_env=not self.address.local)

    async def open(self, http: httpx.AsyncClient, body: bytes, until: float) -> httpx.Response:
        """The answer, as soon as it begins; whoever opens it closes it. Raises ModelError or Refusal."""
        response = await self.in_time(self._send(http, body), until)
        if response.status_code < 300:
            return response
        async with aclosing(response):
            raise await self._refusal(response, until)

    async def _send(self, http: httpx.AsyncClient, body: bytes) -> httpx.Response:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"fsm-agent/{__version__}",
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",  # a small answer must not unfold into a huge one
            **authorization(self.key, self.address),
        }
        extensions = target(self.address)
        request = http.build_request("POST", self.address.url, content=body, headers=headers, extensions=extensions)
        return await http.send(request, stream=True)

    async def _refusal(self, response: httpx.Response, until: float) -> Refusal:
        """What a refusal says, as far as it can be read."""
        found = bytearray()
        try:
            async with aclosing(self.chunks(response, until)) as chunks:
                async for chunk in chunks:
                    found += chunk
                    if len(found) > MAX_REFUSAL:
                        break
        except ModelError:
            pass  # the status says enough
        wait = parse_retry_after(response.headers.get("retry-after"), self.clock.now())
        return Refusal(response.status_code, found[:MAX_REFUSAL].decode("utf-8", "replace"), wait)

    async def chunks(self, response: httpx.Response, until: float) -> AsyncGenerator[bytes]:
        """The bytes of an answer, as they come. Raises AnswerTooLarge and other ModelErrors."""
        size = 0
        async with aclosing(response.aiter_bytes()) as pieces:  # type: ignore[type-var]  # an async generator, by its code
            while (piece := await self.in_time(anext(pieces, None), until)) is not None:
                size += len(piece)
                if size > self.bounds.max_bytes:
                    raise AnswerTooLarge(
                        f"the answer of {self.host} has more than {self.bounds.max_bytes:,} bytes",
                        hint="ask for less, or raise max_bytes",
                        host=self.host,
                    )
                yield piece

    async def in_time(self, awaitable: Awaitable[T], until: float) -> T:
        """Await it until a moment of the clock. All that goes wrong is a ModelError."""
        import httpx  # noqa: PLC0415 - see above

        error: ModelError
        scope = asyncio.timeout(None)
        try:
            async with scope:
                timer = self.clock.call_later(max(0.0, until - self.clock.monotonic()), lambda: scope.reschedule(0))
                try:
                    return await awaitable
                finally:
                    timer.cancel()
        except TimeoutError:
            error = self._too_late(f"gave no whole answer within {self.bounds.total:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ExceptionGroup, OSError, UnicodeError) as failure:
            error = self._told(failure)
        raise error  # out here, so that it has no context: a library's own words may hold anything

    def _told(self, failure: Exception) -> ModelError:
        """An error of httpx in our words."""
        import httpx  # noqa: PLC0415 - see above

        if isinstance(failure, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)):
            late = isinstance(failure, httpx.TimeoutException)
            otherwise = f"nothing within {self.bounds.connect:g} s" if late else "it ended while it was made"
            words = self.redactor.text(_reason(failure))[:200] or otherwise
            return ModelUnreachable(
                f"there is no connection to {self.host}: {words}",
                hint="does the server run, and is LLM_BASE_URL right?",
                host=self.host,
                transient=True,
            )
        if isinstance(failure, httpx.TimeoutException):
            return self._too_late(f"sent nothing for {self.bounds.read:g} s")
        if isinstance(failure, (httpx.NetworkError, httpx.RemoteProtocolError)):
            return self.cut()
        return NotAModel(
            f"the exchange with {self.host} failed ({type(failure).__name__})", hint="is LLM_BASE_URL right?",
            host=self.host,
        )  # fmt: skip

    def cut(self) -> AnswerCut:
        """The connection ended too early."""
        return AnswerCut(
            f"{self.host} ended the connection before its answer was whole",
            hint="ask again; the server's log may say more",
            host=self.host,
            transient=True,
        )

    def _too_late(self, what: str) -> ModelTimeout:
        return ModelTimeout(f"{self.host} {what}", hint="ask for less, or allow more time", host=self.host)


def _reason(failure: BaseException) -> str:
    """Why no connection was made, in the system's words where it has some: httpx says only that there is none."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ConnectionError) and cause.errno:
            return os.strerror(cause.errno)
        if isinstance(cause, OSError) and cause.strerror and not isinstance(cause, ssl.SSLWantReadError):
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(failure)
