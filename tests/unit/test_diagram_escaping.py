"""Whatever ids and names hold, the text of a picture stays what it should be."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.views.diagram import to_dot, to_mermaid
from fsm_agent.views.diagram.model import Caption, Cluster, Diagram, Edge, EdgeKind, Node, NodeKind, Tone
from fsm_agent.views.diagram.palette import EDGE_COLOURS, FAINT, FRAME, INK, NODE_COLOURS
from fsm_agent.views.text import one_line

HOSTILE = [
    'a"b', "a'b", "a\\", "\\", "\\N", "<b>x</b>", "&lt;", "&amp;", "<!-- x", "]]>", "]", "}", "{", ")", "|x|", ";",
    "#35;", "%%{init: {'theme': 'dark'}}%%", "%% x", "$$x$$", "`x`", "**x**", "1. x", "- x", "fa:fa-car", "end", "n0",
    "#0", "subgraph", "-->", "中文", "🚀", "👩‍🚀", "a.b", "a-b", "a_b", "a b", " a", "é", "http://h/x?a=1&b=2",
    "x" * 100,
]  # fmt: skip

texts = st.one_of(
    st.sampled_from(HOSTILE), st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=40)
).map(one_line)


def picture(*names: str) -> Diagram:
    nodes = tuple(Node(name, (name,), name, (name,)) for name in dict.fromkeys(names))
    edges = tuple(Edge(node.key, nodes[0].key, captions=(Caption(node.key, node.key),)) for node in nodes)
    return Diagram(names[0], nodes, edges, (Cluster(names[0], (nodes[0].key,)),))


def dot_labels(text: str) -> list[str]:
    """The HTML-like labels, found as Graphviz finds them: by balancing angle brackets."""
    labels = []
    for start in (match.end() for match in re.finditer(r"label=<", text)):
        depth, end = 1, start
        while depth:
            depth += {"<": 1, ">": -1}.get(text[end], 0)
            end += 1
        labels.append(text[start : end - 1])
    return labels


def shown_by_graphviz(label: str) -> str:
    """What a label shows: HTML first, then Graphviz's own escapes."""
    text = "".join(ET.fromstring(f"<label>{label}</label>").itertext())
    assert not re.search(r"(?<!\\)(\\\\)*\\(?!\\)", text), "a single backslash starts an escape"
    return text.replace("\\\\", "\\").replace("\u00a0", "")


@given(texts.filter(bool))
def test_a_dot_label_shows_exactly_the_text(name: str) -> None:
    shown = [shown_by_graphviz(label) for label in dot_labels(to_dot(picture(name)))]
    assert shown == [part.replace("\u00a0", "") for part in (name, name, name * 3, name * 2)]


@given(st.lists(texts.filter(bool), min_size=1, max_size=5, unique=True))
def test_dot_names_are_quoted_plain_and_all_different(names: list[str]) -> None:
    text = to_dot(picture(*names))
    sources = re.findall(r'^  ("[^"]*") -> ', text, re.MULTILINE)
    assert len(set(sources)) == len(sources) == len(names)
    assert all(re.fullmatch(r'"([\w .-]+|#\d+)"', source) for source in sources)


@given(texts.filter(bool))
def test_a_mermaid_label_holds_nothing_that_mermaid_obeys_and_shows_the_text(name: str) -> None:
    text = to_mermaid(picture(name))
    label = re.search(r'\["<b>(.*?)</b><br/><i>', text)
    assert label is not None
    assert not re.search(r'["`<>{}|%$&\\*~;:]', re.sub(r"#\d+;", "", label[1]))
    shown = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), label[1])
    assert shown.replace("\u200b", "") == name


@given(st.text(max_size=40))
def test_a_mermaid_text_has_its_lines_and_no_others(name: str) -> None:
    title = one_line(name)
    diagram = Diagram(title, (Node("a", (title or "a",)),), ())
    text = to_mermaid(diagram)
    assert len(text.splitlines()) == 7
    assert "%%" not in text
    assert text.splitlines()[1].isascii() or title


@pytest.mark.parametrize("name", HOSTILE)
def test_a_picture_of_states_takes_any_name(name: str) -> None:
    node = Node(name, (name,), kind=NodeKind.FINAL, tone=Tone.GOOD)
    edge = Edge(name, name, EdgeKind.TRANSITION, (Caption(name, f"[{name}]"),), main=True)
    diagram = Diagram("states", (node,), (edge,), initial=name)
    assert [shown_by_graphviz(label) for label in dot_labels(to_dot(diagram))][1] == name
    assert "  classDef good" in to_mermaid(diagram)


def test_ids_that_differ_only_in_punctuation_are_different_nodes() -> None:
    text = to_dot(picture("a.b", "a-b", "a_b", "a b", "a:b", "a/b", "a,b"))
    assert len(set(re.findall(r'^  ("[^"]*") -> ', text, re.MULTILINE))) == 7


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_letters_stand_out_from_what_they_stand_on() -> None:
    grounds = [*(colours.fill for colours in NODE_COLOURS.values()), FRAME.fill, "#ffffff"]
    assert min(contrast(letters, ground) for letters in (INK, FAINT) for ground in grounds) >= 4.5
    captions = [EDGE_COLOURS[EdgeKind.SUCCESS], EDGE_COLOURS[EdgeKind.FAILURE]]
    captions += [colours.line for colours in NODE_COLOURS.values()]
    assert min(contrast(colour, "#ffffff") for colour in captions) >= 4.5


def test_every_line_stands_out_from_white() -> None:
    assert min(contrast(colour, "#ffffff") for colour in EDGE_COLOURS.values()) >= 3


def test_entities_of_html_stay_text() -> None:
    assert html.unescape("&amp;lt;") == "&lt;"
    assert shown_by_graphviz(dot_labels(to_dot(picture("&lt;")))[0].removesuffix("<BR/>&#160;")) == "&lt;"
