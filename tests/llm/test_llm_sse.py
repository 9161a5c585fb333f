"""Server-sent events: the same ones however the bytes are split."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.llm.sse import SseEvent, SseReader


def read(*chunks: bytes) -> list[SseEvent]:
    reader = SseReader()
    return [*itertools.chain.from_iterable(map(reader.feed, chunks)), *reader.close()]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"data: a\n\n", [SseEvent("a")]),
        (b"data:a\n\n", [SseEvent("a")]),
        (b"data:  a\n\n", [SseEvent(" a")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [SseEvent("a"), SseEvent("b")]),
        (b"data: a\r\rdata: b\r\r", [SseEvent("a"), SseEvent("b")]),
        (b"data: a\ndata: b\n\n", [SseEvent("a\nb")]),
        (b"data\n\n", [SseEvent("")]),
        (b": a comment\n\n: another\ndata: a\n\n", [SseEvent("a")]),
        (b"event: ping\n\ndata: a\n\n", [SseEvent("a")]),
        (b"id: 7\nretry: 10\nevent: error\ndata: a\n\ndata: b\n\n", [SseEvent("a", "error"), SseEvent("b")]),
        (b"error: {}\n\n", [SseEvent("{}", "error")]),
        (b"\xef\xbb\xbfdata: a\n\n", [SseEvent("a")]),
        (b"data: a", [SseEvent("a")]),
        (b"data: [DONE]\n", [SseEvent("[DONE]")]),
        (b"data: \xff\n\n", [SseEvent("�")]),
        ("data: 你好\n\n".encode(), [SseEvent("你好")]),
        ("data: a\u2028b\x85c\n\n".encode(), [SseEvent("a\u2028b\x85c")]),
    ],
)
def test_an_event_is_what_the_standard_says(content: bytes, expected: list[SseEvent]) -> None:
    assert read(content) == expected


LINES = st.sampled_from([
    "data: 你好", "data:x", "data: [DONE]", "data", ":", ": note", "event: error", "event:", "error: no", "id: 1",
    "nonsense", "", "", "data: 🙂\u2028",
])  # fmt: skip
STREAMS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=12).map(
    lambda lines: "".join(map("".join, lines)).encode()
)


@given(content=STREAMS | st.binary(max_size=60), cuts=st.lists(st.integers(0, 200), max_size=20))
def test_any_split_of_the_bytes_gives_the_same_events(content: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    chunks = [content[start:end] for start, end in itertools.pairwise(places)]
    assert read(*chunks) == read(content)
    assert read(*(bytes([byte]) for byte in content)) == read(content)


@given(data=st.text(st.characters(exclude_characters="\r\n", codec="utf-8")), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_whatever_text_an_event_holds_comes_out_as_it_was(data: str, end: str) -> None:
    assert read(f"data: {data}{end}{end}".encode()) == [SseEvent(data)]


def test_a_long_line_in_small_chunks_takes_linear_time() -> None:
    size = 300_000
    (event,) = read(b"data: ", *([b"x"] * size), b"\n\n")
    assert len(event.data) == size
