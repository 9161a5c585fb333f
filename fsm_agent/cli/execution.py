"""One run under way on the command line, from its first event here to its exit code."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, cast

from fsm_agent.api import PlannerEngine
from fsm_agent.cli.consent import Consent
from fsm_agent.cli.exits import BY_OUTCOME, INTERRUPTED
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
from fsm_agent.engine.approving import Approver
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.redaction import Redactor
from fsm_agent.views.logs import EventLogger, configure
from fsm_agent.views.progress import ProgressLines

Drive = Callable[[Approver | None], Awaitable[RunResult]]
"""Drives the run to its end or a pause; the approver is asked meanwhile."""


@dataclass(frozen=True, slots=True)
class Execution:
    """A run, and all that it takes to drive it here."""

    session: Session
    engine: PlannerEngine
    compiled: CompiledPlan
    run_id: str
    secrets: tuple[Any, ...] = ()
    """The values of secret inputs: they are in no output."""
    approved: frozenset[str] = frozenset()
    """Tasks whose first visit is approved beforehand."""
    approve_all: bool = False

    def run(self, drive: Drive) -> int:
        """Drive it, tell what came of it, and return the exit code."""
        screen = self._listen()
        result, interrupted = run_in_loop(self._drive(drive, screen))
        self._tell(result)
        if interrupted and result.outcome in ("paused", "cancelled"):
            return INTERRUPTED
        return BY_OUTCOME[result.outcome]

    @property
    def _redactor(self) -> Redactor:
        return Redactor(self.secrets)

    def _listen(self) -> Screen:
        """Progress lines and logs. Where a program reads both streams, logs that it asked for take the lines' place."""
        settings, output = self.session.settings, self.session.output
        wants_logs = settings.log_level is not None or settings.log_format is not None
        log = cast(Any, Screen(output, output.err))
        configure(settings.log_format or "console", settings.log_level or "warning", log, FieldRedactor(self.secrets))
        screen = Screen(output, output.err if self.session.json else output.out)
        if not (self.session.json and wants_logs):
            lines = ProgressLines(cast(Any, screen), self.compiled.plan, redactor=self._redactor)
            self.engine.add_listener(lines)
        if wants_logs:
            self.engine.add_listener(EventLogger(settings.log_level or "info"))
        return screen

    async def _drive(self, drive: Drive, screen: Screen) -> tuple[RunResult, bool]:
        """The result, and whether Ctrl-C had a part in it."""
        terminal = self._terminal(screen)
        consent = Consent(self.approved, self.approve_all, terminal)
        with Interrupts(self.engine, self.run_id, self.session.output, self.session.signals, terminal) as interrupts:
            return await drive(consent.approver), interrupts.presses > 0

    def _terminal(self, screen: Screen) -> Terminal | None:
        """The person to ask, where there is one: at a terminal on both sides, and no program reading."""
        source = sys.stdin
        if self.session.json or not self.session.output.is_terminal or source is None or not source.isatty():
            return None
        return Terminal(self.session.output, screen, source.fileno(), self._redactor)

    def _tell(self, result: RunResult) -> None:
        output = self.session.output
        document = shown(result, self._redactor)
        if self.session.json:
            output.document(document)
        else:
            output.text(f"\n{summary_text(document, bounded=output.is_terminal)}")
        if result.outcome == "paused":
            graph = self.compiled.graph
            finalizers = [graph.ids[place] for place in graph.finalizers]
            lost = _lost_text(result, self.approved, finalizers)
            output.note(self.session.follow_up.going_on(result) if result.resumable else lost)
        if output.lost is not None:
            output.note(f"the run ended ({result.phase}); its output could not be written")


def _lost_text(result: RunResult, approved: Collection[str], finalizers: Iterable[str]) -> str:
    """What a pause means for a run that is kept nowhere."""
    left = [task for task in finalizers if result.tasks and result.tasks[task].status not in SETTLED]
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
