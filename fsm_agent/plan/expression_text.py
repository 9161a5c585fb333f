"""The text of an expression until it is a tree: its length, its characters, its literals, its columns."""

from __future__ import annotations

import ast
import re
import unicodedata
from dataclasses import dataclass

from fsm_agent.errors import ConditionError, ExpressionSyntax, ExpressionTooComplex, ForbiddenExpression

MAX_LENGTH = 1_000

REFUSED_CHARACTERS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control, but for white space
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi: text that reads otherwise than it runs
    "\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff]"  # surrogates, private use
)

# An atomic group, which looks for no other way; `*+` would be the same, but Python 3.11.2 has a fault there.
_QUOTED = r"""(?P<quote>'''|\"{3}|'|")(?>(?:\\.|(?!(?P=quote)).)*)(?P=quote)"""
_LITERAL = re.compile(r"(?P<prefix>\b[A-Za-z]{1,2})?" + _QUOTED, re.DOTALL)
_BRACE_OR_QUOTE = re.compile(_QUOTED + r"""|(?P<mark>[{}"'])""", re.DOTALL)

# What Python warns about and may refuse one day: it must not depend on the filters of the process.
_ESCAPE = re.compile(r"\\(?:[4-7][0-7][0-7]|.)", re.DOTALL)
_GOOD_ESCAPES = frozenset("\\'\"abfnrtvxuUN01234567")
_NUMBER_AND_WORD = re.compile(r"\d[\w.]*(?:and|else|for|if|in|is|not|or)")
_NUMBERLIKE = re.compile(r"(?<![\w.])(?:0[xX]\w*|\.?\d(?:[eE][+-]\d|[\w.])*)")
_NUMBER = re.compile(
    r"0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:\d[\d_]*\.?[\d_]*|\.[\d_]+)(?:[eE][+-]?[\d_]+)?[jJ]?"
)

_MEANT = (("&&", "and"), ("||", "or"), ("!", "not"), ("=", "== to compare"))
_PLAIN_MARKS = str.maketrans("‘’“”。、", "''\"\".,")


@dataclass(frozen=True, slots=True)
class Source:
    """The text as it was given, the code in it, and where the code begins."""

    text: str
    code: str
    offset: int

    def column(self, place: int) -> int:
        """The 1-based column, in characters of the text, of a place in the code counted in UTF-8 bytes."""
        if not self.code.isascii():
            place = len(self.code.encode()[:place].decode(errors="ignore"))
        return self.offset + place + 1


def read(text: object) -> Source:
    """The text as a source that may be parsed. Raises ConditionError for what is refused before parsing."""
    if type(text) is not str:
        raise ExpressionSyntax(f"an expression is text, not {type(text).__name__}", hint="write it in quotes")
    if len(text) > MAX_LENGTH:
        raise ExpressionTooComplex(
            f"the expression has {len(text):,} characters; {MAX_LENGTH:,} are allowed",
            expression=text[:MAX_LENGTH],
            column=MAX_LENGTH + 1,
        )
    if not text.isprintable() and (bad := REFUSED_CHARACTERS.search(text)):
        raise refused_character(text, bad)
    code = text.strip()
    if not code:
        raise ExpressionSyntax("the expression is empty", expression=text, column=1)
    source = Source(text, code.replace("\n", " ").replace("\r", " "), text.index(code[0]))
    if "\\" in code or "#" in code or _NUMBER_AND_WORD.search(code):
        _check_literals(source)
    return source


def parse(source: Source) -> ast.expr:
    """The tree of a source, not checked yet. Raises ExpressionSyntax, ExpressionTooComplex."""
    try:
        return ast.parse(source.code, mode="eval").body
    except SyntaxError as error:
        raise _syntax_error(source, error) from None
    except (RecursionError, MemoryError):
        raise ExpressionTooComplex("the expression is nested too deep", expression=source.text) from None
    except ValueError:
        raise ExpressionSyntax("the text is no expression", expression=source.text) from None


def _syntax_error(source: Source, error: SyntaxError) -> ExpressionSyntax:
    place = error.offset or len(source.code) + 1
    at = source.code[place - 1 : place]
    plain = unicodedata.normalize("NFKC", at).translate(_PLAIN_MARKS)
    if plain != at and plain.isascii():
        hint = f"write {plain!r} instead of {at!r}"
    else:
        meant = next((word for sign, word in _MEANT if sign in source.code), None)
        hint = f"write {meant}" if meant else ""
    return ExpressionSyntax(
        f"not one expression: {error.msg}", expression=source.text, column=source.offset + place, hint=hint
    )


def refused_character(text: str, found: re.Match[str], column: int | None = None) -> ConditionError:
    """The error for a character that no expression may hold."""
    return ForbiddenExpression(
        f"the character U+{ord(found[0]):04X} is not allowed: it cannot be seen or changes how the text reads",
        expression=text,
        column=found.start() + 1 if column is None else column,
    )


def closing_brace(text: str, start: int) -> int:
    """Where the `}` stands that closes the brace opened just before `start`; -1 if there is none.

    Braces in string literals do not count. Linear in the length of the text.
    """
    depth = 1
    for found in _BRACE_OR_QUOTE.finditer(text, start):
        mark = found["mark"]
        if mark is None:
            continue
        if mark in "'\"":
            return -1  # this literal never ends; looking on would read the rest once for each quote
        depth += 1 if mark == "{" else -1
        if depth == 0:
            return found.start()
    return -1


def _check_literals(source: Source) -> None:
    """No comment, no escape that Python only warns about, no number that runs into a word."""
    for literal in _LITERAL.finditer(source.code):
        if "r" not in (literal["prefix"] or "").lower():
            _check_escapes(source, literal)
    bare = _LITERAL.sub(lambda literal: " " * len(literal[0]), source.code)
    if "#" in bare:
        raise _syntax(source, "comments are not allowed", bare.index("#"))
    for number in _NUMBERLIKE.finditer(bare):
        if not _NUMBER.fullmatch(number[0]):
            raise _syntax(source, "a number runs into what follows", number.start(), "put a space between them")


def _check_escapes(source: Source, literal: re.Match[str]) -> None:
    for escape in _ESCAPE.finditer(literal[0]):
        if len(escape[0]) > 2 or escape[0][1] not in _GOOD_ESCAPES:
            raise _syntax(source, "no such escape in a text", literal.start() + escape.start(), "write \\\\ for one \\")


def _syntax(source: Source, message: str, place: int, hint: str = "") -> ConditionError:
    return ExpressionSyntax(message, expression=source.text, column=source.offset + place + 1, hint=hint)
