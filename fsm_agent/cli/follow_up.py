"""The commands that somebody may give next, written so that they can be given as they stand."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from fsm_agent.cli.settings import Settings
from fsm_agent.core.approvals import ALLOWED
from fsm_agent.core.result import RunResult
from fsm_agent.redaction import Redactor
from fsm_agent.views.text import one_line


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Commands for the same store and skills as this one."""

    options: Settings
    """What this command was given as options; what it found elsewhere, the next one finds too."""

    def command(self, name: str, *words: str, flags: tuple[str, ...] = ()) -> str:
        """One command for a shell. A password in the store's URL is `***`."""
        shared = [*flags]
        if self.options.store is not None:
            shared += ["--store", Redactor().text(self.options.store)]
        if name == "resume":
            shared += self._skills()
        if any(word.startswith("-") for word in words):
            return shlex.join(["fsm-agent", name, *shared, "--", *words])
        return shlex.join(["fsm-agent", name, *words, *shared])

    def _skills(self) -> list[str]:
        given = [word for path in self.options.skills or () for word in ("--skills", path)]
        if self.options.default_skill is not None:
            given += ["--default-skill", self.options.default_skill]
        for name, address in (self.options.workers or {}).items():
            given += ["--worker", f"{name}={address}"]
        return given

    def going_on(self, result: RunResult) -> str:
        """What somebody may do now with a run that rests in a store."""
        lines = [f"paused: {result.reason['message']}" if result.reason else "paused"]
        for asked in result.waiting:
            lines += [*_why_again(result, asked), self._answer(result.run_id, asked)]
        return "\n  ".join([*lines, self.command("resume", result.run_id)])

    def _answer(self, run_id: str, asked: dict[str, Any]) -> str:
        if asked["kind"] == "plan":
            return f"{self.command('approve', run_id, flags=('--plan',))}    (or reject)"
        if asked["kind"] == "task":
            return f"{self.command('approve', run_id, asked['task'])}    (or reject)"
        first, *others = ALLOWED[asked["kind"]]
        return f"{self.command('decide', run_id, asked['task'], first)}    (or {', '.join(others)})"


def _why_again(result: RunResult, asked: dict[str, Any]) -> list[str]:
    """Why a task is asked about that was approved already: what was approved is not what would be called now."""
    if asked["kind"] != "task":
        return []
    visits = [(given["task"], given["visit"]) for given in result.approvals if given["decision"] == "approved"]
    if (asked["task"], asked["visit"]) not in visits:
        return []
    words = "was approved, but its parameters are others now: a secret is another one, or FSM_AGENT_KEY is not the same"
    return [f"{one_line(asked['task'])} {words}"]
