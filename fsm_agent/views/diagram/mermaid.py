"""The renderer for Mermaid: a picture as text that many viewers of Markdown draw. It needs nothing installed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from fsm_agent.views.diagram.model import Caption, Diagram, Edge, EdgeKind, Node, NodeKind
from fsm_agent.views.diagram.palette import EDGE_COLOURS, FADED, FRAME, INK, NODE_COLOURS

# All other ASCII characters mean something to Mermaid, to Markdown or to HTML somewhere, as do the starts of lists.
_UNTAME = re.compile(r"[^\w ,()'=?/\[\]+.\u0080-\U0010ffff-]|(?<=\d)[.)](?= )|[-+](?= )")
_TAME_KEY = re.compile(r"[a-z]+")
_RESERVED = frozenset({"state", "note", "end", "class", "style", "direction", "hide", "click", "default", "as"})

_NO_HTML = str.maketrans("<>&", "‹›＆")

K = TypeVar("K")
V = TypeVar("V")

_BRACKETS = {NodeKind.DECISION: ("{", "}"), NodeKind.FINALIZER: ("([", "])")}


def to_mermaid(diagram: Diagram) -> str:
    """The picture as Mermaid text: a state diagram where there is an initial state, else a flow chart."""
    lines = _flow(diagram) if diagram.initial is None else _states(diagram, diagram.initial)
    return "\n".join([*_title(diagram.title), *lines, *_classes(diagram), ""])


def _title(title: str) -> Iterator[str]:
    """The title as a quoted YAML text. Mermaid drops what looks like HTML in it, and finds directives even there."""
    text = re.sub(r"[^\w ]", lambda match: _yaml_escape(match.group()), title.translate(_NO_HTML))
    yield from ("---", f'title: "{text}"', "---")


def _yaml_escape(character: str) -> str:
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def _flow(diagram: Diagram) -> Iterator[str]:
    names = _names(diagram)
    yield "flowchart TD"
    for number, (cluster, members) in enumerate(diagram.groups()):
        lines = (_flow_node(node, names) for node in members)
        if cluster is None:
            yield from ("  " + line for line in lines)
        else:
            yield f'  subgraph c{number}["{_escaped(cluster.title)}"]'
            yield from (*("    " + line for line in lines), "  end")
            yield f"  style c{number} fill:{FRAME.fill},stroke:{FRAME.line}"
    for edge in diagram.edges:
        yield f"  {names[edge.source]} {_arrow(edge)} {names[edge.target]}"
    for colour, places in _grouped((_colour(edge), place) for place, edge in enumerate(diagram.edges)):
        yield f"  linkStyle {','.join(map(str, places))} stroke:{colour}"


def _colour(edge: Edge) -> str:
    return FADED if edge.faded else EDGE_COLOURS[edge.kind]


def _flow_node(node: Node, names: Mapping[str, str]) -> str:
    before, after = _BRACKETS.get(node.kind, ("[", "]"))
    lines = [f"<b>{_escaped(line)}</b>" for line in node.title]
    lines += [f"<i>{_escaped(node.doer)}</i>"] if node.doer else []
    lines += [f"<small>{_escaped(line)}</small>" for line in node.notes]
    return f'{names[node.key]}{before}"{"<br/>".join(lines)}"{after}'


def _arrow(edge: Edge) -> str:
    arrow = "-.->" if edge.kind in (EdgeKind.SOFT, EdgeKind.ROLLBACK) else "-->"
    return f'{arrow}|"{_captions(edge.captions)}"|' if edge.captions else arrow


def _states(diagram: Diagram, initial: str) -> Iterator[str]:
    names = _names(diagram)
    yield from ("stateDiagram-v2", "  direction LR", f"  [*] --> {names[initial]}")
    for node in diagram.nodes:
        if names[node.key] != node.key:
            yield f'  state "{_escaped(" ".join(node.title))}" as {names[node.key]}'
    for edge in diagram.edges:
        text = f": {_captions(edge.captions)}" if edge.captions else ""
        yield f"  {names[edge.source]} --> {names[edge.target]}{text}"
    yield from (f"  {names[node.key]} --> [*]" for node in diagram.nodes if node.kind is NodeKind.FINAL)


def _names(diagram: Diagram) -> dict[str, str]:
    """A state's own name where Mermaid has no other use for it; else a number, for ids may hold anything."""
    return {node.key: _name(node, number) for number, node in enumerate(diagram.nodes)}


def _name(node: Node, number: int) -> str:
    is_state = node.kind in (NodeKind.PHASE, NodeKind.FINAL)
    return node.key if is_state and _TAME_KEY.fullmatch(node.key) and node.key not in _RESERVED else f"n{number}"


def _classes(diagram: Diagram) -> Iterator[str]:
    names = _names(diagram)
    for tone, members in _grouped((node.tone, names[node.key]) for node in diagram.nodes):
        colours = NODE_COLOURS[tone]
        yield f"  classDef {tone.value} fill:{colours.fill},stroke:{colours.line},color:{INK}"
        yield f"  class {','.join(members)} {tone.value}"


def _captions(captions: Iterable[Caption]) -> str:
    return "<br/>".join(_escaped(f"{caption.text} {caption.note}".strip()) for caption in captions)


def _escaped(text: str) -> str:
    return _UNTAME.sub(_entity, text)


def _entity(match: re.Match[str]) -> str:
    # "$$" would begin a formula and "fa:fa-" an icon even as entities: something invisible parts them.
    return f"#{ord(match.group())};" + ("#8203;" if match.group() in "$:" else "")


def _grouped(pairs: Iterable[tuple[K, V]]) -> Iterable[tuple[K, list[V]]]:
    """The second parts by the first, in the order in which the first parts come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups.items()
