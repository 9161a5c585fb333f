"""`http_request`: one HTTP request, by httpx."""

from __future__ import annotations

import json as json_format
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from fsm_agent.clock import Clock
from fsm_agent.errors import HttpBusy, HttpError, HttpUnreachable, TooLarge
from fsm_agent.retry_after import parse_retry_after
from fsm_agent.skills.context import SkillContext
from fsm_agent.skills.declaration import skill

if TYPE_CHECKING:
    import httpx

MAX_REDIRECTS = 5
MAX_BYTES = 10_000_000
MAX_PORT = 65_535
MAX_PATH = 100
"""A longer path is cut in errors."""

BUSY = frozenset({429, 503})

ASKING = frozenset({"GET", "HEAD"})
"""Methods that change nothing. Only for them are redirects followed: so what was not connected was not sent."""

KEY_HEADER = "Idempotency-Key"


class Http:
    """The skill `http_request`. It keeps no connections: each call has a client of its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._certificates: ssl.SSLContext | None = None

    @skill(
        risk="medium",
        requires="net.http",
        max_retries=2,
        retry_on=(HttpUnreachable, HttpBusy),  # in both cases the server has done nothing
    )
    async def http_request(  # noqa: PLR0913, PLR0917 - called by keywords, each a part of an HTTP request
        self,
        url: Annotated[str, Field(description="An http or https address")],
        method: Annotated[str, Field(pattern="^[A-Za-z]+$", description="GET, POST, …")] = "GET",
        headers: Annotated[dict[str, str] | None, Field(description="Headers of the request")] = None,
        params: Annotated[dict[str, Any] | None, Field(description="The query, added to the address")] = None,
        json: Annotated[Any, Field(description="A body to be sent as JSON")] = None,
        data: Annotated[str | dict[str, str] | None, Field(description="A body: a text, or a form's fields")] = None,
        timeout: Annotated[float, Field(gt=0, le=3600, description="Seconds to connect, and between bytes")] = 30.0,  # noqa: ASYNC109 - httpx's own, inside the attempt's
        max_bytes: Annotated[int, Field(gt=0, le=MAX_BYTES, description="A longer answer is an error")] = 900_000,
        raise_for_status: Annotated[bool, Field(description="Whether a status from 400 on is an error")] = True,
        context: SkillContext | None = None,
    ) -> dict[str, Any]:
        """Send an HTTP request, and return `status`, `url`, `headers` and `body` of the answer.

        The body is data where the server says that it is JSON, else text. Redirects are followed for GET and HEAD,
        five at most. The task's idempotency key is sent as the header Idempotency-Key. Raises HttpUnreachable when
        nothing was sent, HttpBusy for 429 and 503, HttpError for all else, and TooLarge.
        """
        if json is not None and data is not None:
            raise HttpError("an HTTP request has one body", hint="give json or data, not both")
        wanted = {
            "method": method.upper(),
            "url": url,
            "headers": _with_key(headers or {}, context),
            "params": params,
            "json": json,
            "content" if isinstance(data, str) else "data": data,
        }
        return await self._exchange(wanted, timeout, max_bytes, strict=raise_for_status)

    async def _exchange(
        self,
        wanted: dict[str, Any],
        patience: float,
        max_bytes: int,
        *,
        strict: bool,
    ) -> dict[str, Any]:
        import httpx  # noqa: PLC0415 - it is slow to import, and most runs need none of it

        host = "the server"
        try:
            async with httpx.AsyncClient(
                timeout=patience, verify=self._trusted(httpx), max_redirects=MAX_REDIRECTS
            ) as client:
                request = client.build_request(**wanted)
                _check_address(request.url)
                host = _address(request.url)
                response = await client.send(request, stream=True, follow_redirects=request.method in ASKING)
                async with aclosing(response):
                    if strict and response.status_code >= 400:
                        raise self._bad_status(response, host)
                    return _answer(response, await _read(response, host, max_bytes), host)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise HttpUnreachable(f"there is no connection to {host} ({type(error).__name__})") from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ExceptionGroup) as error:
            raise HttpError(f"the request to {host} failed ({type(error).__name__})") from error
        except (ValueError, TypeError) as error:
            raise HttpError("the request cannot be built from its address, headers, query and body") from error

    def _trusted(self, library: Any) -> ssl.SSLContext:
        """The certificates, read once: that takes longer than most requests."""
        if self._certificates is None:
            self._certificates = library.create_ssl_context()
        return self._certificates

    def _bad_status(self, response: httpx.Response, host: str) -> HttpError:
        status = response.status_code
        wait = parse_retry_after(response.headers.get("retry-after"), self._clock.now())
        kind = HttpBusy if status in BUSY else HttpError
        reason = f" {response.reason_phrase}" if response.reason_phrase else ""
        return kind(f"{host} answered {status}{reason} to {response.request.method}", status=status, retry_after=wait)


def _with_key(headers: Mapping[str, str], context: SkillContext | None) -> dict[str, str]:
    """The headers and the task's idempotency key, unless they hold one."""
    if context is None or KEY_HEADER.lower() in map(str.lower, headers):
        return dict(headers)
    return {**headers, KEY_HEADER: context.idempotency_key}


def _check_address(url: httpx.URL) -> None:
    if url.scheme not in ("http", "https") or not url.host or not 0 < (url.port or 80) <= MAX_PORT:
        raise HttpError("the address is no http or https address of a host", hint="write https://host/path")


def _address(url: httpx.URL) -> str:
    """Host, port and path, as errors name them: a query or a user may be secret."""
    path = url.raw_path.partition(b"?")[0].decode("ascii", "replace")
    path = path if len(path) <= MAX_PATH else f"{path[:MAX_PATH]}…"
    return url.netloc.decode("ascii", "replace") + ("" if path == "/" else path)


async def _read(response: httpx.Response, host: str, max_bytes: int) -> bytes:
    found = bytearray()
    async for chunk in response.aiter_bytes():
        found += chunk
        if len(found) > max_bytes:
            raise TooLarge(f"the answer of {host}", len(found), max_bytes, "raise max_bytes")
    return bytes(found)


def _answer(response: httpx.Response, content: bytes, host: str) -> dict[str, Any]:
    return {
        "status": response.status_code,
        "url": str(response.url),
        "headers": dict(response.headers),
        "body": _body(response, content, host),
    }


def _body(response: httpx.Response, content: bytes, host: str) -> Any:
    try:
        text = content.decode(response.charset_encoding or "utf-8")
    except (UnicodeDecodeError, LookupError):
        raise HttpError(f"the answer of {host} is no text", status=response.status_code) from None
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not text or not (kind == "application/json" or kind.endswith("+json")):
        return text
    try:
        return json_format.loads(text)
    except (ValueError, RecursionError):
        raise HttpError(f"{host} says that its answer is JSON, and it is not", status=response.status_code) from None
