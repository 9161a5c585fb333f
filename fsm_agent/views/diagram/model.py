"""A picture as data: nodes, edges and clusters, with what they are and not how they look.

The texts of a picture are of unknown origin. Only a renderer knows what must be escaped where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class NodeKind(StrEnum):
    """What a node stands for."""

    TASK = "task"
    DECISION = "decision"
    FINALIZER = "finalizer"
    PHASE = "phase"
    FINAL = "final"


class Tone(StrEnum):
    """What a node's colour tells."""

    PLAIN = "plain"
    WORK = "work"
    GOOD = "good"
    BAD = "bad"
    CAUTION = "caution"
    MUTED = "muted"


class EdgeKind(StrEnum):
    """What an edge stands for."""

    DEPENDENCY = "dependency"
    SOFT = "soft"
    SUCCESS = "success"
    FAILURE = "failure"
    IMPLIED = "implied"
    ROLLBACK = "rollback"
    TRANSITION = "transition"


@dataclass(frozen=True, slots=True)
class Node:
    """One node. `key` is unique in its picture; `title`, `doer` (who does it) and `notes` are lines of text to show."""

    key: str
    title: tuple[str, ...]
    doer: str = ""
    notes: tuple[str, ...] = ()
    kind: NodeKind = NodeKind.TASK
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Caption:
    """What is said at an edge, and in fainter letters a note to it."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge between the nodes of these keys.

    A `back` edge jumps back and has no say in the layout; `main` ones lie on the way that all goes well; `faded`
    ones are known not to be taken.
    """

    source: str
    target: str
    kind: EdgeKind = EdgeKind.DEPENDENCY
    captions: tuple[Caption, ...] = ()
    back: bool = False
    main: bool = False
    faded: bool = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes that belong together, by key."""

    title: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagram:
    """A picture. A picture of states has an `initial` one, where it all begins; other pictures have none."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    clusters: tuple[Cluster, ...] = ()
    initial: str | None = None

    def groups(self) -> Iterator[tuple[Cluster | None, tuple[Node, ...]]]:
        """The nodes in their order, but those of a cluster together where its first one stands."""
        nodes = {node.key: node for node in self.nodes}
        home = {key: cluster for cluster in self.clusters for key in cluster.members}
        drawn: set[str] = set()
        for node in self.nodes:
            if node.key not in drawn:
                cluster = home.get(node.key)
                keys = cluster.members if cluster else (node.key,)
                drawn.update(keys)
                yield cluster, tuple(nodes[key] for key in keys)
