"""The skills that come with the package, but for those of files: HTTP, waiting, notes."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from fsm_agent.clock import SystemClock
from fsm_agent.errors import (
    BadParameters,
    HttpBusy,
    HttpError,
    HttpUnreachable,
    TooLarge,
)
from fsm_agent.skills.context import SkillContext, TaskInfo
from fsm_agent.skills.registry import SkillRegistry


class Port:
    """The engine's side of a context."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def read(self, key: str, default: Any) -> Any:
        return default

    def results(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def tell_progress(self, share: float, text: str) -> None: ...

    def tell_log(self, message: str, fields: Mapping[str, Any]) -> None:
        self.told.append(message)


def context(port: Port | None = None) -> SkillContext:
    return SkillContext(port or Port(), TaskInfo("t"), run_id="r", visit=1, attempt=1, idempotency_key="key-1")


def use(registry: SkillRegistry, name: str, /, *, in_context: SkillContext | None = None, **parameters: Any) -> Any:
    """Call a skill as an engine does: validated parameters, and the context where it asks for it."""
    skill = registry.get(name)
    kwargs = skill.validate(parameters)
    if in_context is not None and skill.context_parameter:
        kwargs[skill.context_parameter] = in_context
    found = skill.function(**kwargs)
    return asyncio.run(found) if skill.is_async else found


def test_the_risk_and_permissions_of_the_built_in_skills() -> None:
    specs = SkillRegistry().specs()
    told = {name: (spec.risk, sorted(spec.requires), spec.idempotent) for name, spec in specs.items()}
    assert told == {
        "http_request": ("medium", ["net.http"], False),
        "read_file": ("low", [], True),
        "write_file": ("medium", ["file.write"], True),
        "sleep": ("low", [], True),
        "note": ("low", [], True),
    }


# Waiting and notes ---------------------------------------------------------------------------------------------------


class NoTime(SystemClock):
    """A clock whose sleep takes no time and is remembered."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, delay: float) -> None:
        self.slept.append(delay)


def test_sleep_waits_by_the_clock_it_is_given() -> None:
    clock = NoTime()
    registry = SkillRegistry(clock=clock)
    assert use(registry, "sleep", seconds=3600) == 3600
    assert clock.slept == [3600]
    policy = registry.get("sleep").spec.policy
    assert policy.timeout is not None
    assert policy.timeout > 1_000_000
    for bad in (-1, 1e9, "soon", float("nan")):
        with pytest.raises(BadParameters):
            registry.get("sleep").validate({"seconds": bad})


def test_a_note_is_logged_kept_and_returned() -> None:
    registry, port = SkillRegistry(), Port()
    first, second = context(port), context(port)
    assert use(registry, "note", in_context=first, text="hello") == "hello"
    assert use(registry, "note", in_context=second, text={"a": [1]}, key="k") == '{"a":[1]}'
    assert port.told == ["hello", '{"a":[1]}']
    assert (first.close(), second.close()) == ({}, {"k": '{"a":[1]}'})
    assert use(registry, "note", text="without an engine") == "without an engine"


# HTTP ----------------------------------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    """Answers by path; `/echo` says what it was sent."""

    protocol_version = "HTTP/1.1"
    answers: Mapping[str, tuple[int, dict[str, str], bytes]] = {
        "/text": (200, {"Content-Type": "text/plain; charset=latin-1"}, "Zürich".encode("latin-1")),
        "/json": (200, {"Content-Type": "application/problem+json"}, b'{"a": [1]}'),
        "/bad-json": (200, {"Content-Type": "application/json"}, b"{"),
        "/binary": (200, {"Content-Type": "image/png"}, b"\xff\xfe\x00"),
        "/empty": (204, {}, b""),
        "/large": (200, {}, b"x" * 5000),
        "/zipped": (200, {"Content-Encoding": "gzip"}, gzip.compress(b"x" * 5000)),
        "/missing": (404, {}, b"secret details"),
        "/busy": (503, {"Retry-After": "7"}, b""),
        "/slow-down": (429, {"Retry-After": "Wed, 21 Oct 2065 07:28:00 GMT"}, b""),
        "/moved": (302, {"Location": "/text"}, b""),
        "/around": (302, {"Location": "/around"}, b""),
        "/away": (302, {"Location": "file:///etc/passwd"}, b""),
    }

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002 - the base class's name

    def reply(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        sent = self.rfile.read(length).decode()
        status, headers, body = self.answers.get(self.path.partition("?")[0], (200, {}, b""))
        if self.path.startswith("/echo"):
            told = {"method": self.command, "path": self.path, "headers": dict(self.headers), "body": sent}
            headers, body = {"Content-Type": "application/json"}, json.dumps(told).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_HEAD = reply  # noqa: N815 - the base class's names


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture(scope="module")
def web() -> SkillRegistry:
    return SkillRegistry()


def test_the_answer_has_status_url_headers_and_body(web: SkillRegistry, server: str) -> None:
    found = use(web, "http_request", url=f"{server}/text")
    assert (found["status"], found["url"], found["body"]) == (200, f"{server}/text", "Zürich")
    assert found["headers"]["content-type"] == "text/plain; charset=latin-1"


def test_a_json_answer_is_data(web: SkillRegistry, server: str) -> None:
    assert use(web, "http_request", url=f"{server}/json")["body"] == {"a": [1]}
    assert use(web, "http_request", url=f"{server}/empty")["body"] == ""


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"json": {"a": 1}}, '{"a":1}'),
        ({"data": "plain"}, "plain"),
        ({"data": {"a": "1", "b": "x y"}}, "a=1&b=x+y"),
        ({}, ""),
    ],
)
def test_a_request_is_sent_as_it_is_asked_for(
    web: SkillRegistry, server: str, given: dict[str, Any], sent: str
) -> None:
    found = use(
        web, "http_request", url=f"{server}/echo", method="put", params={"q": "a b"}, headers={"X-A": "1"}, **given
    )["body"]
    assert (found["method"], found["path"], found["body"].replace(" ", ""), found["headers"]["X-A"]) == (
        "PUT",
        "/echo?q=a+b",
        sent.replace(" ", ""),
        "1",
    )


def test_the_idempotency_key_is_sent_unless_there_is_one(web: SkillRegistry, server: str) -> None:
    url = f"{server}/echo"
    found = use(web, "http_request", in_context=context(), url=url, method="POST")["body"]
    assert found["headers"]["Idempotency-Key"] == "key-1"
    own = use(web, "http_request", in_context=context(), url=url, headers={"idempotency-key": "mine"})["body"]
    assert [value for name, value in own["headers"].items() if name.lower() == "idempotency-key"] == ["mine"]


def test_a_status_from_400_on_is_an_error_that_keeps_the_answer_to_itself(web: SkillRegistry, server: str) -> None:
    with pytest.raises(HttpError, match=r"^127\.0\.0\.1:\d+/missing answered 404 Not Found to GET") as caught:
        use(web, "http_request", url=f"{server}/missing?token=hunter2")
    assert caught.value.status == 404
    assert "hunter2" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert use(web, "http_request", url=f"{server}/missing", raise_for_status=False)["status"] == 404


@pytest.mark.parametrize(("path", "wait"), [("/busy", 7.0), ("/slow-down", 86_400.0)])
def test_a_busy_server_says_how_long_to_wait(web: SkillRegistry, server: str, path: str, wait: float) -> None:
    with pytest.raises(HttpBusy) as caught:
        use(web, "http_request", url=server + path)
    assert caught.value.retry_after == wait


def test_only_what_had_no_effect_is_tried_again(web: SkillRegistry) -> None:
    policy = web.get("http_request").spec.policy
    assert (policy.max_retries, policy.retry_on) == (2, ("HttpUnreachable", "HttpBusy"))


def test_redirects_are_followed_for_requests_that_change_nothing(web: SkillRegistry, server: str) -> None:
    assert use(web, "http_request", url=f"{server}/moved")["body"] == "Zürich"
    assert use(web, "http_request", url=f"{server}/moved", method="POST")["status"] == 302
    for path in ("/around", "/away"):
        with pytest.raises(HttpError):
            use(web, "http_request", url=server + path)


@pytest.mark.parametrize("path", ["/large", "/zipped"])
def test_an_answer_that_is_too_large_is_refused(web: SkillRegistry, server: str, path: str) -> None:
    with pytest.raises(TooLarge, match="at most 1,000"):
        use(web, "http_request", url=server + path, max_bytes=1000)
    assert len(use(web, "http_request", url=server + path, max_bytes=5000)["body"]) == 5000


@pytest.mark.parametrize("path", ["/bad-json", "/binary"])
def test_an_answer_that_is_not_what_it_should_be_is_an_error(web: SkillRegistry, server: str, path: str) -> None:
    with pytest.raises(HttpError):
        use(web, "http_request", url=server + path)


def test_a_server_that_is_not_there_is_unreachable(web: SkillRegistry) -> None:
    with pytest.raises(HttpUnreachable):
        use(web, "http_request", url="http://127.0.0.1:1/?token=hunter2")


@pytest.mark.parametrize(
    "given",
    [
        {"url": "file:///etc/passwd"},
        {"url": "ftp://a.example/x"},
        {"url": "no address"},
        {"url": "http://"},
        {"url": "http://a\x00b/"},
        {"url": "http://127.0.0.1:99999/"},
        {"url": "http://127.0.0.1/", "headers": {"X": "a\r\nY: b"}},
        {"url": "http://127.0.0.1/", "headers": {"X": "東京"}},
        {"url": "http://127.0.0.1/", "json": 1, "data": "x"},
    ],
)
def test_a_request_that_cannot_be_sent_is_a_clear_error(web: SkillRegistry, given: dict[str, Any]) -> None:
    with pytest.raises(HttpError):
        use(web, "http_request", **given)


def test_a_method_is_a_word(web: SkillRegistry) -> None:
    with pytest.raises(BadParameters):
        web.get("http_request").validate({"url": "http://a.example", "method": "GET / HTTP/1.1\r\n"})


def test_httpx_is_imported_only_when_it_is_used() -> None:
    code = "import sys, fsm_agent.skills.registry as r; r.SkillRegistry(); assert 'httpx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
