"""The picture of a plan."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fsm_agent.plan.catalog import Catalog, SkillSpec
from fsm_agent.plan.model import Plan
from fsm_agent.views.diagram import Diagram, of_plan, to_dot, to_mermaid
from fsm_agent.views.diagram.model import EdgeKind, Node, NodeKind, Tone


def plan(*tasks: dict[str, Any], **keys: Any) -> Plan:
    return Plan.model_validate({"tasks": list(tasks), **keys})


def draw(*tasks: dict[str, Any], **keys: Any) -> Diagram:
    return of_plan(plan(*tasks, **keys))


def node(diagram: Diagram, key: str) -> Node:
    return next(node for node in diagram.nodes if node.key == key)


def edges(diagram: Diagram) -> list[tuple[str, str, EdgeKind, bool]]:
    return [(edge.source, edge.target, edge.kind, edge.back) for edge in diagram.edges]


def test_a_dependency_is_a_solid_edge_and_a_soft_one_is_dashed() -> None:
    diagram = draw({"id": "a"}, {"id": "b", "dependencies": ["a"]}, {"id": "c", "soft_dependencies": ["a"]})
    assert edges(diagram) == [("a", "b", EdgeKind.DEPENDENCY, False), ("a", "c", EdgeKind.SOFT, False)]
    dot = to_dot(diagram)
    assert "style=dashed" in dot.split('"a" -> "c"')[1]
    assert "style=dashed" not in dot.split('"a" -> "b"')[1].split("\n")[0]
    assert "n0 -.-> n2" in to_mermaid(diagram)


def test_branches_are_named_and_coloured_green_and_red() -> None:
    diagram = draw({"id": "a", "on_success": "b", "on_failure": "c"}, {"id": "b"}, {"id": "c"})
    assert edges(diagram) == [("a", "b", EdgeKind.SUCCESS, False), ("a", "c", EdgeKind.FAILURE, False)]
    dot = to_dot(diagram)
    assert '"a" -> "b" [color="#1a7f37"' in dot
    assert '"a" -> "c" [color="#cf222e"' in dot
    assert 'n0 -->|"failure"| n2' in to_mermaid(diagram)


def test_a_back_edge_has_no_say_in_the_layout() -> None:
    diagram = draw({"id": "a"}, {"id": "b", "dependencies": ["a"], "on_failure": "a"})
    assert ("b", "a", EdgeKind.FAILURE, True) in edges(diagram)
    assert "constraint=false" in to_dot(diagram).split('"b" -> "a"')[1]


def test_edges_that_a_sequence_implies_are_grey() -> None:
    diagram = draw({"id": "a"}, {"id": "b"}, flow="sequential")
    assert edges(diagram) == [("a", "b", EdgeKind.IMPLIED, False)]
    assert '"a" -> "b" [color="#848d97"]' in to_dot(diagram)


def test_a_dependency_that_only_repeats_the_branch_is_not_drawn_twice() -> None:
    diagram = draw({"id": "a", "on_success": "b"}, {"id": "b", "dependencies": ["a"]})
    assert edges(diagram) == [("a", "b", EdgeKind.SUCCESS, False)]


def test_a_dependency_is_kept_where_another_branch_leads_there_too() -> None:
    diagram = draw({"id": "a", "on_success": "c"}, {"id": "b", "on_failure": "c"}, {"id": "c", "dependencies": ["a"]})
    assert ("a", "c", EdgeKind.DEPENDENCY, False) in edges(diagram)


def test_a_decision_is_a_diamond_with_its_question() -> None:
    diagram = draw({"id": "big", "type": "condition", "verification": "context['n'] > 3"})
    assert node(diagram, "big").kind is NodeKind.DECISION
    assert node(diagram, "big").notes == ("context['n'] > 3",)
    assert "shape=diamond" in to_dot(diagram)
    assert 'n0{"' in to_mermaid(diagram)


def test_a_finalizer_is_marked() -> None:
    diagram = draw({"id": "work", "skill": "w"}, {"id": "tidy", "dependencies": ["work"], "join": "all_done"})
    assert node(diagram, "tidy").kind is NodeKind.FINALIZER
    assert "finalizer" in node(diagram, "tidy").notes


def test_layers_are_clusters_that_stand_where_their_first_task_stands() -> None:
    diagram = draw({"id": "a"}, {"id": "b", "layer": "L"}, {"id": "c"}, {"id": "d", "layer": "L"})
    groups = [(cluster.title if cluster else None, [node.key for node in nodes]) for cluster, nodes in diagram.groups()]
    assert groups == [(None, ["a"]), ("L", ["b", "d"]), (None, ["c"])]


def test_a_task_shows_who_does_it() -> None:
    diagram = draw(
        {"id": "a", "skill": "read"},
        {"id": "b", "worker": "db"},
        {"id": "c", "worker": "own"},
        {"id": "d"},
        {"id": "e", "subplan": "other"},
        {"id": "f", "subgoal": "find out"},
        workers={"own": {"skill": "tune"}},
        default_skill="ask",
    )
    assert [node.doer for node in diagram.nodes] == [
        "read",
        "db",
        "own: tune",
        "ask",
        "sub-plan other",
        "sub-goal find out",
    ]


def test_a_task_shows_its_name_condition_join_and_marks() -> None:
    diagram = draw(
        {"id": "z"},
        {
            "id": "a", "name": "Send it", "skill": "mail", "condition": "x > 1", "join": "any", "dependencies": ["z"],
            "priority": "high", "risk_level": "medium", "approval": "required",
        },
        {"id": "b", "foreach": "[1]", "repeat_while": "True"},
    )  # fmt: skip
    assert node(diagram, "a").notes == ("Send it", "if x > 1", "join: any", "high priority · medium risk · approval")
    assert node(diagram, "a").tone is Tone.CAUTION
    assert node(diagram, "b").notes == ("for each of [1]", "again while True")


def test_the_risk_of_a_skill_is_a_floor_for_its_task() -> None:
    catalog = Catalog(skills={"pay": SkillSpec("pay", risk="high")})
    diagram = of_plan(plan({"id": "a", "skill": "pay", "risk_level": "low"}), catalog)
    assert node(diagram, "a").notes == ("high risk",)


def test_a_plan_with_a_cycle_is_drawn_all_the_same() -> None:
    diagram = draw({"id": "a", "dependencies": ["b"]}, {"id": "b", "dependencies": ["a"]})
    assert len(diagram.edges) == 2


def test_a_reference_to_no_task_is_noted_at_the_task() -> None:
    diagram = draw({"id": "a", "dependencies": ["nope"], "on_failure": "gone"})
    assert node(diagram, "a").notes == ("no such task: nope, gone",)
    assert node(diagram, "a").tone is Tone.BAD


def test_two_tasks_of_one_id_are_two_nodes() -> None:
    diagram = draw({"id": "a"}, {"id": "a"})
    assert len({node.key for node in diagram.nodes}) == 2
    assert to_dot(diagram).count("<B>a</B>") == 2


def test_a_long_id_is_shown_whole_on_several_lines() -> None:
    name = "x" * 100
    diagram = draw({"id": name})
    assert "".join(node(diagram, name).title) == name
    assert all(len(line) <= 32 for line in node(diagram, name).title)


def test_long_words_are_cut_to_two_lines() -> None:
    words = " ".join(["word"] * 100)
    diagram = draw({"id": "a", "description": words})
    assert len(node(diagram, "a").notes) == 2
    assert node(diagram, "a").notes[1].endswith("…")


@pytest.mark.timing
def test_a_plan_of_ten_thousand_tasks_is_text_in_well_under_a_second() -> None:
    tasks = [
        {"id": f"t{n}", "name": f"Step {n}", "skill": "work", "dependencies": [f"t{n - d}" for d in (1, 7) if n >= d]}
        for n in range(10_000)
    ]
    large = plan(*tasks)
    began = time.perf_counter()
    text = to_dot(of_plan(large))
    assert time.perf_counter() - began < 5 * 1.0
    assert text.count(" -> ") == 9_999 + 9_993


def test_a_rollback_to_a_task_is_a_dashed_edge_back_and_one_to_a_layer_is_noted() -> None:
    back = {"skill": "s", "recovery": "rollback"}
    drawn = draw(
        {"id": "a", "skill": "s", "layer": "l", "compensation": {"skill": "undo"}},
        {"id": "b", "dependencies": ["a"], "rollback_to": "a", **back},
        {"id": "c", "dependencies": ["a"], "rollback_to": "l", **back},
        {"id": "d", "dependencies": ["a"], **back},
        {"id": "e", "skill": "s", "dependencies": ["a"], "rollback_to": "a"},
    )
    assert [edge for edge in edges(drawn) if edge[2] is EdgeKind.ROLLBACK] == [("b", "a", EdgeKind.ROLLBACK, True)]
    notes = {node.key: node.notes for node in drawn.nodes}
    assert notes["a"] == ("undone by undo",)
    assert (notes["c"], notes["d"], notes["b"], notes["e"]) == (
        ("rolls back to l",), ("rolls back to the start",), (), (),
    )  # fmt: skip
    [line] = [line for line in to_dot(drawn).splitlines() if '"b" -> "a"' in line]
    assert "style=dashed" in line
    assert "-.->" in to_mermaid(drawn)
