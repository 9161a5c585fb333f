"""The scripted model of `fsm_agent.testing`, which answers as a real client does."""

from __future__ import annotations

import asyncio

import pytest

from fsm_agent import LlmClient, ModelRequest, Reply
from fsm_agent.errors import ModelBusy, UsageError
from fsm_agent.llm.protocol import Usage
from fsm_agent.testing import ScriptedModel, SimulatedClock, Takes

HELLO = ModelRequest.of("Hello?", system="Be short.")


def test_a_scripted_model_answers_from_its_list_and_keeps_the_questions() -> None:
    own = Reply("mine", Usage(1, 2), "length", "my-model")
    model = ScriptedModel(["a b", {"n": "ü"}, own, lambda request: f"you said {request.messages[-1].text}"])
    client: LlmClient = model

    async def main() -> list[Reply]:
        return [await client.complete(HELLO) for _ in range(5)]

    replies = asyncio.run(main())
    assert [reply.text for reply in replies] == ["a b", '{"n": "ü"}', "mine", "you said Hello?", "you said Hello?"]
    assert replies[2] is own
    assert (replies[0].usage.estimated, replies[0].finish_reason, replies[0].step) == (True, "stop", None)
    assert model.requests == [HELLO] * 5
    assert [message.role for message in HELLO.messages] == ["system", "user"]


def test_a_scripted_failure_is_raised_and_a_wait_takes_no_time() -> None:
    clock = SimulatedClock()
    model = ScriptedModel([Takes(3600, "late"), ModelBusy("not now")], clock=clock)
    assert asyncio.run(model.complete(HELLO)).seconds == 3600
    assert clock.monotonic() == 3600
    with pytest.raises(ModelBusy):
        asyncio.run(model.complete(HELLO))


def test_a_scripted_stream_comes_word_by_word() -> None:
    async def main() -> tuple[list[str], Reply]:
        async with ScriptedModel([" Good  morning \n"]).stream(HELLO) as stream:
            return [piece async for piece in stream], stream.reply

    pieces, reply = asyncio.run(main())
    assert pieces == [" Good", "  morning", " \n"]
    assert "".join(pieces) == reply.text


@pytest.mark.parametrize("script", ["text", {}, []])
def test_a_script_that_is_no_list_is_refused(script: object) -> None:
    with pytest.raises(UsageError):
        ScriptedModel(script)  # type: ignore[arg-type]
