"""The client against a real model. What the model says is its own affair, and how fast it is, too."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema
import pytest

from fsm_agent import ModelBounds, ModelRequest, OpenAiClient
from fsm_agent.errors import NotAModel
from fsm_agent.llm.dialect import LADDER, Dialect, Dialects
from fsm_agent.llm.protocol import Reply, Step
from tests import model

if model.folder() is None:
    pytest.skip(model.MISSING, allow_module_level=True)

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 30}, "letters": {"type": "integer"}},
    "required": ["city", "letters"],
    "additionalProperties": False,
}
QUESTION = "Name a city, and how many letters its name has."


def client_of(base_url: str, **more: Any) -> OpenAiClient:
    return OpenAiClient(base_url, model="small", key="", bounds=ModelBounds(read=600, total=800), **more)


def complete(client: OpenAiClient, request: ModelRequest) -> Reply:
    return asyncio.run(client.complete(request))


@pytest.mark.parametrize("step", LADDER)
def test_a_form_is_kept_by_each_step_that_the_server_itself_sees_to(model_url: str, step: Step) -> None:
    dialects = Dialects()
    client = client_of(model_url, dialects=dialects)
    dialects.remember(client.host, client.model, Dialect(step))
    reply = complete(client, ModelRequest(ModelRequest.of(QUESTION).messages, CITY, max_tokens=200))
    assert (reply.step, reply.requests) == (step, 1)
    if step != "prompt":
        jsonschema.validate(json.loads(reply.text), CITY)
    assert reply.usage.estimated is False


def test_a_form_that_the_real_server_refuses_leads_down_the_ladder(model_url: str) -> None:
    client = client_of(model_url)
    odd = {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}, "required": ["a"]}
    reply = complete(client, ModelRequest(ModelRequest.of(QUESTION).messages, odd, max_tokens=20))
    assert (reply.step, reply.requests) == ("prompt", 3)
    again = complete(client, ModelRequest(ModelRequest.of(QUESTION).messages, odd, max_tokens=20))
    assert (again.step, again.requests) == ("prompt", 1)


def test_a_stream_comes_in_pieces_and_its_tokens_are_counted_by_the_server(model_url: str) -> None:
    client = client_of(model_url)
    request = ModelRequest(ModelRequest.of("Tell me about trees.").messages, max_tokens=24)

    async def main() -> tuple[list[str], Reply]:
        async with client.stream(request) as stream:
            pieces = [piece async for piece in stream]
            return pieces, stream.reply

    pieces, streamed = asyncio.run(main())
    whole = complete(client, request)
    assert len(pieces) > 3
    assert "".join(pieces) == streamed.text
    assert (streamed.usage.estimated, whole.usage.estimated) == (False, False)
    assert streamed.usage.prompt_tokens == whole.usage.prompt_tokens > 5
    assert 0 < streamed.usage.completion_tokens <= 24


def test_an_answer_that_used_up_its_tokens_says_that_it_is_cut(model_url: str) -> None:
    request = ModelRequest(ModelRequest.of("Write a long story about a train.").messages, max_tokens=5)
    reply = complete(client_of(model_url), request)
    assert (reply.cut, reply.finish_reason, reply.usage.completion_tokens) == (True, "length", 5)


def test_leaving_a_stream_early_leaves_the_server_free_for_the_next_question(model_url: str) -> None:
    client = client_of(model_url)

    async def main() -> Reply:
        async with client.stream(ModelRequest.of("Write a long story about a train.")) as stream:
            async for _ in stream:
                break
        return await client.complete(ModelRequest(ModelRequest.of("Say hello.").messages, max_tokens=5))

    assert asyncio.run(main()).text


def test_a_wrong_path_of_the_real_server_is_told(model_url: str) -> None:
    with pytest.raises(NotAModel, match="404"):
        complete(client_of(f"{model_url}/nowhere"), ModelRequest.of("Hello"))
