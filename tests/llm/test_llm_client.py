"""The client against a real HTTP server: what it sends, what it reads, what it tries."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from fsm_agent import Message, ModelRequest, OpenAiClient
from fsm_agent.errors import UsageError
from fsm_agent.llm.dialect import Dialects
from fsm_agent.llm.protocol import Usage
from tests.llm.asking import HELLO, KEY, SCHEMA, Instant, ask, client_of, fail, run
from tests.llm.scripted_server import Sends, completion, delta, events, refusal, serving

IN_FORM = ModelRequest.of("Count", schema=SCHEMA)

# What is sent and read ------------------------------------------------------------------------------------------------


def test_a_request_holds_what_was_asked_and_who_asks() -> None:
    messages = (Message("system", "Be short."), Message("user", "你好"), Message("assistant", "Yes?"))
    request = ModelRequest(messages, max_tokens=7, stop=("END",), temperature=1.5)
    _, server = ask(completion(), request=request)
    (asked,) = server.asked
    assert (asked.method, asked.target, asked.headers["authorization"]) == (
        "POST", "/v1/chat/completions", f"Bearer {KEY}",
    )  # fmt: skip
    assert asked.json == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "你好"},
            {"role": "assistant", "content": "Yes?"},
        ],
        "temperature": 1.5,
        "max_tokens": 7,
        "stop": ["END"],
    }


def test_what_a_request_leaves_out_the_client_says() -> None:
    _, server = ask(completion())
    assert server.asked[0].json == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello?"}],
        "temperature": 0.1,
    }


def test_halves_of_characters_and_odd_schemas_are_not_sent() -> None:
    _, server = ask(completion(), request=ModelRequest.of("half \ud83d"))
    assert server.asked[0].json["messages"][0]["content"] == "half �"
    for schema in ({"enum": [float("nan")]}, {"enum": [object()]}):
        with pytest.raises(UsageError, match="schema"):
            ask(completion(), request=ModelRequest.of("x", schema=schema))


def test_without_a_key_none_is_sent_and_a_password_goes_into_its_header() -> None:
    _, server = ask(completion(), key="")
    assert "authorization" not in server.asked[0].headers

    async def main() -> str:
        async with serving(completion()) as server:
            client = OpenAiClient(server.base_url.replace("//", "//me:pa%40ss@"), model="m", key="")
            await client.complete(HELLO)
            return server.asked[0].headers["authorization"]

    assert run(main) == "Basic bWU6cGFAc3M="


def test_the_query_of_a_base_url_is_sent_with_its_key_in_it() -> None:
    async def main() -> str:
        async with serving(completion()) as server:
            client = OpenAiClient(f"{server.base_url}/?api-version=2&key=a%20b", model="m", key="")
            await client.complete(HELLO)
            return server.asked[0].target

    assert run(main) == "/v1/chat/completions?api-version=2&key=a%20b"


def test_a_reply_tells_text_tokens_model_and_why_the_model_stopped() -> None:
    usage = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
    reply, _ = ask(completion("Hi", usage=usage, finish_reason="length"))
    assert (reply.text, reply.usage, reply.model) == ("Hi", Usage(11, 5), "served")
    assert (reply.finish_reason, reply.cut, reply.step, reply.requests) == ("length", True, None, 1)
    assert 0 < reply.seconds < 5


@pytest.mark.parametrize("usage", [None, {}, [], "many", {"prompt_tokens": -1, "completion_tokens": True}])
def test_tokens_that_the_server_does_not_count_are_estimated_and_said_to_be(usage: Any) -> None:
    reply, _ = ask(completion("abcdefgh你", usage=usage))
    assert reply.usage == Usage(prompt_tokens=6, completion_tokens=3, estimated=True)


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", ""),
        ({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "b"}]}, "b", "hm"),
        ({"content": [{"type": "output_text", "text": {"value": "a"}}, "b", None, 7]}, "ab", ""),
        ({"content": "a", "reasoning_content": "hm"}, "a", "hm"),
        ({"content": "a", "reasoning": "hm"}, "a", "hm"),
        ({"content": None}, "", ""),
        ({}, "", ""),
        ({"content": None, "refusal": "I will not"}, "I will not", ""),
        ({"content": "half \ud83d, whole \ud83d\ude00"}, "half �, whole 😀", ""),
        (
            {"content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
            '{"name": "f", "arguments": {"a": 1}}', "",
        ),
        (
            {"content": "So:", "tool_calls": [{"function": {"name": "f", "arguments": {"a": "你"}}}, {}]},
            'So:\n{"name": "f", "arguments": {"a": "你"}}', "",
        ),
        (
            {"function_call": {"name": "f", "arguments": '{"a": '}},
            '{"name": "f", "arguments": "{\\"a\\": "}', "",
        ),
    ],
)  # fmt: skip
def test_the_text_is_found_in_every_form_of_a_message(message: dict[str, Any], text: str, reasoning: str) -> None:
    reply, _ = ask(completion(message))
    assert (reply.text, reply.reasoning) == (text, reasoning)


@pytest.mark.parametrize("content_type", ["text/plain", "text/html", "application/octet-stream", None])
def test_a_completion_under_a_wrong_content_type_is_one_all_the_same(content_type: str | None) -> None:
    reply, _ = ask(Sends(completion("Hi").body, type=content_type))
    assert reply.text == "Hi"


def test_questions_may_be_asked_at_once() -> None:
    async def main() -> list[str]:
        async with serving(completion()) as server:
            client = client_of(server)
            return [reply.text for reply in await asyncio.gather(*(client.complete(HELLO) for _ in range(8)))]

    assert run(main) == ["Hello"] * 8


# Trying again ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wish", "wait"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": "0"}, 0.0),
        ({"Retry_After": "Tue, 14 Nov 2023 22:13:32 GMT"}, 12.0),
        ({"Retry_After": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0),
        ({"Retry_After": "soon"}, 0.5),
        ({}, 0.5),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_when_it_says(status: int, wish: dict[str, str], wait: float) -> None:
    clock = Instant()
    reply, server = ask(refusal(status, **wish), completion(), clock=clock)
    assert (reply.text, reply.requests, len(server.asked)) == ("Hello", 2, 2)
    assert clock.slept == [wait]
    assert reply.seconds >= wait


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "trouble",
    [
        refusal(500), refusal(502), refusal(529), refusal(408), Sends("<html>oops</html>", 504, "text/html"),
        Sends(silent=True), Sends("{", cut=True), Sends('{"error": {"message": "overloaded", "code": 503}}'),
    ],
)  # fmt: skip
def test_a_server_in_trouble_is_asked_again_and_waited_for_ever_longer(trouble: Sends, streamed: bool) -> None:
    clock = Instant()
    answer = events('data: {"choices": [{"delta": {"content": "Hello"}}]}\n\n') if streamed else completion()
    reply, server = ask(trouble, trouble, trouble, answer, clock=clock, streamed=streamed)
    assert (reply.text, reply.requests, len(server.asked)) == ("Hello", 4, 4)
    assert clock.slept == [0.5, 1.0, 2.0]


# Servers differ -------------------------------------------------------------------------------------------------------


def forms(asked: list[Any]) -> list[str | None]:
    return [each.json.get("response_format", {}).get("type") for each in asked]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "This response_format type is unavailable now"),
        (422, "response_format.type: Input should be 'text' or 'json_object'"),
        (500, "Input should be 'text' or 'json_object' [loc: body, response_format, type]"),
        (501, "Structured output is not implemented"),
        (400, "failed to parse grammar"),
        (415, "json_schema is not supported"),
    ],
)
def test_a_refusal_that_speaks_of_the_form_leads_one_step_down(status: int, words: str) -> None:
    clock = Instant()
    refused = refusal(status, words)
    reply, server = ask(refused, completion('{"n": 1}'), request=IN_FORM, clock=clock)
    assert (reply.step, reply.requests, forms(server.asked)) == ("json_object", 2, ["json_schema", "json_object"])
    reply, server = ask(refused, refused, completion('{"n": 1}'), request=IN_FORM, clock=clock)
    assert (reply.step, forms(server.asked)) == ("prompt", ["json_schema", "json_object", None])
    assert clock.slept == []


def test_each_step_of_the_ladder_says_the_schema_in_its_own_way() -> None:
    request = ModelRequest((Message("user", "Count"), Message("assistant", "1"), Message("system", "x")), SCHEMA)
    refused = refusal(400, "no response_format here")
    _, server = ask(refused, refused, completion(), request=request)
    first, second, third = (asked.json for asked in server.asked)
    assert first["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    assert first["messages"][0]["content"] == "Count"
    assert second["response_format"] == {"type": "json_object", "schema": SCHEMA}
    for body in (second, third):
        assert json.dumps(SCHEMA) in body["messages"][0]["content"]
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "system"]
    assert "response_format" not in third


def test_the_schema_is_said_also_where_no_user_speaks() -> None:
    request = ModelRequest((Message("system", "Count"),), SCHEMA)
    _, server = ask(refusal(400, "json_schema?"), completion(), request=request)
    assert [message["role"] for message in server.asked[1].json["messages"]] == ["system", "user"]


def test_what_a_server_takes_is_remembered_for_it_and_the_model_and_may_be_shared() -> None:
    dialects = Dialects()

    async def main() -> list[str | None]:
        refused = refusal(400, "json_schema?")
        async with serving(refused, completion(), completion(), completion(), completion(), completion()) as server:
            client = client_of(server, dialects=dialects)
            steps = [(await client.complete(IN_FORM)).step for _ in range(2)]
            steps.append((await client_of(server, dialects=dialects).complete(IN_FORM)).step)
            steps.append((await client_of(server, dialects=dialects, model="other").complete(IN_FORM)).step)
            steps.append((await client.complete(HELLO)).step)
            assert len(server.asked) == 6
            return steps

    assert run(main) == ["json_object", "json_object", "json_object", "json_schema", None]


def test_a_question_that_began_before_does_not_undo_what_was_found_out() -> None:
    async def main() -> str | None:
        slow = events(delta("a"), delta(finish_reason="stop"))
        async with serving(slow, refusal(400, "json_schema?"), completion(), completion()) as server:
            client = client_of(server)
            async with client.stream(HELLO) as stream:
                pieces = aiter(stream)
                await anext(pieces)
                await client.complete(IN_FORM)
                assert [piece async for piece in pieces] == []
            return (await client.complete(IN_FORM)).step

    assert run(main) == "json_object"


def test_a_step_that_led_to_no_answer_is_not_remembered() -> None:
    async def main() -> str | None:
        async with serving(refusal(400, "json_schema?"), refusal(401), completion()) as server:
            client = client_of(server)
            with pytest.raises(Exception, match="401"):
                await client.complete(IN_FORM)
            return (await client.complete(IN_FORM)).step

    assert run(main) == "json_schema"


@pytest.mark.parametrize("status", [401, 403, 429])
def test_a_refusal_of_who_asks_or_when_is_not_about_the_form(status: int) -> None:
    answers = [refusal(status, "json_schema"), completion()]
    if status == 429:
        _, server = ask(*answers, request=IN_FORM)
        assert forms(server.asked) == ["json_schema", "json_schema"]
    else:
        assert fail(*answers, request=IN_FORM).requests == 1


def test_a_server_fault_that_does_not_speak_of_the_form_is_only_a_fault() -> None:
    reply, server = ask(refusal(500, "out of memory"), completion(), request=IN_FORM)
    assert (reply.step, forms(server.asked)) == ("json_schema", ["json_schema", "json_schema"])


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        (
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            {"max_tokens": 9, "temperature": 0.1}, {"max_completion_tokens": 9, "temperature": 0.1},
        ),
        (
            "Unsupported value: 'temperature' does not support 0.1",
            {"max_tokens": 9, "temperature": 0.1}, {"max_tokens": 9},
        ),
    ],
)  # fmt: skip
def test_a_parameter_that_a_server_does_not_take_is_said_otherwise(
    words: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    _, server = ask(refusal(400, words), completion(), request=ModelRequest(HELLO.messages, max_tokens=9))
    sent = [
        {key: value for key, value in asked.json.items() if key not in ("model", "messages")} for asked in server.asked
    ]
    assert sent == [before, after]
