"""Where a model is asked: a base URL taken apart, so that what is secret in it stands alone."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, quote, unquote, urlsplit

from pydantic import SecretStr

from fsm_agent.errors import UsageError

ENDPOINT = "/chat/completions"
_LONGEST_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server's chat completions."""

    shown: str
    """Host, port and path: what errors and texts name. A user, a password and a query are not in it."""
    url: str
    """Where requests go: without user and password, and without the query."""
    query: SecretStr | None
    """The query of the base URL, where it has one: `api-version=…`, or a key."""
    user: SecretStr | None
    """`user:password`, where the base URL holds them."""
    secure: bool
    local: bool
    """Whether the server is on this machine: no proxy leads there."""

    @classmethod
    def of(cls, base_url: str) -> Address:
        """Of a base URL, with or without the endpoint at its end. Raises UsageError, which does not repeat it."""
        parts = _split(base_url.strip())
        path = parts.path.rstrip("/")
        path = path if path.endswith(ENDPOINT) else path + ENDPOINT
        at = parts.netloc.rpartition("@")
        return cls(
            _cut(at[2] + path),
            f"{parts.scheme}://{at[2]}{path}",
            SecretStr(parts.query) if parts.query else None,
            SecretStr(unquote(at[0])) if at[0] else None,
            parts.scheme == "https",
            _is_local(parts.hostname or ""),
        )

    @property
    def secrets(self) -> list[str]:
        """What no text may hold of it."""
        query = self.query.get_secret_value() if self.query else ""
        values = [unquote(pair.partition("=")[2]) for pair in query.split("&")]
        user = self.user.get_secret_value() if self.user else ""
        return [value for value in (*values, user, user.partition(":")[2]) if value]


def authorization(key: SecretStr | None, address: Address) -> dict[str, str]:
    """The header that says who asks."""
    if key is not None:
        return {"Authorization": f"Bearer {key.get_secret_value()}"}
    if address.user is not None:
        return {"Authorization": f"Basic {b64encode(address.user.get_secret_value().encode()).decode()}"}
    return {}


def target(address: Address) -> dict[str, bytes]:
    """The path with the query, for httpcore alone: httpx logs the address of every request."""
    if address.query is None:
        return {}
    path = urlsplit(address.url).path
    return {"target": quote(f"{path}?{address.query.get_secret_value()}", safe="!#$%&'()*+,/:;=?@[]~").encode()}


def _split(base_url: str) -> SplitResult:
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or not base_url.isprintable() or " " in base_url:
        raise UsageError(
            "the base URL of the model's server is no http or https address of a host",
            hint="LLM_BASE_URL looks like https://host/v1 or http://127.0.0.1:8080/v1",
        )
    return parts


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
