"""What came of a run, for the person who waited for it: how it ended, its tasks, its output, and what is open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fsm_agent.cli.output import to_json
from fsm_agent.cli.tables import facts, indented, table
from fsm_agent.views.text import one_line

Json = Mapping[str, Any]

MOST_TASKS: Final = 40
"""A longer table helps nobody: then the tasks come first that did not simply succeed."""
_MOST_OUTPUT: Final = 4_000
_ENDINGS: Final = {
    "clean": "completed, clean",
    "handled_failures": "completed, with handled failures",
    "failed": "failed",
    "paused": "paused",
    "cancelled": "cancelled",
}


def summary_text(run: Json, *, bounded: bool, state: str | None = None) -> str:
    """The summary of a run's document. `bounded`: no line of the table is wider than the terminal. `state` says how a
    run stands that is under way.
    """
    parts = [_head(run, state), _tasks(run["tasks"], bounded=bounded), *_sections(run)]
    return "\n\n".join(part for part in parts if part)


def _head(run: Json, state: str | None) -> str:
    known = {
        "run": run["run_id"],
        "goal": run["goal"] or "",
        "reason": _reason(run["reason"]),
        "took": f"{run['elapsed_s']:.2f} s",
        "coverage": f"{run['coverage']:.0%} of the plan",
        "calls": f"{run['invalid_actions']:.0%} were retried or came to nothing" if run["invalid_actions"] else "",
    }
    lines = facts({name: one_line(text) for name, text in known.items()})
    return f"{state or _ENDINGS[run['outcome']]}\n{indented(lines)}"


def _reason(reason: Json | None) -> str:
    if reason is None:
        return ""
    where = f" in task {reason['task']}" if reason["task"] else ""
    limit = f" ({reason['setting']}: {reason['count']:g})" if reason.get("setting") else ""
    return f"{reason['kind']}{where}{limit}: {reason['message']}"


def _tasks(tasks: Mapping[str, Json], *, bounded: bool) -> str:
    shown = list(tasks.items())
    if len(shown) > MOST_TASKS:
        shown = sorted(shown, key=lambda item: item[1]["status"] == "SUCCEEDED" and not _notes(item[1]))[:MOST_TASKS]
    if not shown:
        return ""
    rows = [[name, task["status"], str(task["visits"]), str(task["attempts"]), _notes(task)] for name, task in shown]
    text = table(["task", "status", "visits", "attempts", "notes"], rows, bounded=bounded)
    left_out = len(tasks) - len(shown)
    return f"{text}\nand {left_out} more tasks" if left_out else text


def _notes(task: Json) -> str:
    error = task["error"] or {}
    notes = [
        task["reason"] or "",
        "fallback used" if task["fallback_used"] else "",
        "not verified" if task["verified"] is False else "",
        ": ".join(str(error[key]) for key in ("kind", "message") if error.get(key)),
    ]
    return "; ".join(note for note in notes if note)


def _sections(run: Json) -> Iterator[str]:
    if run["output"] is not None:
        text = to_json(run["output"])
        yield _section("output", [text if len(text) <= _MOST_OUTPUT else f"{text[:_MOST_OUTPUT]}\n… (cut)"])
    yield _section("rolled back", [_rollback(rollback) for rollback in run.get("rollbacks", ())])
    yield _section("waiting for a person", [_question(waiting) for waiting in run["waiting"]])
    criteria = {
        verdict: [one_line(item["text"] or item["check"]) for item in run["criteria"] if item["verdict"] == verdict]
        for verdict in ("not_met", "not_judged")
    }
    yield _section("criteria not met", criteria["not_met"])
    yield _section("criteria not judged", criteria["not_judged"])
    yield _section("approvals", [_decision(approval) for approval in run["approvals"]])


def _section(title: str, lines: Sequence[str]) -> str:
    return f"{title}\n{indented(chr(10).join(lines))}" if lines else ""


def _rollback(rollback: Json) -> str:
    parts = [f"{rollback['task']}: back to {rollback['to'] or 'the start'}"]
    parts += [f"undone {', '.join(rollback['compensated'])}"] if rollback["compensated"] else []
    parts += [f"not undone {', '.join(rollback['not_compensated'])}"] if rollback["not_compensated"] else []
    parts += [f"{key} stays, {task} has written it since" for key, task in rollback["kept"].items()]
    return one_line("; ".join(parts))


def _question(waiting: Json) -> str:
    about = one_line(waiting["task"] or "the plan")
    words = [waiting["kind"], f"visit {waiting['visit']}", f"{waiting['risk']} risk" if waiting["risk"] else ""]
    text = f"{about}: {', '.join(word for word in words if word)} (approval {waiting['approval']})"
    return f"{text}\n{indented(to_json(waiting['parameters']))}" if waiting["parameters"] else text


def _decision(approval: Json) -> str:
    by = f" by {approval['by']}" if approval["by"] else ""
    why = f": {approval['why']}" if approval["why"] else ""
    return one_line(f"{approval['task'] or 'the plan'} (visit {approval['visit']}): {approval['decision']}{by}{why}")


def simulation_text(run: Json, *, bounded: bool) -> str:
    """The visits of a simulated run in their order, and its summary."""
    visits = "\n".join(f"{word:5} {one_line(task)}" for task, word in run["trace"])
    summary = summary_text(run, bounded=bounded)
    return f"{visits}\n\n{summary}" if visits else summary
