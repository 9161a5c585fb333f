"""Secrets out of what is shown, logged or kept: known values wherever they stand, and what well-known names hold.

Pure and total: whatever it is given, it gives something back, and it never changes what it got.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from fsm_agent.forms import forms_of, leaves_of, number_text

MASK = "***"
"""What stands where a secret was."""

# Names as they look without separators and in lower case: db_password, X-Api-Key and clientSecret all end in one.
_SECRET_NAME = re.compile(
    r"(?:password|passwd|passphrase|pwd|secret|token|apikey|privatekey|accesskey|secretkey|credentials?|authorization"
    r"|cookies?)$|^session(?:id|key)?$"
)

_NAME = (
    r"(?<![\w.-])([\w.-]*(?:pass(?:word|wd|phrase)|pwd|secret|token|(?:api|private|access|secret)[-_]?key|credentials?"
    r"|session[-_]?(?:id|key)|session(?==)))"
)
_IS = r"""(\\*["']?\s*[:=]\s*)"""
_QUOTED = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\\+["'][^"'\\]*\\+["']"""
_PATTERNS = (
    re.compile(rf"((?:set-)?cookie|authorization){_IS}({_QUOTED}|[^\r\n]+)", re.IGNORECASE),
    re.compile(rf"""{_NAME}{_IS}({_QUOTED}|[^\s,;&"'<>()\[\]{{}}\\]+)""", re.IGNORECASE),
    re.compile(r"\b(bearer)(\s+)([\w.~+/=-]+)", re.IGNORECASE),
    re.compile(r"\b((?i:basic))(\s+)(?=[A-Za-z]*(?:[\d+/=]|[a-z][A-Z]))([\w+/=-]{8,})"),
    re.compile(r"(\w://[^\s/:@]*)(:)([^\s/@]+)(?=@)"),
    re.compile(r"(-----BEGIN [A-Z ]*)(PRIVATE KEY-----)(.*?)(?=-----END|\Z)", re.DOTALL),
)
# A text in which none of these stands is matched by none of the patterns. Searching for them is much faster.
_HINTS = (
    "passw", "passphrase", "pwd", "secret", "token", "key", "credential", "authoriz", "cookie", "session", "bearer",
    "basic", "://",
)  # fmt: skip
_SHORTEST = 5
_DEEPEST = 100
_LONGEST_NAME = 64


class Redactor:
    """Replaces secrets by ***: the given values (also within longer texts), and what is named like a secret."""

    def __init__(self, secrets: Iterable[Any] = (), *, names: bool = True) -> None:
        """`secrets` are JSON values; the texts and numbers within them count. Booleans and None are no secrets.

        One of less than 4 characters is masked where it is the whole value: within texts it would mask what only
        looks like it. `names` says whether what is named like a secret counts as one.
        """
        found = [form for secret in secrets for leaf in leaves_of(secret) for form in forms_of(leaf)]
        self._exact = frozenset(form.text for form in found)
        self._names = names
        forms = sorted({form.text for form in found if form.within}, key=lambda text: (-len(text), text))
        self._forms = tuple(forms)
        self._known = re.compile("|".join(map(re.escape, forms)))

    def text(self, text: str) -> str:
        """The text without secrets."""
        if text in self._exact:
            return MASK
        if any(form in text for form in self._forms):
            text = self._known.sub(MASK, text)
        if len(text) < _SHORTEST or not self._names:
            return text
        lower = text.lower()
        if any(hint in lower for hint in _HINTS):
            for pattern in _PATTERNS:
                text = pattern.sub(_masked, text)
        return text

    def value(self, value: Any) -> Any:
        """The value without secrets: the very same where it holds none, else a copy of the parts that do.

        What is no JSON data becomes a text.
        """
        return self._value(value, ())

    def _value(self, value: Any, above: tuple[int, ...]) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            return MASK if self._exact and self._is_secret(value) else value
        if id(value) in above or len(above) >= _DEEPEST:
            return MASK
        return self._whole(value, (*above, id(value)))

    def _is_secret(self, number: int | float) -> bool:
        text = number_text(number)
        return text in self._exact or any(form in text for form in self._forms)

    def _whole(self, value: Any, above: tuple[int, ...]) -> Any:
        try:
            if isinstance(value, Mapping):
                return self._mapping(value, above)
            if isinstance(value, (list, tuple, set, frozenset)):
                return self._items(value, above)
            return self.text(repr(value))
        except Exception:  # noqa: BLE001 - a value whose own code fails must not break what only shows it
            return f"<{type(value).__name__}>"

    def _mapping(self, value: Mapping[Any, Any], above: tuple[int, ...]) -> Mapping[Any, Any]:
        changed = {}
        same = True
        for key, item in value.items():
            new_key = self.text(key) if isinstance(key, str) else key
            new_item = MASK if self._names and _hides(key, item) else self._value(item, above)
            same = same and new_key is key and new_item is item
            changed[new_key] = new_item
        return value if same else changed

    def _items(self, value: Any, above: tuple[int, ...]) -> Any:
        items = [self._value(item, above) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return tuple(items) if isinstance(value, tuple) else items


def _masked(match: re.Match[str]) -> str:
    name, between, hidden = match.groups()
    quotes = re.match(r"""\\*["']""", hidden)
    mark = quotes.group() if quotes else ""
    return f"{name}{between}{mark}{MASK}{mark}"


def _hides(key: Any, item: Any) -> bool:
    """Whether a key is named like a secret and has one: a flag such as `secret: true` is none."""
    if item is None or isinstance(item, bool) or item == "" or not isinstance(key, str):
        return False
    return is_secret_name(key[-_LONGEST_NAME:])


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a key is named like a secret, in any of the usual spellings."""
    return _SECRET_NAME.search(re.sub(r"[\W_]", "", name).lower()) is not None
