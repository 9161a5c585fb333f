"""The files below one folder, out of which no path leads: not by `..`, not by a link, and not in a race.

Folders are opened one below the other, each by a handle on the one above, and links are not followed. So it does not
matter what others put in place of a folder meanwhile. Systems without such handles get a check of the path beforehand.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fsm_agent.errors import FileError

_BY_HANDLE = {os.open, os.mkdir, os.stat, os.unlink, os.rename} <= os.supports_dir_fd


def _flags(*names: str) -> int:
    """Those of the flags that the system has."""
    found = 0
    for name in names:
        found |= getattr(os, name, 0)
    return found


_SAFELY = _flags("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")
_READ = os.O_RDONLY | _SAFELY | _flags("O_NONBLOCK", "O_NOCTTY")
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY
_ENTER = _SAFELY | _flags("O_DIRECTORY", "O_PATH")


class Root:
    """The folder, and what is done below it. Places are names, one below the other."""

    def __init__(self, folder: Path) -> None:
        self._spellings = (folder.resolve(), Path(os.path.abspath(folder)))  # noqa: PTH100 - as it was given: links stay
        self._folder = self._spellings[0]

    def place_of(self, path: str) -> tuple[str, ...]:
        """The place that a path means. Raises FileError for one that leads out of the root folder, or is no path."""
        if "\0" in path:
            raise FileError(f"{path!r} is no path that can be used")
        whole = Path(os.path.normpath(self._folder / path))  # without asking the disk: links are refused later
        for spelling in self._spellings:
            if whole.is_relative_to(spelling):
                return whole.relative_to(spelling).parts
        raise FileError(f"{path!r} leads out of the root folder", hint="give a path below it")

    def read(self, place: tuple[str, ...], most: int) -> tuple[bytes, int]:
        """The first bytes of a file, `most` of them, and how many it has in all. Raises OSError."""
        *folders, name = place or (".",)
        with _opened(self._folder, folders) as folder:
            _mode_of(folder, name)
            with os.fdopen(os.open(folder.at(name), _READ, dir_fd=folder.handle), "rb") as file:
                status = os.fstat(file.fileno())
                _check(status)
                return file.read(most), status.st_size

    def write(self, place: tuple[str, ...], data: bytes) -> None:
        """Make a file or replace it; readers see the old one or the new one. Missing folders are made. Raises OSError.

        It keeps its mode, but it can no longer be executed.
        """
        *folders, name = place or (".",)
        self._folder.mkdir(parents=True, exist_ok=True)
        with _opened(self._folder, folders, make=True) as folder:
            mode = _mode_of(folder, name, there=False)
            _replace(folder, name, data, mode)


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder by its handle, else by its path."""

    handle: int | None
    path: Path

    def at(self, name: str) -> str:
        """What a file in it is called, together with the handle."""
        return name if self.handle is not None else str(self.path / name)


@contextmanager
def _opened(root: Path, folders: list[str], *, make: bool = False) -> Iterator[_Folder]:
    path = root.joinpath(*folders)
    if not _BY_HANDLE:
        _check_path(path, make=make)
        yield _Folder(None, path)
        return
    handle = os.open(root, _ENTER)
    try:
        for name in folders:
            above, handle = handle, _entered(handle, name, make=make)
            os.close(above)
        yield _Folder(handle, path)
    finally:
        os.close(handle)


def _entered(above: int, name: str, *, make: bool) -> int:
    """A handle on a folder in the folder above."""
    try:
        return os.open(name, _ENTER, dir_fd=above)
    except FileNotFoundError:
        if not make:
            raise
    except OSError:
        if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            raise _link() from None
        raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=above)
    return os.open(name, _ENTER, dir_fd=above)


def _check_path(path: Path, *, make: bool) -> None:
    if path.resolve() != path:
        raise _link()
    if make:
        path.mkdir(parents=True, exist_ok=True)


def _mode_of(folder: _Folder, name: str, *, there: bool = True) -> int | None:
    """The mode of a file, None where there is none and none has to be. Raises OSError for what is no file."""
    try:
        status = os.stat(folder.at(name), dir_fd=folder.handle, follow_symlinks=False)
    except FileNotFoundError:
        if there:
            raise
        return None
    _check(status)
    return status.st_mode


def _check(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise _link()
    if stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no file")


def _link() -> OSError:
    return OSError(errno.ELOOP, "there is a symbolic link on the way, and links are not followed")


def _replace(folder: _Folder, name: str, data: bytes, mode: int | None) -> None:
    """Write beside the file, then put it in its place at once."""
    draft = folder.at(f".fsm-agent-{secrets.token_hex(8)}.tmp")
    try:
        with os.fdopen(os.open(draft, _CREATE, 0o666, dir_fd=folder.handle), "wb") as file:
            if mode is not None and folder.handle is not None:
                os.fchmod(file.fileno(), mode & 0o666)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, folder.at(name), src_dir_fd=folder.handle, dst_dir_fd=folder.handle)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder.handle)
        raise
