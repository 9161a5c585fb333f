"""The renderer for Graphviz: a picture as DOT text. It needs nothing installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from fsm_agent.views.diagram.model import Caption, Diagram, Edge, EdgeKind, Node, NodeKind
from fsm_agent.views.diagram.palette import EDGE_COLOURS, FADED, FAINT, FRAME, INK, NODE_COLOURS

# Helvetica is one of the few fonts whose widths Graphviz knows by itself, so that texts fit their boxes anywhere.
_FONT = "Helvetica"
_TAME = re.compile(r"[\w .-]+")

_SHAPES = {
    NodeKind.TASK: 'shape=box style="rounded,filled"',
    NodeKind.DECISION: "shape=diamond style=filled margin=0.02",
    NodeKind.FINALIZER: 'shape=box style="rounded,filled,dashed"',
    NodeKind.PHASE: 'shape=box style="rounded,filled"',
    NodeKind.FINAL: 'shape=box style="rounded,filled" peripheries=2',
}
_LINES = {
    EdgeKind.SOFT: " style=dashed arrowhead=empty",
    EdgeKind.ROLLBACK: " style=dashed",
    EdgeKind.SUCCESS: " penwidth=1.5",
    EdgeKind.FAILURE: " penwidth=1.5",
}


def to_dot(diagram: Diagram) -> str:
    """The picture as DOT text, with a line for each node and edge."""
    names = {node.key: _name(node.key, index) for index, node in enumerate(diagram.nodes)}
    lines = [*_head(diagram), *_nodes(diagram, names), *_edges(diagram, names)]
    return "\n".join([*lines, "}", ""])


def _name(key: str, index: int) -> str:
    """The key itself where it needs no escaping; else a number, which no tame key looks like."""
    return f'"{key}"' if _TAME.fullmatch(key) else f'"#{index}"'


def _head(diagram: Diagram) -> Iterator[str]:
    yield "digraph {"
    layout = "rankdir=LR nodesep=0.45 ranksep=0.25" if diagram.initial else "rankdir=TB nodesep=0.3 ranksep=0.45"
    # The blank line keeps the title off the nodes.
    yield f"  graph [label=<<B>{_escaped(diagram.title)}</B><BR/>&#160;> labelloc=t {layout} pad=0.3 bgcolor=white];"
    yield f'  graph [fontname="{_FONT}" fontsize=16 fontcolor="{INK}"];'
    yield f'  node [fontname="{_FONT}" fontsize=12 fontcolor="{INK}" margin="0.16,0.08" height=0.4];'
    yield f'  edge [fontname="{_FONT}" fontsize=10 fontcolor="{INK}" arrowsize=0.8];'


def _nodes(diagram: Diagram, names: Mapping[str, str]) -> Iterator[str]:
    if diagram.initial is not None:
        size = "width=0.16 height=0.16 fixedsize=true"
        yield f'  "#start" [label="" shape=circle style=filled fillcolor="{INK}" {size}];'
    for number, (cluster, members) in enumerate(diagram.groups()):
        lines = (_node(node, names) for node in members)
        if cluster is None:
            yield from ("  " + line for line in lines)
        else:
            yield from (f"  subgraph cluster_{number} {{", *_frame(cluster.title), *("    " + x for x in lines), "  }")
    last = [names[node.key] for node in diagram.nodes if node.kind is NodeKind.FINAL]
    if last:
        yield f"  {{ rank=sink; {'; '.join(last)}; }}"


def _frame(title: str) -> Iterator[str]:
    yield f'    label=<<B>{_escaped(title)}</B>>; labeljust=l; fontsize=11; fontcolor="{FAINT}";'
    yield f'    style="rounded,filled"; color="{FRAME.line}"; fillcolor="{FRAME.fill}";'


def _node(node: Node, names: Mapping[str, str]) -> str:
    colours = NODE_COLOURS[node.tone]
    return (
        f"{names[node.key]} [label={_label(node)} {_SHAPES[node.kind]} "
        f'fillcolor="{colours.fill}" color="{colours.line}"];'
    )


def _edges(diagram: Diagram, names: Mapping[str, str]) -> Iterator[str]:
    if diagram.initial is not None:
        yield f'  "#start" -> {names[diagram.initial]} [color="{INK}" weight=20];'
    tones = {node.key: node.tone for node in diagram.nodes}
    for edge in diagram.edges:
        states = edge.kind is EdgeKind.TRANSITION
        colour = NODE_COLOURS[tones[edge.target]].line if states else EDGE_COLOURS[edge.kind]
        colour = FADED if edge.faded else colour
        yield f"  {names[edge.source]} -> {names[edge.target]} [{_line(edge, colour)}];"


def _line(edge: Edge, colour: str) -> str:
    text = f'color="{colour}"{_LINES.get(edge.kind, "")}'
    if edge.back:
        text += " constraint=false"
    if edge.main:
        text += " weight=20"
    if edge.captions:
        text += (
            f" label=<{'<BR/>'.join(_caption(caption, FAINT if edge.faded else colour) for caption in edge.captions)}>"
        )
    return text


def _label(node: Node) -> str:
    text = "<BR/>".join(f"<B>{_escaped(line)}</B>" for line in node.title)
    small = [f"<I>{_escaped(node.doer)}</I>"] if node.doer else []
    small += [_escaped(line) for line in node.notes]
    if small:
        text += f'<BR/><FONT POINT-SIZE="10" COLOR="{FAINT}">{"<BR/>".join(small)}</FONT>'
    return f"<{text}>"


def _caption(caption: Caption, colour: str) -> str:
    # The blank before it keeps the text off its line.
    text = f'<FONT COLOR="{colour}">&#160;{_escaped(caption.text)}</FONT>'
    return f'{text}<BR/><FONT COLOR="{FAINT}">{_escaped(caption.note)}</FONT>' if caption.note else text


def _escaped(text: str) -> str:
    """For an HTML-like label, where a backslash still starts an escape of Graphviz's own."""
    if _TAME.fullmatch(text):
        return text
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = text.replace('"', "&quot;").replace("\\", "\\\\")
    # Graphviz (2.43) refuses a label of nothing but closing brackets.
    return text if text.strip("]") else text.replace("]", "&#93;")
