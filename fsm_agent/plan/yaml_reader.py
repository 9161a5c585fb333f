"""Reading YAML as what it is taken for: JSON with less punctuation.

Only the parser of PyYAML is used (its events), none of its guesses: `no`, `0123` and `2020-01-01` stay text, a tag is
refused, and an alias is a bounded copy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml

from fsm_agent.plan.findings import Finding
from fsm_agent.plan.json_reader import (
    HALF_CHARACTER,
    MAX_DEPTH,
    MAX_VALUES,
    Parsed,
    oversized,
    too_deep,
    too_much,
    unfit_leaves,
)
from fsm_agent.plan.places import Token
from fsm_agent.plan.spellings import Written, unwritten

MAX_ALIASED = 100_000
"""How many pieces of text all aliases together may stand for. Otherwise a few lines can stand for billions."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = {"": None, "~": None, "null": None}
_TRUTHS = {"true": True, "false": False}


class _Refused(Exception):
    """The text is no plan's YAML, for the reason that the finding gives. Never leaves `read_yaml`."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def read_yaml(text: str) -> Parsed:
    """The data of a YAML text, numbers as Written. Raises nothing: what is wrong is among the findings."""
    parsed = Parsed()
    tokens = yaml_tokens(text)
    try:
        first = next(tokens, None)
        if first is None:
            return Parsed(findings=[Finding("bad_syntax", (), "the file is empty", hint="a plan has `tasks`", line=1)])
        parsed.data = _data(first, tokens, parsed)
        for _ in tokens:  # what follows a document is read too: it may be a second one
            pass
    except _Refused as refused:
        return Parsed(findings=[refused.finding])
    if (oversize := oversized(parsed.data)) is not None:
        return Parsed(findings=[oversize])
    if parsed.is_odd or HALF_CHARACTER.search(text):
        parsed.findings.extend(unfit_leaves(unwritten(parsed.data)))
    return parsed


def yaml_tokens(text: str) -> Iterator[Token]:
    """The pieces of a YAML text, aliases replaced by what they stand for. Well-formed where `read_yaml` found it so."""
    try:
        yield from _Reader(text).tokens()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if mark and "nesting depth" in (error.problem or ""):
            raise _Refused(too_deep(mark.line + 1, mark.column + 1)) from None
        if _has_tab(text, mark):
            _refuse("bad_syntax", "this is no YAML: a tab stands in the indentation", mark, "indent with blanks")
        why = ", ".join(part for part in (error.context, error.problem) if part)
        _refuse("bad_syntax", f"this is no YAML: {why}", mark)
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        raise _Refused(Finding("bad_syntax", (), f"this is no YAML: {error.reason}", line=line)) from None


def _has_tab(text: str, mark: Any) -> bool:
    """Whether the line of the mark is indented by a tab."""
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    return "\t" in line[: len(line) - len(line.lstrip())]


class _Reader:
    """One pass over the events of the parser."""

    def __init__(self, text: str) -> None:
        self.events = yaml.parse(text, Loader=_LOADER)
        self.open: list[str] = []
        """The containers around, from the outside in: `[`, `{` (a key comes next) or `:` (its value comes next)."""
        self.documents = 0
        self.values = 0
        self.anchored = _Anchored()

    def tokens(self) -> Iterator[Token]:
        for event in self.events:
            if isinstance(event, yaml.NodeEvent):
                yield from self._node(event)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                kind = "}" if isinstance(event, yaml.MappingEndEvent) else "]"
                yield self._token(kind, None, event.start_mark)
            elif isinstance(event, yaml.DocumentStartEvent):
                self.documents += 1
                if self.documents > 1:
                    _refuse("bad_syntax", "a plan file holds one document; here begins another", event.start_mark)

    def _node(self, event: Any) -> Iterator[Token]:
        is_key = self.open[-1:] == ["{"]
        mark = event.start_mark
        if getattr(event, "tag", None) is not None:
            _refuse("unsafe_yaml", "tags are not read", mark, "remove it; quote what is to be text")
        if is_key:
            yield self._key(event)
        elif isinstance(event, yaml.AliasEvent):
            for token in self.anchored.copy(str(event.anchor), mark):
                yield self._passed(token)
        else:
            if event.anchor is not None:
                self.anchored.begin(event.anchor, len(self.open))
            if isinstance(event, yaml.ScalarEvent):
                yield self._token("scalar", _scalar(event), mark)
            else:
                yield self._token("{" if isinstance(event, yaml.MappingStartEvent) else "[", None, mark)

    def _key(self, event: Any) -> Token:
        mark = event.start_mark
        if not isinstance(event, yaml.ScalarEvent):
            _refuse("bad_syntax", "a key must be text", mark)
        if event.anchor is not None or (event.value == "<<" and event.implicit[0]):
            _refuse("unsafe_yaml", "merge keys and anchors on keys are not read", mark, "write out what is meant")
        return self._token("key", event.value, mark)

    def _token(self, kind: Any, value: Any, mark: Any) -> Token:
        return self._passed(Token(kind, value, mark.line + 1, mark.column + 1))

    def _passed(self, token: Token) -> Token:
        """Keep the books on one token, new or copied."""
        kind = token.kind
        if kind in ("}", "]"):
            self.open.pop()
        if kind == "key":
            self.open[-1] = ":"
        elif kind in ("{", "["):
            self.open.append(kind)
            if len(self.open) > MAX_DEPTH:
                raise _Refused(too_deep(token.line, token.column))
        elif self.open[-1:] == [":"]:  # that was the value of a key
            self.open[-1] = "{"
        self.values += kind in ("scalar", "{", "[")
        if self.values > MAX_VALUES:
            raise _Refused(too_much())
        self.anchored.pass_on(token, len(self.open))
        return token


class _Anchored:
    """The pieces of a text that have an anchor, kept for its aliases."""

    def __init__(self) -> None:
        self.left = MAX_ALIASED
        self.begun: list[tuple[str, int, int]] = []
        """Anchors whose node is not over yet: name, first token, depth."""
        self.tokens: list[Token] = []
        self.kept: dict[str, tuple[list[Token], int, int]] = {}

    def begin(self, anchor: str, depth: int) -> None:
        """The next token is the first of a node with this anchor."""
        self.kept.pop(anchor, None)
        self.begun.append((anchor, len(self.tokens), depth))

    def pass_on(self, token: Token, depth: int) -> None:
        """Take note of a token, after which this many containers are open."""
        if not self.begun:
            return
        self.tokens.append(token)
        while self.begun and self.begun[-1][2] == depth:
            anchor, start, _ = self.begun.pop()
            self.kept[anchor] = (self.tokens, start, len(self.tokens))
        if not self.begun:
            self.tokens = []

    def copy(self, anchor: str, mark: Any) -> Iterator[Token]:
        """The tokens of the node with this anchor."""
        if anchor not in self.kept:
            _refuse("unsafe_yaml", "an alias stands for something that is not there, or for what it is a part of", mark)
        tokens, start, end = self.kept[anchor]
        self.left -= end - start
        if self.left < 0:
            _refuse("unsafe_yaml", "the aliases stand for too much", mark, "write out what is meant")
        for place in range(start, end):
            yield tokens[place]


def _refuse(rule: str, message: str, mark: Any, hint: str = "") -> NoReturn:
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    raise _Refused(Finding(rule, (), message, hint=hint, line=line, column=column)) from None


def _scalar(event: Any) -> Any:
    """A plain scalar as JSON would read it; all else is text."""
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return None
    if text in _TRUTHS:
        return Written(_TRUTHS[text], text)
    number = _NUMBER.fullmatch(text)
    return Written(_number(text, whole=not any(number.groups())), text) if number else text


def _number(text: str, *, whole: bool) -> int | float:
    try:
        return int(text) if whole else float(text)
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        return math.inf


def _data(token: Token, tokens: Iterator[Token], parsed: Parsed) -> Any:
    if token.kind == "{":
        mapping: dict[str, Any] = {}
        for key in tokens:
            if key.kind == "}":
                break
            parsed.has_duplicates |= key.value in mapping
            mapping[key.value] = _data(next(tokens), tokens, parsed)
        return mapping
    if token.kind == "[":
        items: list[Any] = []
        for item in tokens:
            if item.kind == "]":
                break
            items.append(_data(item, tokens, parsed))
        return items
    parsed.is_odd |= type(token.value) is Written and token.value.value == math.inf
    return token.value
