"""The colours that all renderers share. Each letter colour has a contrast of at least 4.5 to what it stands on."""

from __future__ import annotations

from dataclasses import dataclass

from fsm_agent.views.diagram.model import EdgeKind, Tone

INK = "#1f2328"
FAINT = "#57606a"


@dataclass(frozen=True, slots=True)
class Colours:
    """The colours of a node: its ground and its border."""

    fill: str
    line: str


FRAME = Colours("#fbfcfd", "#d0d7de")
"""What is round a cluster."""

NODE_COLOURS = {
    Tone.PLAIN: Colours("#f6f8fa", "#57606a"),
    Tone.WORK: Colours("#ddf4ff", "#0969da"),
    Tone.GOOD: Colours("#dafbe1", "#1a7f37"),
    Tone.BAD: Colours("#ffebe9", "#cf222e"),
    Tone.CAUTION: Colours("#fff8c5", "#9a6700"),
    Tone.MUTED: Colours("#eaeef2", "#57606a"),
}

FADED = "#d0d7de"
"""The colour of the line of an edge that was not taken."""

# A transition has the colour of the phase that it leads to.
EDGE_COLOURS = {
    EdgeKind.DEPENDENCY: "#424a53",
    EdgeKind.SOFT: "#424a53",
    EdgeKind.SUCCESS: "#1a7f37",
    EdgeKind.FAILURE: "#cf222e",
    EdgeKind.IMPLIED: "#848d97",
    EdgeKind.ROLLBACK: "#9a6700",
}
