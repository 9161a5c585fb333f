"""Text of unknown origin, made fit to be shown: on one line, harmless to a terminal, cut to a width in columns."""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells, set_cell_size

# What moves a cursor, colours a terminal, reverses the reading direction, is invisible, or is no character at all.
# Joiners (U+200C, U+200D) and variation selectors stay: Persian, Indic scripts and emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\U000e0000-\U000e007f]"
)
_PARTS = re.compile(r"[^._/,:)\]-]*[._/,:)\]-]+|[^._/,:)\]-]+")


def one_line(text: str) -> str:
    """The text on one line: runs of white space become one space, and what a terminal would obey becomes visible."""
    if text.isprintable() and "  " not in text:
        return text.strip()
    return harmless(" ".join(text.split()))


def harmless(text: str) -> str:
    """The text on its lines, with all else that a terminal would obey made visible."""
    return text if text.isprintable() else _UNSAFE.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "\N{REPLACEMENT CHARACTER}"


def width(text: str) -> int:
    """How many columns of a terminal the text takes: two for a Chinese character."""
    return len(text) if text.isascii() else cell_len(text)


def clip(text: str, columns: int) -> str:
    """The text, cut to so many columns, with an ellipsis where something was cut."""
    if width(text) <= columns:
        return text
    return set_cell_size(text, max(0, columns - 1)).rstrip() + "…"


def pad(text: str, columns: int) -> str:
    """The text with blanks after it up to so many columns; never cut."""
    return text + " " * (columns - width(text))


def wrap(text: str, columns: int, most: int) -> tuple[str, ...]:
    """The text on at most `most` lines of at most so many columns; an ellipsis where something was left out."""
    if width(text) <= columns:
        return (text,)
    lines = _lines(text, columns)
    if len(lines) > most:
        lines[most - 1 :] = [clip(lines[most - 1] + "…", columns)]
    return tuple(lines)


def _lines(text: str, columns: int) -> list[str]:
    lines: list[str] = []
    for word in text.split(" "):
        if lines and width(lines[-1]) + 1 + width(word) <= columns:
            lines[-1] += " " + word
        else:
            lines += _pieces(word, columns)
    return lines


def _pieces(word: str, columns: int) -> list[str]:
    """A word in pieces of at most so many columns, broken after punctuation where there is some."""
    if width(word) <= columns:
        return [word]
    pieces = [""]
    for part in _PARTS.findall(word):
        for chunk in chop_cells(part, columns):
            if width(pieces[-1]) + width(chunk) <= columns:
                pieces[-1] += chunk
            else:
                pieces.append(chunk)
    return pieces
