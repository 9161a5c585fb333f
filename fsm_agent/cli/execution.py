"""One run, from its first event to its exit code."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, cast

from fsm_agent.api import PlannerEngine
from fsm_agent.cli.consent import Consent
from fsm_agent.cli.exits import BY_PHASE, INTERRUPTED
from fsm_agent.cli.inputs import GivenInputs
from fsm_agent.cli.interrupts import Interrupts
from fsm_agent.cli.log_fields import FieldRedactor
from fsm_agent.cli.loop import run_in_loop
from fsm_agent.cli.question import Terminal
from fsm_agent.cli.results import shown
from fsm_agent.cli.screen import Screen
from fsm_agent.cli.session import Session
from fsm_agent.cli.summary import summary_text
from fsm_agent.core.nodes import SETTLED
from fsm_agent.core.result import RunResult
from fsm_agent.engine.runs import RunStream
from fsm_agent.plan.model import Plan
from fsm_agent.views.logs import EventLogger, configure
from fsm_agent.views.progress import ProgressLines


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the run is to be like."""

    goal: str | None
    run_id: str | None
    grants: tuple[str, ...]
    deadline: float | None
    max_parallel: int | None
    approved: frozenset[str]
    """Tasks whose first visit is approved beforehand."""
    approve_all: bool


@dataclass(frozen=True, slots=True)
class Execution:
    """A plan that is fit to run, and all that it takes to run it."""

    session: Session
    engine: PlannerEngine
    plan: Plan
    inputs: GivenInputs
    wishes: Wishes
    finalizers: tuple[str, ...] = ()
    """The plan's clean-up tasks."""

    def run(self) -> int:
        """Run it, tell what came of it, and return the exit code."""
        screen = self._listen()
        result, interrupted = run_in_loop(self._drive(screen))
        self._tell(result)
        if interrupted and result.phase in ("paused", "cancelled"):
            return INTERRUPTED
        return BY_PHASE[result.phase]

    def _listen(self) -> Screen:
        """Progress lines and logs. Where a program reads both streams, logs that it asked for take the lines' place."""
        settings, output, redactor = self.session.settings, self.session.output, self.inputs.redactor
        wants_logs = settings.log_level is not None or settings.log_format is not None
        log = cast(Any, Screen(output, output.err))
        configure(
            settings.log_format or "console", settings.log_level or "warning", log, FieldRedactor(self.inputs.secrets)
        )
        screen = Screen(output, output.err if self.session.json else output.out)
        if not (self.session.json and wants_logs):
            self.engine.add_listener(ProgressLines(cast(Any, screen), self.plan, redactor=redactor))
        if wants_logs:
            self.engine.add_listener(EventLogger(settings.log_level or "info"))
        return screen

    async def _drive(self, screen: Screen) -> tuple[RunResult, bool]:
        """The result, and whether Ctrl-C had a part in it."""
        wishes = self.wishes
        terminal = self._terminal(screen)
        stream = self.engine.stream(
            self.plan,
            goal=wishes.goal,
            inputs=self.inputs.given,
            run_id=wishes.run_id,
            grants=wishes.grants,
            deadline=wishes.deadline,
            max_parallel=wishes.max_parallel,
            approver=Consent(wishes.approved, wishes.approve_all, terminal).approver,
        )
        with Interrupts(self.engine, stream.run_id, self.session.output, self.session.signals, terminal) as interrupts:
            return await _result_of(stream), interrupts.presses > 0

    def _terminal(self, screen: Screen) -> Terminal | None:
        """The person to ask, where there is one: at a terminal on both sides, and no program reading."""
        source = sys.stdin
        if self.session.json or not self.session.output.is_terminal or source is None or not source.isatty():
            return None
        return Terminal(self.session.output, screen, source.fileno(), self.inputs.redactor)

    def _tell(self, result: RunResult) -> None:
        output = self.session.output
        document = shown(result, self.inputs.redactor)
        if self.session.json:
            output.document(document)
        else:
            output.text(f"\n{summary_text(document, bounded=output.is_terminal)}")
        if result.phase == "paused" and not result.resumable:
            output.note(_pause_text(result, self.wishes.approved, self.finalizers))
        if output.lost is not None:
            output.note(f"the run ended ({result.phase}); its output could not be written")


async def _result_of(stream: RunStream) -> RunResult:
    async for _ in stream:
        pass
    if stream.result is None:
        raise AssertionError("a stream that is at its end has a result")
    return stream.result


def _pause_text(result: RunResult, approved: Collection[str], finalizers: Iterable[str]) -> str:
    """What a pause means while runs are kept nowhere."""
    left = [task for task in finalizers if result.tasks[task].status not in SETTLED]
    cleanup = f"; clean-up was not run: {', '.join(left)}" if left else ""
    consent = _consent(result, approved)
    advice = f"; to consent beforehand, run it with {consent}" if consent else ""
    return f"paused, and not resumable: without a store a run ends with its process{cleanup}{advice}"


def _consent(result: RunResult, approved: Collection[str]) -> str:
    """The options that would have answered. --approve is for a first visit alone."""
    asked = [waiting for waiting in result.waiting if waiting["kind"] == "task"]
    if any(waiting["visit"] > 1 or waiting["task"] in approved for waiting in asked):
        return "--approve-all"
    return " ".join(f"--approve {waiting['task']}" for waiting in asked)
