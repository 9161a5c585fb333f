"""What is in a folder, so that others can tell whether a file is still the one that was written."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TypedDict

from fsm_agent import SkillContext, skill


class FileEntry(TypedDict):
    """A file: its name, its size, and a checksum of what is in it."""

    name: str
    bytes: int
    sha256: str


@skill(idempotent=True, retry_on=OSError)
def write_manifest(folder: Path, context: SkillContext, name: str = "manifest.json") -> list[FileEntry]:
    """List the files of a folder (not of those below it) in a JSON file there, with size and SHA-256 of each.

    Where the folder does not exist, nothing was written: the list is empty, and no file is made.
    """
    if not folder.is_dir():
        return []
    entries = [entry_of(path) for path in sorted(folder.iterdir()) if path.is_file() and path.name != name]
    text = json.dumps({"run_id": context.run_id, "files": entries}, indent=2, ensure_ascii=False)
    (folder / name).write_text(text + "\n", encoding="utf-8", newline="\n")
    return entries


def entry_of(path: Path) -> FileEntry:
    """The entry of one file."""
    content = path.read_bytes()
    return {"name": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
