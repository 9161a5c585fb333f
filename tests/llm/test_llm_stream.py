"""Streams: pieces as they come, whatever the bytes look like, and one whole reply at the end."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.errors import AnswerCut, ModelBusy, ModelError, ModelFault, NotAModel, UsageError
from fsm_agent.llm.answer import StreamedAnswer
from fsm_agent.llm.protocol import Usage
from tests.llm.asking import HELLO, Instant, ask, client_of, fail, run
from tests.llm.scripted_server import Sends, completion, delta, events, refusal, serving

STOP = delta(finish_reason="stop")
COUNTED = 'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}\n\n'
TALK = [": keep-alive\n\n", delta("", role="assistant"), delta("你好, "), delta("wörld 🙂"), STOP, COUNTED]


def test_the_server_is_asked_for_a_stream_with_its_tokens_counted() -> None:
    reply, server = ask(events(*TALK), streamed=True)
    sent = server.asked[0].json
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})
    assert (reply.text, reply.usage, reply.finish_reason, reply.model) == (
        "你好, wörld 🙂",
        Usage(9, 4),
        "stop",
        "served",
    )


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_chunks_that_cut_lines_and_characters_change_nothing(size: int, end: str) -> None:
    content = ("".join(TALK) + "data: [DONE]\n\n").replace("\n", end).encode()
    chunks = [content[start : start + size] for start in range(0, len(content), size)]
    reply, _ = ask(Sends(chunks, type="text/event-stream"), streamed=True)
    assert (reply.text, reply.usage) == ("你好, wörld 🙂", Usage(9, 4))


@given(cuts=st.lists(st.integers(0, 900), max_size=12))
def test_any_split_of_a_stream_gives_the_same_completion(cuts: list[int]) -> None:
    content = ("".join(TALK) + "data: [DONE]\n\n").encode()
    reader, pieces = StreamedAnswer(), []
    for start, end in itertools.pairwise([0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]):
        pieces += reader.feed(content[start:end])
    pieces += reader.close()
    assert "".join(pieces) == reader.completion.text == "你好, wörld 🙂"
    assert reader.completion.finish_reason == "stop"


def test_pieces_are_given_as_they_come() -> None:
    async def main() -> list[str]:
        async with serving(events(delta("one "), delta("two "), done=False, hangs=True)) as server:
            taken = []
            async with client_of(server).stream(HELLO) as stream:
                async for piece in stream:
                    taken.append(piece)
                    if len(taken) == 2:
                        break
            await asyncio.wait_for(server.left.wait(), 5)
            return taken

    assert run(main) == ["one ", "two "]


def test_a_stream_without_counted_tokens_has_estimated_ones() -> None:
    reply, _ = ask(events(delta("abcdefgh"), STOP), streamed=True)
    assert reply.usage == Usage(6, 2, estimated=True)


def test_a_server_that_cannot_count_a_stream_is_not_asked_to_again() -> None:
    async def main() -> list[bool]:
        refused = refusal(400, "unknown field stream_options")
        async with serving(refused, events(delta("a"), STOP)) as server:
            client = client_of(server)
            for _ in range(2):
                async with client.stream(HELLO) as stream:
                    assert [piece async for piece in stream] == ["a"]
            return ["stream_options" in asked.json for asked in server.asked]

    assert run(main) == [True, False, False]


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_a_server_that_answers_as_a_whole_is_understood(kind: str) -> None:
    reply, _ = ask(Sends(completion("Hi").body, type=kind), streamed=True)
    assert reply.text == "Hi"


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", None])
def test_a_stream_under_a_wrong_content_type_is_one_all_the_same(kind: str | None) -> None:
    reply, _ = ask(Sends(events(*TALK).body, type=kind), streamed=True)
    assert reply.text == "你好, wörld 🙂"


def test_thoughts_and_calls_of_tools_come_in_pieces_too() -> None:
    call = {"index": 0, "id": "1", "function": {"name": "f", "arguments": ""}}
    more = [{"index": 0, "function": {"arguments": part}} for part in ('{"a"', ": 1}")]
    second = {"index": 1, "function": {"name": "g", "arguments": "{}"}}
    parts = [delta(reasoning_content="h"), delta(reasoning_content="m")]
    parts += [delta(tool_calls=[each]) for each in (call, *more, second)]
    reply, _ = ask(events(*parts, delta(finish_reason="tool_calls")), streamed=True)
    assert reply.reasoning == "hm"
    assert [json.loads(line) for line in reply.text.splitlines()] == [
        {"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "end",
    [
        [STOP],  # no [DONE]
        [STOP.rstrip("\n")],  # nor an empty line
        [delta("", finish_reason="stop"), "data: [DONE]"],
        [STOP, "data: [DONE]\n\n", delta("after the end"), "data: {nonsense\n\n"],
    ],
)
def test_a_stream_is_whole_when_the_server_says_so_in_one_way_or_another(end: list[str]) -> None:
    reply, _ = ask(events(delta("Hello"), *end, done=False), streamed=True)
    assert reply.text == "Hello"


@pytest.mark.parametrize(
    "answer",
    [
        events(delta("Hel"), cut=True, done=False),
        events(delta("Hel"), done=False),
        events(delta("Hel"), delta("lo")[:30], done=False),
        events(delta("Hel"), delta("lo").encode()[:-30].decode(), cut=True, done=False),
    ],
)
def test_a_stream_that_is_cut_is_an_error_and_not_made_again_after_its_first_piece(answer: Sends) -> None:
    async def main() -> tuple[list[str], ModelError, int]:
        async with serving(answer, events(delta("again"), STOP)) as server:
            taken: list[str] = []
            async with client_of(server).stream(HELLO) as stream:
                with pytest.raises(AnswerCut) as caught:  # noqa: PT012 - what was taken before it is the point
                    async for piece in stream:
                        taken.append(piece)
                with pytest.raises(UsageError):
                    _ = stream.reply
            return taken, caught.value, len(server.asked)

    taken, error, asked = run(main)
    assert (taken, asked, error.requests) == (["Hel"], 1, 1)


def test_a_stream_that_is_cut_before_its_first_piece_is_asked_for_again() -> None:
    clock = Instant()
    cut = events(delta("", role="assistant"), done=False, cut=True)
    reply, server = ask(cut, events(delta("Hello"), STOP), streamed=True, clock=clock)
    assert (reply.text, len(server.asked), clock.slept) == ("Hello", 2, [0.5])


@pytest.mark.parametrize(
    ("part", "kind", "words"),
    [
        ('data: {"error": {"message": "the server ran out of memory"}}\n\n', ModelFault, "out of memory"),
        ('data: {"error": {"message": "slow down", "code": 429}}\n\n', ModelBusy, "slow down"),
        ('data: {"error": "gone"}\n\n', ModelFault, "gone"),
        ('event: error\ndata: {"message": "gone"}\n\n', ModelFault, "gone"),
        ("event: error\ndata: 7\n\n", ModelFault, "7"),
        ('error: {"message": "gone"}\n\n', ModelFault, "gone"),
        ('data: {"object": "error", "message": "gone"}\n\n', ModelFault, "gone"),
        ('data: {"error": {"message": "gone"}, "choices": [{"delta": {"content": ""}}]}\n\n', ModelFault, "gone"),
        ("data: {nonsense\n\n", NotAModel, "no JSON"),
        ('data: "text"\n\n', NotAModel, "no JSON object"),
        ('data: {"choices": 7}\n\n', NotAModel, "choices"),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_told_in_the_servers_words(
    part: str, kind: type[ModelError], words: str
) -> None:
    error = fail(events(delta("Hel"), part, delta("lo"), STOP), streamed=True)
    assert type(error) is kind
    assert words in str(error)
    assert error.requests == 1


def test_an_error_before_the_first_piece_is_a_reason_to_ask_again() -> None:
    busy = events('data: {"error": {"message": "busy", "code": 503}}\n\n', done=False)
    reply, server = ask(busy, events(delta("Hello"), STOP), streamed=True)
    assert (reply.text, len(server.asked)) == ("Hello", 2)


def test_a_stream_has_one_consumer_and_its_reply_at_its_end() -> None:
    async def main() -> None:
        async with serving(events(delta("a"), STOP)) as server, client_of(server).stream(HELLO) as stream:
            with pytest.raises(UsageError, match="at its end"):
                _ = stream.reply
            assert [piece async for piece in stream] == ["a"]
            with pytest.raises(UsageError, match="one consumer"):
                [piece async for piece in stream]
            assert stream.reply.text == "a"

    run(main)


def test_a_stream_that_nobody_takes_asks_nobody() -> None:
    async def main() -> int:
        async with serving(events(STOP)) as server:
            async with client_of(server).stream(HELLO):
                pass
            return len(server.asked)

    assert run(main) == 0
