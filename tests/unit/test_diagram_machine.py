"""The picture of the machine."""

from __future__ import annotations

from dataclasses import dataclass

from fsm_agent.core.machine import FINAL, PHASES, TABLE
from fsm_agent.views.diagram import of_machine, to_dot, to_mermaid
from fsm_agent.views.diagram.model import Caption, NodeKind


@dataclass(frozen=True)
class Row:
    trigger: str
    source: str
    dest: str
    guard: str | None = None


def test_every_row_of_the_table_is_one_caption_of_the_picture() -> None:
    drawn = [(edge.source, edge.target, caption.text) for edge in of_machine().edges for caption in edge.captions]
    assert sorted(drawn) == sorted((row.source, row.dest, row.trigger) for row in TABLE)


def test_every_guard_of_the_table_is_named_in_both_texts() -> None:
    guards = {row.guard for row in TABLE if row.guard}
    for text in (to_dot(of_machine()), to_mermaid(of_machine())):
        assert {guard for guard in guards if f"[{guard}]" in text} == guards


def test_rows_between_the_same_phases_share_one_edge() -> None:
    edges = of_machine().edges
    assert len({(edge.source, edge.target) for edge in edges}) == len(edges) < len(TABLE)


def test_every_phase_is_a_node_and_the_final_ones_are_marked() -> None:
    diagram = of_machine()
    assert tuple(node.key for node in diagram.nodes) == PHASES
    assert {node.key for node in diagram.nodes if node.kind is NodeKind.FINAL} == FINAL
    assert diagram.initial == "idle"


def test_final_phases_have_a_double_border_and_lead_to_the_end() -> None:
    dot, mermaid = to_dot(of_machine()), to_mermaid(of_machine())
    assert dot.count("peripheries=2") == len(FINAL)
    assert all(f"  {phase} --> [*]" in mermaid for phase in FINAL)
    assert "  [*] --> idle" in mermaid


def test_a_row_without_a_guard_beside_guarded_ones_says_otherwise() -> None:
    rows = [Row("go", "a", "b", "ready"), Row("go", "a", "c"), Row("stop", "b", "c")]
    captions = [edge.captions for edge in of_machine(rows, ["a", "b", "c"], ["c"]).edges]
    assert captions == [(Caption("go", "[ready]"),), (Caption("go", "[otherwise]"),), (Caption("stop"),)]


def test_a_state_named_like_a_word_of_mermaid_gets_a_name_of_its_own() -> None:
    text = to_mermaid(of_machine([Row("go", "end", "two words")], ["end", "two words"], ["two words"]))
    assert '  state "end" as n0' in text
    assert '  state "two words" as n1' in text
    assert "  n0 --> n1: go" in text
