"""The report of a run: Markdown that reads well as plain text. A function of the run's JSON and nothing else.

Secrets are the caller's matter: what is in the JSON is in the report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fsm_agent.views.text import clip, one_line, pad, width

Json = Mapping[str, Any]

_MOST_COLUMNS: Final = 100
_MOST_OUTPUT: Final = 20_000
# What Markdown would read as more than text. A "_" within a word is only text.
_SPECIAL: Final = re.compile(r"[\\`*\[\]<>|~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)|^(?:#+|[+-]|\d+[.)]|---+)(?=\s|$)")

_OUTCOMES: Final = {
    "clean": "completed, clean",
    "handled_failures": "completed, with handled failures",
    "failed": "failed",
    "paused": "paused, waiting",
    "cancelled": "cancelled",
}


def to_markdown(run: Json) -> str:
    """The report of a run, given as the JSON that the command line prints. What is missing there is left out here."""
    parts = [*_head(run), *_sections(run)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(run: Json) -> Iterator[str]:
    outcome = str(run.get("outcome") or run.get("phase") or "unknown")
    name = f"Run {run['run_id']}" if run.get("run_id") else "Run"
    yield f"# {_text(name)}: {_text(_OUTCOMES.get(outcome, outcome))}"
    facts = {
        "Goal": run.get("goal"),
        "Reason": _reason(run.get("reason")),
        "Plan version": run.get("plan_version"),
        "Elapsed": _seconds(run.get("elapsed_s")),
        "Plan coverage": _percent(run.get("coverage")),
        "Invalid actions": _percent(run.get("invalid_actions")),
        "Labels": ", ".join(f"{key}={value}" for key, value in (run.get("labels") or {}).items()),
        "Can be resumed": "no" if run.get("phase") == "paused" and run.get("resumable") is False else None,
    }
    yield _list(f"{name}: {value}" for name, value in facts.items() if value not in (None, ""))


def _sections(run: Json) -> Iterator[str]:
    tasks: Mapping[str, Json] = run.get("tasks") or {}
    completed = run.get("phase") == "completed"
    yield _section("Tasks", _task_table(tasks))
    yield _section("Handled failures", _chosen(tasks, lambda task: completed and _failed(task), _error_of))
    yield _section(
        "Optional tasks that failed", _chosen(tasks, lambda task: task.get("reason") == "optional", _error_of)
    )
    yield _section("Fallbacks used", _chosen(tasks, lambda task: bool(task.get("fallback_used")), _error_of))
    yield _section("Not verified", _chosen(tasks, lambda task: task.get("verified") is False, _why_unverified))
    yield _section("Rollbacks", _list(map(_rollback, run.get("rollbacks") or ())))
    yield _section("Waiting for a person", _list(map(_question, run.get("waiting") or ())))
    yield _section("Approvals", _list(map(_decision, run.get("approvals") or ())))
    criteria: Sequence[Json] = run.get("criteria") or ()
    judged = [item for item in criteria if item.get("verdict") != "not_judged"]
    yield _section("Criteria", _list(map(_criterion, judged)))
    not_judged = [item for item in criteria if item.get("verdict") == "not_judged"]
    yield _section("Criteria in prose, not judged", _list(str(item.get("text")) for item in not_judged))
    yield _section("Output", _output(run.get("output")))


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {_text(item)}" for item in items)


def _chosen(tasks: Mapping[str, Json], wanted: Callable[[Json], bool], detail: Callable[[Json], str]) -> str:
    return _list(": ".join(filter(None, (name, detail(task)))) for name, task in tasks.items() if wanted(task))


def _failed(task: Json) -> bool:
    """Failed with an error; a decision that came out false has none, and is no failure."""
    return task.get("status") == "FAILED" and task.get("error") is not None


def _task_table(tasks: Mapping[str, Json]) -> str:
    rows = [
        [name, _status(task), str(task.get("visits", "")), str(task.get("attempts", "")), _notes(task)]
        for name, task in tasks.items()
    ]
    return _table(["task", "status", "visits", "attempts", "notes"], rows) if rows else ""


def _status(task: Json) -> str:
    reason = task.get("reason")
    return f"{task.get('status', '')} ({reason})" if reason else str(task.get("status", ""))


def _why_unverified(task: Json) -> str:
    return "its fallback stood in" if task.get("fallback_used") else "its verification is false"


def _notes(task: Json) -> str:
    notes = [
        _error_of(task),
        "fallback used" if task.get("fallback_used") else "",
        "not verified" if task.get("verified") is False else "verified" if task.get("verified") else "",
    ]
    return "; ".join(note for note in notes if note)


def _error_of(task: Json) -> str:
    error = task.get("error") or {}
    kind = " ".join(str(error[key]) for key in ("kind", "type") if error.get(key))
    return ": ".join(str(part) for part in (kind, error.get("message")) if part)


def _reason(reason: Json | None) -> str | None:
    if not reason:
        return None
    facts = [str(reason[key]) for key in ("kind", "task", "setting", "count", "message") if reason.get(key) is not None]
    return ": ".join(facts)


def _rollback(rollback: Json) -> str:
    parts = [f"{rollback.get('task')}: back to {rollback.get('to') or 'the start'}"]
    parts += [
        f"{words} {', '.join(map(str, rollback[key]))}"
        for key, words in (("compensated", "undone"), ("not_compensated", "not undone"), ("undone", "context undone"))
        if rollback.get(key)
    ]
    kept: Json = rollback.get("kept") or {}
    parts += [f"{key} stays, {task} has written it since" for key, task in kept.items()]
    if not rollback.get("finished", True):
        parts.append("not finished")
    return "; ".join(parts)


def _question(waiting: Json) -> str:
    about = waiting.get("task") or "the plan"
    details = [str(waiting.get("kind", ""))]
    details += [
        f"{key} {waiting[key]}" for key in ("visit", "item", "risk", "approval") if waiting.get(key) is not None
    ]
    parameters = waiting.get("parameters")
    if parameters:
        details.append(f"parameters {_json(parameters)}")
    return f"{about}: {', '.join(details)}"


def _decision(approval: Json) -> str:
    about = approval.get("task") or "the plan"
    by = f" by {approval['by']}" if approval.get("by") else ""
    why = f": {approval['why']}" if approval.get("why") else ""
    return f"{about}: {approval.get('decision', '')}{by}{why}"


def _criterion(item: Json) -> str:
    check = f" ({item['check']})" if item.get("check") and item.get("text") else ""
    return f"{str(item.get('verdict')).replace('_', ' ')}: {item.get('text') or item.get('check')}{check}"


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f} s"


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.1%}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _output(value: Any) -> str:
    """The output as a block of JSON; its fence is longer than any in it."""
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    if len(text) > _MOST_OUTPUT:
        text = text[:_MOST_OUTPUT] + "\n… (cut)"
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}json\n{text}\n{fence}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [list(head), *([_text(clip(one_line(cell), _MOST_COLUMNS)) for cell in row] for row in rows)]
    columns = [max(3, *(width(row[place]) for row in cells)) for place in range(len(head))]
    lines = ["| " + " | ".join(map(pad, row, columns)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (column + 2) for column in columns) + "|")
    return "\n".join(lines)


def _text(value: object) -> str:
    """Text that Markdown takes for nothing but text, on one line."""
    return _SPECIAL.sub(_backslashed, one_line(str(value)))


def _backslashed(match: re.Match[str]) -> str:
    return re.sub(r"(\W|_)", r"\\\1", match.group())
