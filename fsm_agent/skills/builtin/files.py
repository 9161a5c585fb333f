"""`read_file` and `write_file`: text files in one folder, and nowhere else."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from fsm_agent.errors import FileError, TooLarge
from fsm_agent.skills.builtin.names import is_hidden, is_loaded
from fsm_agent.skills.builtin.root import Root
from fsm_agent.skills.declaration import skill

MAX_BYTES = 10_000_000
"""The largest file that is read or written."""

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

FilePath = Annotated[str, Field(min_length=1, description="The file's path, below the root folder; nothing hidden")]


class Files:
    """The two skills, for one root folder."""

    def __init__(self, root: Path) -> None:
        self._root = Root(root)

    @skill(idempotent=True)
    def read_file(
        self,
        path: FilePath,
        as_json: Annotated[bool, Field(description="Read it as JSON, and return the data")] = False,
        max_bytes: Annotated[int, Field(gt=0, le=MAX_BYTES, description="A larger file is an error")] = 1_000_000,
    ) -> Any:
        """Return the text of a file (UTF-8) in the root folder, or its data if it is JSON and `as_json` is set."""
        text = self._read(path, max_bytes)
        if not as_json:
            return text
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise FileError(f"{path!r} is no JSON") from None

    @skill(idempotent=True, risk="medium", requires="file.write")
    def write_file(
        self,
        path: FilePath,
        content: Annotated[Any, Field(description="A text, or data to be written as JSON")],
    ) -> dict[str, Any]:
        """Write a file in the root folder, as a whole or not at all. Folders that are missing are made.

        Names of code and of settings are refused: what a plan writes must not be executed. Returns the file's path
        below the root folder, and its size in bytes.
        """
        place = self._place_of(path)
        for name in place:
            if is_loaded(name):
                raise FileError(
                    f"{path!r} cannot be written: {name!r} is a name that is loaded as code or as settings",
                    hint="give the file another name; code and settings are not for plans to write",
                )
        data = _bytes_of(path, content)
        try:
            self._root.write(place, data)
        except OSError as error:
            raise FileError(f"{path!r} cannot be written: {_why(error)}; what was there before is unchanged") from error
        return {"path": "/".join(place), "bytes": len(data)}

    def _read(self, path: str, max_bytes: int) -> str:
        try:
            data, size = self._root.read(self._place_of(path), max_bytes + 1)
        except OSError as error:
            raise FileError(f"{path!r} cannot be read: {_why(error)}") from error
        if len(data) > max_bytes:
            raise TooLarge(f"the file {path!r}", max(size, len(data)), max_bytes, "raise max_bytes")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise FileError(f"{path!r} is no UTF-8 text") from None

    def _place_of(self, path: str) -> tuple[str, ...]:
        """Where a path leads. Raises FileError when that is outside the root folder, or hidden."""
        place = self._root.place_of(path)
        for name in place:
            if is_hidden(name):
                raise FileError(
                    f"{path!r} is refused: {name!r} begins with a dot, so it is hidden",
                    hint="give a path without hidden files and folders; they are not for plans to read or write",
                )
        return place


def _bytes_of(path: str, content: Any) -> bytes:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise FileError(f"the content for {path!r} is no text: it holds half of a surrogate pair") from None
    if len(data) > MAX_BYTES:
        raise TooLarge(f"the content for {path!r}", len(data), MAX_BYTES, "write several files")
    return data


def _why(error: OSError) -> str:
    return "the disk is full" if error.errno in _FULL else (error.strerror or type(error).__name__).lower()
