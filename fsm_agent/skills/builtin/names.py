"""Names that the file skills refuse, for plans are not trusted: hidden ones, and those of code and of settings."""

from __future__ import annotations

import re
import unicodedata

_CODE = re.compile(
    r"\.(?:py[cdowz]?|pyzw|so(?:\.\d+)*|dll|dylib|_?pth|whl|egg|egg-link|egg-info|dist-info|pkl|pickle)$|^__pycache__$"
)
"""What Python imports, reads when it starts, unpacks or unpickles. Folders count: packages are announced in some."""

_SETTINGS = re.compile(
    r"^(?:(?:pyproject|pylock|pytest|poetry|hatch|pdm|ruff|uv|ty)\.toml|(?:pytest|tox|mypy|pip)\.ini|pip\.conf"
    r"|(?:setup|pyvenv)\.cfg|pipfile|(?:pipfile|poetry|pdm|uv)\.lock|(?:requirements|constraints)\.(?:txt|in))$"
)
"""What this tool, Python or the tools around it are set up by, code to be installed included."""


def is_hidden(name: str) -> bool:
    """Whether a file or folder of that name is hidden, as `.env` and `.git` are."""
    return _as_systems_read_it(name).startswith(".")


def is_loaded(name: str) -> bool:
    """Whether a Python program or this tool would load a file or folder of that name as code or as settings."""
    return any(_CODE.search(part) or _SETTINGS.search(part) for part in _as_systems_read_it(name).split(":"))


def _as_systems_read_it(name: str) -> str:
    """Some systems know no case, drop dots and blanks at the end, or skip what is not seen; `:` begins a stream."""
    seen = "".join(each for each in unicodedata.normalize("NFC", name) if unicodedata.category(each) != "Cf")
    return ":".join(part.rstrip(". ") or part for part in seen.casefold().split(":"))
