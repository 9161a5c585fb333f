"""Who drives a run: a process, named so that another process can tell whether it is still there."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

from fsm_agent.journal.records import RunHead


class Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """One engine in one process."""

    id: str
    """Unique: two engines of one process are two owners."""
    host: str = ""
    """The machine, with what tells its boots and its containers apart."""
    pid: int = 0
    started: str = ""
    """When the process began, as the system counts it: pids are used again."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.partition('/')[0]}"

    def to_text(self) -> str:
        """As a store keeps it."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def of_text(text: str) -> Owner:
        """The owner that `to_text` wrote; for a text that is none, an owner of that name."""
        try:
            return msgspec.json.decode(text, type=Owner)
        except (msgspec.MsgspecError, UnicodeError):
            return Owner(id=text)


def this_process(owner_id: str) -> Owner:
    """An owner in the present process."""
    pid = os.getpid()
    return Owner(owner_id, _host(), pid, _started(pid) or "")


def is_gone(owner: Owner) -> bool:
    """Whether the owner's process has ended for certain. Nothing is certain of another machine or container."""
    if not owner.started or owner.host != _host():
        return False
    started = _started(owner.pid)
    return started != owner.started if started is not None else _no_such_process(owner.pid)


def driver_of(head: RunHead, now: float) -> Owner | None:
    """Who drives the run at the moment, as far as one can tell: None where that was given up, the lease ran out, or the
    driver is gone for certain.
    """
    if head.driver is None or head.until <= now:
        return None
    owner = Owner.of_text(head.driver)
    return None if is_gone(owner) else owner


def _host() -> str:
    parts = [socket.gethostname(), _read("/proc/sys/kernel/random/boot_id") or ""]
    try:
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:
        parts.append("")
    return "/".join(parts)


def _started(pid: int) -> str | None:
    """The 22nd field of /proc/PID/stat (proc(5)): ticks since the boot. None where that cannot be told.

    A process that has ended, and that nobody has asked about yet (a zombie), counts as begun at another time.
    """
    stat = _read(f"/proc/{pid}/stat")
    if stat is None:
        return None
    fields = stat.rpartition(")")[2].split()
    if len(fields) < 20:
        return None
    return "ended" if fields[0] in "ZX" else fields[19]


def _no_such_process(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
