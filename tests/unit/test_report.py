"""The report of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fsm_agent.views.report import to_markdown

RUN: dict[str, Any] = {
    "format": 1,
    "run_id": "r1",
    "phase": "completed",
    "outcome": "handled_failures",
    "reason": None,
    "goal": "Why did sales fall?",
    "plan_version": 1,
    "output": {"path": "report.md"},
    "context": {},
    "tasks": {
        "sales": {"status": "SUCCEEDED", "reason": None, "visits": 1, "attempts": 1, "data": {}, "error": None,
                  "fallback_used": False, "verified": True},
        "库存": {"status": "SUCCEEDED", "reason": None, "visits": 1, "attempts": 3, "data": {},
               "error": {"kind": "exception", "type": "OSError", "message": "no route", "attempt": 3},
               "fallback_used": True, "verified": False},
        "2.1": {"status": "FAILED", "reason": None, "visits": 2, "attempts": 2, "data": None,
                "error": {"kind": "timeout", "type": None, "message": "took more than 1 s", "attempt": 1},
                "fallback_used": False, "verified": None},
        "big": {"status": "FAILED", "reason": None, "visits": 1, "attempts": 0, "data": None, "error": None,
                   "fallback_used": False, "verified": None},
        "chart": {"status": "SKIPPED", "reason": "optional", "visits": 1, "attempts": 1, "data": None,
                  "error": {"kind": "reported", "type": None, "message": "no font", "attempt": 1},
                  "fallback_used": False, "verified": None},
    },
    "trace": [],
    "waiting": [],
    "criteria": [{"text": "Every cause has evidence", "check": None, "verdict": "not_judged"},
                 {"text": None, "check": "len(causes) > 0", "verdict": "met"}],
    "approvals": [{"task": "pay", "decision": "approved", "by": "li", "why": "fine"}],
    "resumable": True,
    "labels": {"team": "east"},
    "coverage": 0.75,
    "invalid_actions": 1 / 3,
    "elapsed_s": 1.234,
}  # fmt: skip


def sections(run: dict[str, Any]) -> dict[str, str]:
    head, *rest = to_markdown(run).split("\n## ")
    return {"": head, **dict(part.split("\n\n", 1) for part in rest)}


def test_the_head_says_how_the_run_ended_and_the_two_ratios() -> None:
    assert sections(RUN)[""].splitlines() == [
        "# Run r1: completed, with handled failures",
        "",
        "- Goal: Why did sales fall?",
        "- Plan version: 1",
        "- Elapsed: 1.23 s",
        "- Plan coverage: 75.0%",
        "- Invalid actions: 33.3%",
        "- Labels: team=east",
    ]


def test_the_tasks_are_a_table_that_is_aligned_as_text() -> None:
    assert sections(RUN)["Tasks"].strip().splitlines() == [
        "| task  | status             | visits | attempts | notes                                                    |",
        "|-------|--------------------|--------|----------|----------------------------------------------------------|",
        "| sales | SUCCEEDED          | 1      | 1        | verified                                                 |",
        "| 库存  | SUCCEEDED          | 1      | 3        | exception OSError: no route; fallback used; not verified |",
        "| 2.1   | FAILED             | 2      | 2        | timeout: took more than 1 s                              |",
        "| big   | FAILED             | 1      | 0        |                                                          |",
        "| chart | SKIPPED (optional) | 1      | 1        | reported: no font                                        |",
    ]  # fmt: skip


def test_what_the_outcome_is_made_of_is_named() -> None:
    found = sections(RUN)
    assert found["Handled failures"].strip() == "- 2.1: timeout: took more than 1 s"
    assert found["Optional tasks that failed"].strip() == "- chart: reported: no font"
    assert found["Fallbacks used"].strip() == "- 库存: exception OSError: no route"
    assert found["Not verified"].strip() == "- 库存: its fallback stood in"


def test_approvals_and_criteria_are_told_and_prose_is_never_said_to_be_met() -> None:
    found = sections(RUN)
    assert found["Approvals"].strip() == "- pay: approved by li: fine"
    assert found["Criteria"].strip() == "- met: len(causes) \\> 0"
    assert found["Criteria in prose, not judged"].strip() == "- Every cause has evidence"


def test_a_failed_run_tells_its_reason_and_has_no_handled_failures() -> None:
    reason = {"kind": "limit", "task": "poll", "message": "too many", "setting": "max_visits", "count": 10}
    found = sections({**RUN, "phase": "failed", "outcome": "failed", "reason": reason})
    assert "- Reason: limit: poll: max_visits: 10: too many" in found[""]
    assert "Handled failures" not in found


def test_a_paused_run_tells_what_it_waits_for() -> None:
    waiting = [
        {"approval": "ab", "kind": "task", "task": "pay", "visit": 1, "item": None, "risk": "high",
         "parameters": {"to": "北京"}, "expires_at": None},
        {"approval": "cd", "kind": "plan", "task": None, "visit": 0},
    ]  # fmt: skip
    found = sections({**RUN, "phase": "paused", "outcome": "paused", "waiting": waiting, "resumable": False})
    assert found["Waiting for a person"].strip().splitlines() == [
        '- pay: task, visit 1, risk high, approval ab, parameters {"to": "北京"}',
        "- the plan: plan, visit 0, approval cd",
    ]
    assert "- Can be resumed: no" in found[""]


def test_the_fence_of_the_output_is_longer_than_any_in_it() -> None:
    block = sections({**RUN, "output": "a ```` b"})["Output"].strip()
    assert block.startswith("`````json\n")
    assert block.endswith("\n`````")


def test_a_very_long_output_is_cut_and_says_so() -> None:
    assert "… (cut)" in to_markdown({**RUN, "output": "x" * 100_000})


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a|b", "a\\|b"), ("<b>", "\\<b\\>"), ("*x*", "\\*x\\*"), ("a_b", "a_b"), ("_a_", "\\_a\\_"), ("`x`", "\\`x\\`"),
     ("&lt;", "\\&lt;"), ("[x](y)", "\\[x\\](y)"), ("a\n# b", "a # b"), ("\x1b[0m", "␛\\[0m"), ("2.1", "2.1")],
)  # fmt: skip
def test_data_is_never_taken_for_markdown(text: str, shown: str) -> None:
    report = to_markdown({"goal": text, "tasks": {text: {"status": "PENDING"}}})
    assert f"- Goal: {shown}\n" in report
    assert f"| {shown} " in report


def test_a_report_needs_nothing_but_what_is_there() -> None:
    assert to_markdown({}) == "# Run: unknown\n"


def test_making_a_report_changes_nothing() -> None:
    before = json.dumps(RUN)
    assert to_markdown(RUN) == to_markdown(RUN)
    assert json.dumps(RUN) == before


def test_what_was_rolled_back_is_told_with_what_stays() -> None:
    rollbacks = [
        {
            "task": "pay", "to": None, "compensated": ["car"], "not_compensated": ["room"], "undone": ["n"],
            "kept": {"m": "out"}, "finished": False,
        }
    ]  # fmt: skip
    text = to_markdown({"run_id": "r", "outcome": "cancelled", "rollbacks": rollbacks})
    assert "## Rollbacks" in text
    for words in ("back to the start", "undone car", "not undone room", "m stays, out has", "not finished"):
        assert words in text
