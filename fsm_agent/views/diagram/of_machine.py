"""The picture of the machine, drawn from the rows of its own table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from fsm_agent.core.machine import FINAL, PHASES, TABLE
from fsm_agent.views.diagram.model import Caption, Diagram, Edge, EdgeKind, Node, NodeKind, Tone


class Row(Protocol):
    """One row of the table: the trigger, where from, where to, and the guard's name (empty where there is none)."""

    @property
    def trigger(self) -> str:
        """What fires it."""

    @property
    def source(self) -> str:
        """The phase that it leaves."""

    @property
    def dest(self) -> str:
        """The phase that it leads to."""

    @property
    def guard(self) -> str | None:
        """The name of the predicate that must hold, if there is one."""


_TONES = {
    "idle": Tone.MUTED,
    "paused": Tone.CAUTION,
    "completed": Tone.GOOD,
    "failed": Tone.BAD,
    "cancelled": Tone.MUTED,
}


def of_machine(rows: Sequence[Row] = TABLE, phases: Sequence[str] = PHASES, final: Collection[str] = FINAL) -> Diagram:
    """The picture of a machine: one edge for each pair of phases, with a caption for each row between them.

    The first phase is where runs begin.
    """
    choices = Counter((row.source, row.trigger) for row in rows)
    captions: dict[tuple[str, str], list[Caption]] = {}
    for row in rows:
        otherwise = "otherwise" if choices[row.source, row.trigger] > 1 else ""
        guard = row.guard or otherwise
        captions.setdefault((row.source, row.dest), []).append(Caption(row.trigger, f"[{guard}]" if guard else ""))
    place = {phase: number for number, phase in enumerate(phases)}
    return Diagram(
        title="The phases of a run",
        nodes=tuple(_node(phase, phase in final) for phase in phases),
        edges=tuple(_edge(source, dest, between, place) for (source, dest), between in captions.items()),
        initial=phases[0],
    )


def _node(phase: str, final: bool) -> Node:
    kind = NodeKind.FINAL if final else NodeKind.PHASE
    return Node(phase, (phase,), kind=kind, tone=_tone(phase))


def _tone(phase: str) -> Tone:
    return _TONES.get(phase, Tone.WORK)


def _edge(source: str, dest: str, captions: Iterable[Caption], place: Mapping[str, int]) -> Edge:
    main = place[source] < place[dest] and _tone(dest) in (Tone.WORK, Tone.GOOD)
    return Edge(source, dest, EdgeKind.TRANSITION, tuple(captions), main=main)
