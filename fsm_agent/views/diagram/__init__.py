"""Diagrams of the machine, of plans and of runs: a neutral model of the picture, and a renderer for each format."""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal, get_args

from fsm_agent.errors import DiagramError
from fsm_agent.views.diagram.dot import to_dot
from fsm_agent.views.diagram.graphviz_renderer import draw
from fsm_agent.views.diagram.mermaid import to_mermaid
from fsm_agent.views.diagram.model import Diagram
from fsm_agent.views.diagram.of_machine import of_machine
from fsm_agent.views.diagram.of_plan import of_plan
from fsm_agent.views.diagram.of_run import of_run

__all__ = [
    "FORMATS", "Diagram", "Format", "format_of", "of_machine", "of_plan", "of_run", "render", "to_dot",
    "to_mermaid",
]  # fmt: skip

Format = Literal["dot", "mermaid", "svg", "png"]

FORMATS: tuple[Format, ...] = get_args(Format)
"""The formats that there are; the first two are text and need nothing installed."""

_ENDINGS: dict[str, Format] = {
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".svg": "svg",
    ".png": "png",
}


def format_of(path: str | PurePath) -> Format:
    """The format that a file's ending asks for. Raises DiagramError for any other ending."""
    ending = PurePath(path).suffix.lower()
    if ending not in _ENDINGS:
        raise DiagramError(
            f"no format goes with the ending {ending!r}" if ending else "the file has no ending that tells the format",
            hint=f"end it in {', '.join(_ENDINGS)}, or say --format {'|'.join(FORMATS)}",
        )
    return _ENDINGS[ending]


def render(diagram: Diagram, form: Format, *, timeout: float = 60.0) -> bytes:
    """The picture in one of the formats, as the bytes of a file; text is UTF-8.

    Raises DiagramError where the format needs Graphviz and it is not there, fails, or takes over `timeout` seconds.
    """
    if form == "mermaid":
        return to_mermaid(diagram).encode()
    text = to_dot(diagram)
    return text.encode() if form == "dot" else draw(text, form, timeout=timeout)
