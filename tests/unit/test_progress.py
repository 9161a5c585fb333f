"""The plain progress lines of a run."""

from __future__ import annotations

import io
from typing import Any, get_args

import msgspec
import pytest

from fsm_agent.core import events as ev
from fsm_agent.plan.model import Plan
from fsm_agent.redaction import Redactor
from fsm_agent.views.progress import ProgressLines
from fsm_agent.views.text import clip, harmless, one_line, pad, width, wrap

ERROR = ev.TaskError("exception", "no route", "OSError", 1)
PLAN = Plan.model_validate(
    {
        "tasks": [
            {"id": "sales", "skill": "a"},
            {"id": "库存查询", "skill": "b"},
            {"id": "big", "type": "condition", "verification": "True"},
        ]
    }
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(*events: ev.Event, plan: Plan | None = PLAN, **options: Any) -> list[str]:
    stream = io.StringIO()
    listener = ProgressLines(stream, plan, **options)
    for event in events:
        listener(event)
    return stream.getvalue().splitlines()


def phase(source: str, dest: str, trigger: str, guard: str | None = None, at: float = 0.0) -> ev.PhaseChanged:
    return ev.PhaseChanged(at=at, trigger=trigger, source=source, dest=dest, guard=guard)


def test_a_whole_run_reads_as_a_person_would_tell_it() -> None:
    assert told(
        ev.RunStarted(at=100.0, run_id="r1", goal="Why did sales\nfall?"),
        ev.PlanAdopted(at=100.0, version=1, digest="d"),
        phase("idle", "planning", "start", at=100.0),
        phase("planning", "executing", "planned", "plan_is_valid", at=100.0),
        ev.TaskStarted(at=100.0, task="sales", visit=1),
        ev.Progress(at=100.2, task="sales", visit=1, attempt=1, share=0.5, text="reading"),
        ev.TaskEvaluated(at=100.4, task="sales", visit=1, status="SUCCEEDED", attempts=1),
        phase("executing", "evaluating", "settled", "something_to_judge", at=100.4),
        ev.TaskStarted(at=100.4, task="库存查询", visit=2),
        ev.AttemptFailed(at=100.5, task="库存查询", visit=2, attempt=1, error=ERROR, delay=0.5),
        ev.TaskEvaluated(at=101.4, task="库存查询", visit=2, status="FAILED", attempts=2, error=ERROR),
        ev.TaskEvaluated(at=101.4, task="big", visit=1, status="FAILED"),
        ev.ApprovalAsked(at=101.4, approval="ab12", kind="task", task="pay", visit=1, risk="high"),
        ev.ApprovalDecided(at=163.0, approval="ab12", decision="approved", task="pay", by="li", why="fine"),
        ev.TaskSkipped(at=163.0, task="pay"),
        ev.RunFinished(at=163.1, run_id="r1", phase="failed", outcome="failed",
                       reason={"kind": "exception", "task": "库存查询", "message": "no route"}),
    ) == [
        "    0.0s  run       r1 · Why did sales fall?",
        "    0.0s  plan      version 1",
        "    0.0s  phase     idle → planning (start)",
        "    0.0s  phase     planning → executing (planned: plan_is_valid)",
        "    0.0s  started   sales",
        "    0.2s  progress  sales     50% · reading",
        "    0.4s  done      sales     took 0.4s",
        "    0.4s  started   库存查询  visit 2",
        "    0.5s  retry     库存查询  again in 0.5s · attempt 1 failed: exception OSError: no route",
        "    1.4s  failed    库存查询  exception OSError: no route · took 1.0s · visit 2 · 2 attempts",
        "    1.4s  false     big",
        "    1.4s  waiting   pay       must be approved · high risk · approval ab12",
        "   63.0s  decided   pay       approved · by li · fine",
        "   63.0s  skipped   pay       its condition is false",
        "   63.1s  failed    run r1 · exception: 库存查询: no route",
    ]  # fmt: skip


def test_the_steps_between_executing_and_evaluating_are_told_only_when_asked_for() -> None:
    steps = [phase("executing", "evaluating", "settled", "g"), phase("evaluating", "executing", "evaluated")]
    assert told(*steps) == []
    assert [line.split("phase     ")[1] for line in told(*steps, every_phase=True)] == [
        "executing → evaluating (settled: g)",
        "evaluating → executing (evaluated)",
    ]


def test_a_fallback_and_a_failed_check_are_told() -> None:
    done = ev.TaskEvaluated(
        task="sales", visit=1, status="SUCCEEDED", attempts=1, error=ERROR, fallback_used=True, verified=False
    )
    assert told(done) == ["    0.0s  done      sales     by its fallback · not verified"]


def test_a_task_that_tells_its_progress_often_is_shown_once_a_second_and_at_its_end() -> None:
    often = [ev.Progress(at=n / 10, task="t", visit=1, attempt=1, share=n / 25) for n in range(26)]
    assert [line.split()[-1] for line in told(*often)] == ["0%", "40%", "80%", "100%"]


def test_secrets_are_masked() -> None:
    lines = told(
        ev.TaskLogged(task="hunter2", visit=1, attempt=1, message="key hunter2", fields={"password": "a b", "n": 1}),
        redactor=Redactor(["hunter2"]),
    )
    assert lines == ["    0.0s  log       hunter2   key *** · password=*** · n=1"]


def test_the_words_of_the_engine_are_no_secrets() -> None:
    error = ev.TaskError("exception", "timeout of data", "OSError", 1)
    events = [
        ev.RunStarted(run_id="data", goal="data"),
        phase("idle", "planning", "start"),
        ev.CallAbandoned(task="data", visit=1, attempt=1, why="timeout"),
        ev.CallAbandoned(task="data", visit=1, attempt=1, why="cancelled"),
        ev.Progress(task="data", visit=1, attempt=1, share=0.5, text="data"),
        ev.TaskEvaluated(task="data", visit=1, status="FAILED", error=error),
        ev.RunFinished(run_id="data", phase="failed", outcome="failed",
                       reason={"kind": "exception", "task": "data", "message": "no data"}),
    ]  # fmt: skip
    secrets = ["data", "timeout", "cancelled", "planning", "exception", "failed"]
    assert [line[10:] for line in told(*events, plan=None, redactor=Redactor(secrets))] == [
        "run       data · ***",
        "phase     idle → planning (start)",
        "abandoned data            its call timed out and goes on",
        "abandoned data            its call was cancelled and goes on",
        "progress  data            50% · ***",
        "failed    data            exception OSError: *** of ***",
        "failed    run data · exception: data: no ***",
    ]


@pytest.mark.parametrize(
    "name", ["\x1b[2J\x1b[31mevil", "a\r\nfake line", "\x9b31m", "a\u202eb", "bell\x07", "x\u2028y"]
)
def test_a_hostile_name_is_one_harmless_line(name: str) -> None:
    lines = told(ev.TaskStarted(task=name, visit=1), ev.PlanRejected(message=name), plan=None)
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


def test_there_are_colours_only_on_a_terminal_or_when_asked_for() -> None:
    event = ev.TaskEvaluated(task="sales", visit=1, status="SUCCEEDED")
    terminal = Terminal()
    ProgressLines(terminal)(event)
    assert "\x1b[32mdone     \x1b[0m" in terminal.getvalue()
    quiet = Terminal()
    ProgressLines(quiet, colour=False)(event)
    assert "\x1b" not in quiet.getvalue() + "".join(told(event))
    assert "\x1b[32m" in "".join(told(event, colour=True))


def test_a_stream_that_cannot_write_chinese_gets_it_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    ProgressLines(stream, PLAN)(ev.TaskStarted(task="库存查询", visit=1))
    assert raw.getvalue().decode("ascii") == "    0.0s  started   \\u5e93\\u5b58\\u67e5\\u8be2\n"


def test_lines_stay_aligned_whatever_the_ids_are() -> None:
    long_plan = Plan.model_validate({"tasks": [{"id": "x" * 100, "skill": "s"}, {"id": "短", "skill": "s"}]})
    lines = told(*(ev.TaskStarted(task=task.id, visit=2) for task in long_plan.tasks), plan=long_plan)
    assert {width(line.split("visit")[0]) for line in lines} == {20 + 28 + 2}


def test_every_kind_of_event_can_be_told() -> None:
    samples = {
        "version": 1, "digest": "d", "message": "m", "trigger": "start", "source": "idle", "dest": "planning",
        "task": "t", "visit": 1, "attempt": 1, "error": ERROR, "why": "timeout", "seconds": 1.0, "status": "FAILED",
        "changes": {"a": 1}, "setting": "max_visits", "count": 3, "approval": "a", "kind": "task",
        "decision": "approved", "share": 0.5, "filter": "f", "when": "before", "what": "changed", "phase": "failed",
        "outcome": "failed", "driver": "d", "upto": 3, "then": "again",
    }  # fmt: skip
    silent = []
    for kind in get_args(ev.AnyEvent):
        required = [field.name for field in msgspec.structs.fields(kind) if field.required]
        if not told(kind(**{name: samples[name] for name in required})):
            silent.append(kind)
    assert silent == [ev.AttemptStarted, ev.ContextChanged, ev.CriteriaJudged]


@pytest.mark.parametrize("kind", get_args(ev.ApprovalKind))
def test_every_kind_of_question_is_told(kind: str) -> None:
    assert "approval a1" in told(ev.ApprovalAsked(approval="a1", kind=kind, task="t"))[0]


def test_criteria_are_counted() -> None:
    event = ev.CriteriaJudged(verdicts=("met", "not_judged", "met"))
    assert told(event) == ["    0.0s  criteria  2 met · 1 not judged"]


def test_text_is_measured_cut_and_filled_in_columns() -> None:
    assert (width("a中"), pad("中", 4), clip("中文字", 4), clip("abc", 3)) == (3, "中  ", "中…", "abc")


def test_text_is_wrapped_at_blanks_then_at_punctuation() -> None:
    assert wrap("one two three", 8, 3) == ("one two", "three")
    assert wrap("results['4'].data['gain'] > 0.2", 21, 2) == ("results['4'].", "data['gain'] > 0.2")
    assert wrap("中文中文中文", 4, 2) == ("中文", "中…")


def test_text_of_unknown_origin_is_made_harmless() -> None:
    assert one_line("  a\n\t b\x1b[0m\x7f\ud800 ") == "a b␛[0m␡�"
    assert harmless("a\n  b\x1b") == "a\n  b␛"
    assert one_line("👩‍🚀 é 中文") == "👩‍🚀 é 中文"


ROLLBACK = [
    (
        ev.RollbackStarted(task="pay", to="room", tasks=("car", "room")),
        "rollback pay back to room · undoing car, room",
    ),
    (ev.RollbackStarted(task="pay"), "rollback pay back to the plan's start · nothing to undo"),
    (ev.CompensationStarted(task="car", visit=2), "undoing car visit 2"),
    (ev.Compensated(task="car", visit=1, status="SUCCEEDED", attempts=2), "undone car 2 attempts"),
    (
        ev.Compensated(task="car", visit=1, status="FAILED", attempts=1, error=ERROR),
        "failed car its compensation: exception OSError: no route",
    ),
    (
        ev.RolledBack(task="pay", kept={"n": "out"}),
        "rollback pay back to the plan's start · all runs again from there · n stays, out has written it since",
    ),
]


@pytest.mark.parametrize(("event", "line"), ROLLBACK, ids=lambda value: getattr(value, "type", None))
def test_each_step_of_a_rollback_is_told(event: ev.Event, line: str) -> None:
    assert [text.split() for text in told(event)] == [["0.0s", *line.split()]]
