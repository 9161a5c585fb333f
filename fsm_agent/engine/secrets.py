"""What a run must not tell: the secret inputs that it was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsm_agent.redaction import Redactor
from fsm_agent.skills.outcomes import cut

_NO_SECRETS = Redactor()


class Secrets:
    """Takes the secrets of one run out of what is recorded. Without secret inputs, well-known names still count."""

    __slots__ = ("_known", "_redactor")

    def __init__(self) -> None:
        self._redactor = _NO_SECRETS
        self._known: Redactor | None = None

    def keep(self, secrets: Mapping[str, Any]) -> None:
        """From now on, these are to be kept."""
        if secrets:
            self._redactor = Redactor(secrets.values())
            self._known = Redactor(secrets.values(), names=False)

    def known_out_of(self, value: Any) -> Any:
        """Plain data without the secret inputs; what is only named like a secret stays."""
        return value if self._known is None else self._known.value(value)

    def out_of(self, value: Any) -> Any:
        """Plain data without anything secret."""
        return self._redactor.value(value)

    def out_of_text(self, text: str) -> str:
        """A text without anything secret, then cut to the length of a message: half a secret is one too."""
        return cut(self._redactor.text(text))
