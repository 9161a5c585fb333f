"""What goes wrong with a model's server: what is said, what is tried, and what is never shown."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import traceback
from typing import Any

import pytest

from fsm_agent import ModelBounds, OpenAiClient
from fsm_agent.errors import (
    AnswerCut,
    AnswerTooLarge,
    ModelBusy,
    ModelError,
    ModelFault,
    ModelKeyRefused,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
    NotAModel,
)
from fsm_agent.llm.retrying import next_wait
from tests.llm.asking import HELLO, KEY, Instant, ask, client_of, fail, run
from tests.llm.scripted_server import Sends, completion, delta, events, refusal, serving

HTML = "<!doctype html><html><body>Welcome</body></html>"

WRONG = {
    "a wrong key": (refusal(401, f"Incorrect API key provided: {KEY[:9]}"), ModelKeyRefused, "does not take the key"),
    "no right": (refusal(403, "no"), ModelKeyRefused, "(403)"),
    "a wrong path": (Sends("Not Found", 404, "text/plain"), NotAModel, "/v1/chat/completions has no chat completions"),
    "a wrong path in JSON": (Sends('{"detail": "Not Found"}', 404), NotAModel, "has no chat completions there (404)"),
    "another method": (Sends("", 405), NotAModel, "(405)"),
    "a wrong model": (refusal(404, "The model `m` does not exist"), ModelRefused, "does not know the model 'm' (404)"),
    "too long": (refusal(400, "the context has 4096 tokens"), ModelRefused, "the context has 4096 tokens"),
    "elsewhere": (Sends("", 307, headers={"Location": "http://127.0.0.1:1/"}), NotAModel, "sends requests elsewhere"),
    "a web page": (Sends(HTML, type="text/html"), NotAModel, "it is HTML"),
    "text": (Sends("Hello", type="text/plain"), NotAModel, "it is no JSON"),
    "nothing": (Sends(""), NotAModel, "it is empty"),
    "half of JSON": (Sends('{"choices": ['), NotAModel, "it is no JSON"),
    "a list": (Sends("[]"), NotAModel, "it is no JSON object"),
    "other JSON": (Sends('{"models": []}'), NotAModel, "it has no `choices`"),
    "no choice": (Sends('{"choices": []}'), NotAModel, "it has no `choices`"),
    "an odd choice": (Sends('{"choices": [7]}'), NotAModel, "no object"),
    "no message": (Sends('{"choices": [{"text": "a"}]}'), NotAModel, "no `message`"),
    "deep JSON": (Sends("[" * 200_000), NotAModel, "no JSON"),
    "no UTF-8": (Sends(b"\xff\xfe\x00"), NotAModel, "no JSON"),
    "bad compression": (Sends(b"no gzip", headers={"Content-Encoding": "gzip"}), NotAModel, "DecodingError"),
    "no quota": (refusal(429, "You exceeded your quota (insufficient_quota)"), ModelBusy, "has no quota left"),
    "not there": (refusal(501, "no"), ModelFault, "(501)"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_become_good_is_told_at_once(case: str) -> None:
    answer, kind, words = WRONG[case]
    clock = Instant()
    error = fail(answer, completion(), clock=clock)
    assert type(error) is kind
    assert words in str(error)
    assert error.hint
    assert error.host.startswith("127.0.0.1:")
    assert error.host in str(error)
    assert (clock.slept, error.requests, error.transient) == ([], 1, False)


@pytest.mark.parametrize("answer", [Sends(HTML, type="text/html"), Sends("Hello", type="text/plain"), Sends("")])
def test_a_stream_that_is_none_is_told_as_such(answer: Sends) -> None:
    assert isinstance(fail(answer, streamed=True), NotAModel)


def test_without_a_key_the_hint_is_to_set_one() -> None:
    error = fail(refusal(401), key="")
    assert "wants a key, and none was given (401)" in str(error)
    assert "LLM_API_KEY" in error.hint


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refusal(429), ModelBusy), (refusal(500), ModelFault), (Sends(silent=True), AnswerCut),
        (Sends('{"choices"', cut=True), AnswerCut),
    ],
)  # fmt: skip
def test_trouble_that_stays_is_told_with_the_number_of_requests(answer: Sends, kind: type[ModelError]) -> None:
    clock = Instant()
    error = fail(answer, clock=clock)
    assert type(error) is kind
    assert str(error).endswith("(asked 4 times)")
    assert (clock.slept, error.requests, error.transient) == ([0.5, 1.0, 2.0], 4, True)
    error = fail(answer, bounds={"retries": 0})
    assert (error.requests, "asked" in str(error)) == (1, False)


def test_a_wait_that_is_longer_than_allowed_is_not_waited_but_told() -> None:
    clock = Instant()
    error = fail(refusal(429, Retry_After="3600"), completion(), clock=clock)
    assert "it asks for 3600 s of patience" in str(error)
    assert (error.retry_after, error.transient, clock.slept) == (3600.0, True, [])


def test_a_wait_that_would_end_too_late_is_not_begun() -> None:
    clock = Instant()
    error = fail(refusal(503), clock=clock, bounds={"total": 1.0, "first_wait": 0.6})
    assert "no time is left for another request" in str(error)
    assert clock.slept == [0.6]


@pytest.mark.parametrize(
    ("tries", "wish", "chance", "wait"),
    [
        (1, None, 0.0, 0.5), (2, None, 0.0, 1.0), (3, None, 0.0, 2.0), (4, None, 0.0, None),
        (1, None, 1.0, 0.25), (3, None, 0.5, 1.5), (1, 0.0, 1.0, 0.0), (1, 30.0, 1.0, 30.0), (1, 30.1, 0.0, None),
        (4, 1.0, 0.0, None),
    ],
)  # fmt: skip
def test_waits_double_lose_up_to_half_by_chance_and_obey_the_server(
    tries: int, wish: float | None, chance: float, wait: float | None
) -> None:
    assert next_wait(ModelBounds(), tries, wish, chance) == wait
    assert next_wait(ModelBounds(retries=10**6), 10**6, None, 0.0) == 30.0


def test_a_refused_connection_is_tried_again_and_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    clock = Instant()
    client = OpenAiClient(f"http://127.0.0.1:{port}/v1", model="m", key=KEY, clock=clock)
    with pytest.raises(
        ModelUnreachable, match=rf"no connection to 127\.0\.0\.1:{port}/v1.*: Connection refused \(asked 4 times\)"
    ) as caught:
        asyncio.run(client.complete(HELLO))
    assert len(clock.slept) == 3
    assert "LLM_BASE_URL" in caught.value.hint


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 300, "_%20_", "münchen.invalid"])
def test_a_host_that_nobody_knows_is_told(host: str) -> None:
    client = OpenAiClient(f"http://{host}/v1", model="m", key=KEY, clock=Instant())
    with pytest.raises((ModelUnreachable, NotAModel)) as caught:
        asyncio.run(client.complete(HELLO))
    assert host[:100] in str(caught.value)


def test_a_connection_that_is_not_made_in_time_is_given_up() -> None:
    async def main() -> str:
        async with serving(completion()) as server:  # it waits for HTTP, and never answers what begins TLS
            address, bounds = server.base_url.replace("http", "https"), ModelBounds(retries=0, connect=0.1)
            client = OpenAiClient(address, model="m", key=KEY, bounds=bounds)
            with pytest.raises(ModelUnreachable) as caught:
                await client.complete(HELLO)
            return str(caught.value)

    assert asyncio.run(main()).endswith("/v1/chat/completions: nothing within 0.1 s")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("answer", [Sends(silent=True, hangs=True), Sends('{"choices"', hangs=True)])
def test_a_silent_server_is_left_after_a_while_and_not_asked_again(answer: Sends, streamed: bool) -> None:
    error = fail(answer, streamed=streamed, bounds={"read": 0.05})
    assert type(error) is ModelTimeout
    assert "sent nothing for 0.05 s" in str(error)
    assert error.requests == 1


class Bell(Instant):
    """A clock on which long times are over as soon as the server was asked."""

    def call_later(self, delay: float, callback: Any) -> Any:
        return asyncio.get_running_loop().call_later(0.05 if delay > 60 else delay, callback)


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_takes_too_long_as_a_whole_is_left(streamed: bool) -> None:
    trickle = events(delta("a"), delta("b"), done=False, hangs=True) if streamed else Sends("{", hangs=True)

    async def main() -> ModelTimeout:
        async with serving(trickle) as server:
            client = client_of(server, Bell(), bounds={"total": 100.0})
            with pytest.raises(ModelTimeout, match="no whole answer within 100 s") as caught:  # noqa: PT012 - two ways
                if streamed:
                    async with client.stream(HELLO) as stream:
                        assert [piece async for piece in stream] == []
                await client.complete(HELLO)
            await asyncio.wait_for(server.left.wait(), 5)
            return caught.value

    assert run(main).requests == 1


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_is_too_large_is_left_where_it_is(streamed: bool) -> None:
    endless = Sends([b"data: " + b"x" * 5000] * 10, type="text/event-stream" if streamed else "application/json")
    error = fail(endless, streamed=streamed, bounds={"max_bytes": 20_000})
    assert type(error) is AnswerTooLarge
    assert "more than 20,000 bytes" in str(error)
    reply, _ = ask(completion("x" * 5000), bounds={"max_bytes": 20_000})
    assert len(reply.text) == 5000


def test_a_huge_refusal_is_cut_and_still_a_refusal() -> None:
    error = fail(refusal(400, "no " * 100_000))
    assert type(error) is ModelRefused
    error = fail(refusal(400, "no \x1b[31m\n" * 2_000))
    assert len(str(error)) < 500
    assert str(error).isprintable()


@pytest.mark.parametrize("streamed", [False, True])
def test_cancelling_closes_the_connection(streamed: bool) -> None:
    async def main() -> None:
        async with serving(events(delta("a"), done=False, hangs=True)) as server:
            client = client_of(server)

            async def take() -> None:
                if not streamed:
                    await client.complete(HELLO)
                async for _ in client.stream(HELLO):
                    pass

            asking = asyncio.create_task(take())
            while not server.asked:
                await asyncio.sleep(0.001)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await asyncio.wait_for(server.left.wait(), 5)

    run(main)


def test_cancelling_while_it_waits_for_the_next_attempt_asks_no_more() -> None:
    class Asleep(Instant):
        async def sleep(self, delay: float) -> None:
            await asyncio.Event().wait()

    async def main() -> int:
        async with serving(refusal(503)) as server:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client_of(server, Asleep()).complete(HELLO), 0.1)
            return len(server.asked)

    assert run(main) == 1


# What is never shown --------------------------------------------------------------------------------------------------

PASSWORD = "pa55w0rd-of-mine"
QUERY = "qu3ry-s3cret"
ECHOES = [
    *(answer for answer, _, _ in WRONG.values()),
    *(refusal(status, f"got Bearer {KEY}, {PASSWORD} and {QUERY}") for status in (400, 401, 404, 429, 500)),
    Sends(json.dumps({"error": {"message": f"what is {KEY}", "code": 503}})),
    Sends(json.dumps({"detail": [{"input": f"{KEY} {PASSWORD}"}]}), 422),
    Sends(f"{KEY} {PASSWORD} {QUERY}", 400, "text/plain"),
    Sends(f"{KEY} {PASSWORD} {QUERY}", type="text/plain"),
    Sends("", 302, headers={"Location": f"http://h/{KEY}?{PASSWORD}"}),
    Sends(silent=True),
    Sends("{", cut=True),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("secret", [KEY, PASSWORD])
def test_neither_a_key_nor_a_password_is_in_any_error_traceback_or_log(
    secret: str, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def told(answer: Sends) -> str:
        async with serving(answer) as server:
            user = "" if secret == KEY else f"me:{PASSWORD}@"
            address = f"http://{user}127.0.0.1:{server.port}/v1?token={QUERY}"
            client = OpenAiClient(address, model="m", key=KEY if secret == KEY else "", clock=Instant())
            try:
                if streamed:
                    async for _ in client.stream(HELLO):
                        pass
                await client.complete(HELLO)
            except ModelError as error:
                assert server.asked[0].headers["authorization"]
                logging.getLogger("test").exception("it failed")
                shown = [*traceback.format_exception(error), str(error), repr(error), error.hint, error.host]
                cause: BaseException | None = error
                while cause is not None:
                    shown.append(repr(cause))
                    cause = cause.__context__ or cause.__cause__
                return "\n".join(map(str, [*shown, *vars(error).values()]))
        return ""

    secrets = [secret, QUERY] if secret == KEY else [secret, QUERY, "bWU6cGE1"]
    for answer in ECHOES:
        shown = asyncio.run(told(answer))
        logged = [record.getMessage() for record in caplog.records]
        assert logged
        # What a server itself puts into its headers, httpcore's own debug lines repeat.
        lines = [line for line in logged if not line.startswith("receive_response_headers.complete")]
        assert [each for each in secrets if each in "\n".join([shown, *lines])] == []
        caplog.clear()
