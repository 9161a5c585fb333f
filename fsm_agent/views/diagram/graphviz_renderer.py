"""The renderer that needs Graphviz: DOT text as an SVG or PNG picture, drawn by the program where there is one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from fsm_agent.errors import DiagramError

Picture = Literal["svg", "png"]

PROGRAMS = ("dot", "graphviz-pure")
"""The programs that can draw, in the order in which they are looked for."""

_OPTIONS = {"svg": (), "png": ("-Gdpi=144",)}


def draw(dot: str, picture: Picture, *, timeout: float = 60.0, programs: Sequence[str] = PROGRAMS) -> bytes:
    """The picture of DOT text, as the bytes of a file.

    Raises DiagramError where there is no Graphviz, where it fails, and where it takes longer than `timeout` seconds.
    """
    program = _find(programs)
    command = [program, f"-T{picture}", *_OPTIONS[picture]]
    try:
        done = subprocess.run(command, input=dot.encode(), capture_output=True, timeout=timeout, check=False)  # noqa: S603 - no shell, and no argument comes from a plan
    except subprocess.TimeoutExpired:
        raise DiagramError(
            f"Graphviz did not finish within {timeout:g} seconds",
            hint="the picture may be too large for it: take the formats dot or mermaid, or a smaller plan",
        ) from None
    except OSError as error:
        raise DiagramError(f"Graphviz could not be started: {type(error).__name__}", hint=_INSTALL) from error
    if done.returncode != 0 or not done.stdout:
        raise DiagramError(
            f"Graphviz failed with exit code {done.returncode}",
            hint="write the format dot instead and see what `dot` says about it",
        )
    return done.stdout


_INSTALL = (
    "install it (apt-get install graphviz, brew install graphviz, winget install graphviz, or pip install "
    "graphviz-pure) and have it on the PATH; the formats dot and mermaid need nothing"
)


def _find(programs: Sequence[str]) -> str:
    """The first of the programs on the PATH, or beside the running Python: there pip puts what it installs."""
    beside = str(Path(sys.executable).parent)
    for name in programs:
        found = shutil.which(name) or shutil.which(name, path=beside)
        if found:
            return found
    raise DiagramError("SVG and PNG need Graphviz, and none was found", hint=_INSTALL)
