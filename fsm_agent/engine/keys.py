"""The key of digests over secrets. It is kept beside the store, never in it."""

from __future__ import annotations

import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

LENGTH: Final = 32

_log = logging.getLogger("fsm_agent.engine")


class DigestKey:
    """Given, or kept in a file that is made when it is first needed. Without either it is this process's own: what
    was approved with a secret in it must then be approved anew in another process.
    """

    def __init__(self, given: bytes | None = None, file: Path | None = None) -> None:
        self._key = given or None
        self._file = file

    def __call__(self) -> bytes:
        """The key."""
        if self._key is None:
            self._key = _kept_in(self._file) if self._file is not None else secrets.token_bytes(LENGTH)
        return self._key


def _kept_in(file: Path) -> bytes:
    """The key in a file, which only its owner may read. Of two processes that make it at once, one does."""
    fresh = secrets.token_bytes(LENGTH)
    try:
        with suppress(FileExistsError):
            _make(file, fresh)
        return bytes.fromhex(file.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        _log.warning("%s cannot be used (%s): approvals with secrets will be asked anew", file, type(error).__name__)
        return fresh


def _make(file: Path, key: bytes) -> None:
    if file.exists():
        return
    draft = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as written:
        written.write(key.hex())
    try:
        os.link(draft, file)  # all of it or nothing, and never over another's
    finally:
        draft.unlink()
