"""`read_file` and `write_file`: text files in one folder, and nowhere else."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from fsm_agent.errors import FileError, TooLarge
from fsm_agent.skills.declaration import skill

MAX_BYTES = 10_000_000
"""The largest file that is read or written."""

_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

FilePath = Annotated[str, Field(min_length=1, description="The file's path, below the root folder")]


class Files:
    """The two skills, for one root folder."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    @skill(idempotent=True)
    def read_file(
        self,
        path: FilePath,
        as_json: Annotated[bool, Field(description="Read it as JSON, and return the data")] = False,
        max_bytes: Annotated[int, Field(gt=0, le=MAX_BYTES, description="A larger file is an error")] = 1_000_000,
    ) -> Any:
        """Return the text of a file (UTF-8) in the root folder, or its data if it is JSON and `as_json` is set."""
        text = _read(path, self._inside(path), max_bytes)
        if not as_json:
            return text
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise FileError(f"{path!r} is no JSON") from None

    @skill(idempotent=True, risk="medium")
    def write_file(
        self,
        path: FilePath,
        content: Annotated[Any, Field(description="A text, or data to be written as JSON")],
    ) -> dict[str, Any]:
        """Write a file in the root folder, as a whole or not at all. Folders that are missing are made.

        Returns its path below the root folder, and its size in bytes.
        """
        target = self._inside(path)
        data = _bytes_of(path, content)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_dir():
                raise FileError(f"{path!r} is a folder")
            _replace(target, data)
        except OSError as error:
            raise FileError(f"{path!r} cannot be written: {_why(error)}; what was there before is unchanged") from error
        return {"path": target.relative_to(self._root).as_posix(), "bytes": len(data)}

    def _inside(self, path: str) -> Path:
        """Where a path leads, symbolic links followed. Raises FileError when that is outside the root folder."""
        try:
            target = (self._root / path).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise FileError(f"{path!r} is no path that can be used") from error
        if not target.is_relative_to(self._root):
            raise FileError(f"{path!r} leads out of the root folder", hint="give a path below it")
        return target


def _read(path: str, target: Path, max_bytes: int) -> str:
    try:
        with os.fdopen(os.open(target, _READ), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FileError(f"{path!r} is no file")
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise FileError(f"{path!r} cannot be read: {_why(error)}") from error
    if len(data) > max_bytes:
        raise TooLarge(f"the file {path!r}", max(status.st_size, len(data)), max_bytes, "raise max_bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(f"{path!r} is no UTF-8 text") from None


def _bytes_of(path: str, content: Any) -> bytes:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise FileError(f"the content for {path!r} is no text: it holds half of a surrogate pair") from None
    if len(data) > MAX_BYTES:
        raise TooLarge(f"the content for {path!r}", len(data), MAX_BYTES, "write several files")
    return data


def _replace(target: Path, data: bytes) -> None:
    """Write beside the target, then put it in its place at once: a reader sees the old file or the new one."""
    draft = target.parent / f".fsm-agent-{secrets.token_hex(8)}.tmp"
    try:
        with os.fdopen(os.open(draft, _CREATE, 0o666), "wb") as file:
            with suppress(FileNotFoundError):
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _why(error: OSError) -> str:
    return "the disk is full" if error.errno in _FULL else (error.strerror or type(error).__name__).lower()
