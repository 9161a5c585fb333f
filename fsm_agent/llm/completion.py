"""Reading chat completions, whole or in pieces, in the forms in which servers really send them. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_LONGEST_NAME = 200


class NoCompletion(ValueError):
    """The data is no chat completion; the text says why, and holds nothing of the data."""


@dataclass(slots=True)
class Completion:
    """What a server has sent of one answer. It grows piece by piece; a whole answer is one piece."""

    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    model: str = ""
    usage: object = None
    begun: bool = False
    """Whether anything of an answer has come."""
    _texts: list[str] = field(default_factory=list)
    _thoughts: list[str] = field(default_factory=list)
    _calls: dict[int, tuple[list[str], list[str]]] = field(default_factory=dict)
    """The pieces of the names and the arguments of calls of tools."""
    _refusals: list[str] = field(default_factory=list)

    def take(self, data: Any, key: str = "message") -> str:
        """Take one piece in (`key` is `delta` in a stream), and give the text that it adds. Raises NoCompletion."""
        if not isinstance(data, dict):
            raise NoCompletion("it is no JSON object")
        self.usage = data.get("usage") or self.usage
        if isinstance(data.get("model"), str):
            self.model = data["model"][:_LONGEST_NAME]
        choices = data.get("choices")
        if not isinstance(choices, list) or not (choices or key == "delta"):
            raise NoCompletion("it has no `choices`")
        for choice in choices:
            if not isinstance(choice, dict):
                raise NoCompletion("what stands in `choices` is no object")
            if choice.get("index") in (0, None):
                return self._take_choice(choice, key)
        return ""

    def _take_choice(self, choice: Mapping[str, Any], key: str) -> str:
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason[:_LONGEST_NAME]
        message = choice.get(key, choice.get("message"))
        if message is None and key == "delta":
            return ""
        if not isinstance(message, dict):
            raise NoCompletion("its first choice has no `message`")
        self.begun = True
        text, thought = map(whole, text_of(message.get("content")))
        self._texts.append(text)
        own_thought = message.get("reasoning_content") or message.get("reasoning")
        self._thoughts.append(whole(own_thought) if isinstance(own_thought, str) else thought)
        if isinstance(message.get("refusal"), str):
            self._refusals.append(whole(message["refusal"]))
        self._take_calls(message)
        return text

    def _take_calls(self, message: Mapping[str, Any]) -> None:
        calls = message.get("tool_calls")
        calls = list(calls) if isinstance(calls, list) else []
        if isinstance(message.get("function_call"), dict):  # the older form, of one call
            calls.append({"function": message["function_call"]})
        for place, call in enumerate(calls):
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                continue
            number = call.get("index", place)
            pieces = self._calls.setdefault(number if isinstance(number, int) else place, ([], []))
            for known, key in zip(pieces, ("name", "arguments"), strict=True):
                value = function.get(key)
                if value is not None:
                    known.append(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

    def finish(self) -> str:
        """Close the answer: `text` and `reasoning` are whole. Gives the text that comes last: what was not said
        in words, but as calls of tools, or as a refusal where there is no other answer.
        """
        spoken = "".join(self._texts)
        last = "\n".join(map(_call_text, self._calls.values()))
        if not spoken.strip() and not last:
            last = "".join(self._refusals)
        elif spoken and last:
            last = f"\n{last}"
        self.text = spoken + last
        self.reasoning = "".join(self._thoughts)
        return last


def text_of(content: object) -> tuple[str, str]:
    """The text and the thoughts in `content`: a text, a list of parts, or nothing."""
    if isinstance(content, str):
        return content, ""
    texts: list[str] = []
    thoughts: list[str] = []
    for part in content if isinstance(content, list) else []:
        kind = part.get("type", "text") if isinstance(part, dict) else "text"
        found = "".join(_part_texts(part))
        (thoughts if kind in ("thinking", "reasoning") else texts).append(found)
    return "".join(texts), "".join(thoughts)


def _part_texts(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for item in part:
            yield from _part_texts(item)
    elif isinstance(part, dict):
        for key in ("text", "value", "thinking", "reasoning"):
            if key in part:
                yield from _part_texts(part[key])
                return


def _call_text(call: tuple[list[str], list[str]]) -> str:
    """A call of a tool in words. Arguments that are JSON are data, others the text that they are."""
    name, arguments = map("".join, call)
    try:
        data = json.loads(arguments)
    except (ValueError, RecursionError):
        data = arguments  # what is cut or wrong is for the reader of the text to judge
    return whole(json.dumps({"name": name, "arguments": data}, ensure_ascii=False))


def whole(text: str) -> str:
    """The text with its halves of characters (lone surrogates) replaced: nothing could store or send them."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def error_in(data: Any) -> dict[str, Any] | None:
    """The error that stands where an answer should: some servers tell it with the status 200, or within a stream."""
    if not isinstance(data, dict):
        return None
    error = data.get("error")
    if isinstance(error, dict) and error:
        return error
    if isinstance(error, str) and error:
        return {"message": error}
    return data if data.get("object") == "error" or data.get("type") == "error" else None
