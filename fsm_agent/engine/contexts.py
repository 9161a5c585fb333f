"""The engine's side of a skill's context."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from fsm_agent.core.events import Event, Progress, TaskLogged
from fsm_agent.engine.host import RunHost
from fsm_agent.engine.visits import Visit
from fsm_agent.jsonable import copy_plain, encode
from fsm_agent.skills.context import SkillContext
from fsm_agent.skills.skill import Skill


def idempotency_key(run_id: str, task: str, visit: int, *more: str) -> str:
    """The same for every attempt of one visit of one task of one run. ASCII, so that it can be an HTTP header.

    With the word `compensation`: the same for every call that undoes that visit.
    """
    return hashlib.sha256(encode([run_id, task, visit, *more])).hexdigest()[:32]


def context_for(host: RunHost, visit: Visit, skill: Skill) -> SkillContext:
    """A context for one attempt of a visit."""
    task = visit.task.task
    declared = task.writes if task.writes is not None else skill.spec.writes
    run_id = host.run.run_id
    more = ("compensation",) if visit.task.undoes else ()
    return SkillContext(
        _Port(host, visit),
        host.task_info(visit.task),
        run_id=run_id,
        visit=visit.number,
        attempt=visit.attempts,
        idempotency_key=partial(idempotency_key, run_id, task.id, visit.number, *more),
        declared=declared,
    )


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _Port:
    """What a context reads and tells. Telling may come from a thread: it is recorded on the event loop."""

    __slots__ = ("_attempt", "_host", "_visit")

    def __init__(self, host: RunHost, visit: Visit) -> None:
        self._host = host
        self._visit = visit
        self._attempt = visit.attempts

    def read(self, key: str, default: Any) -> Any:
        """The committed value as of the visit's start, as a fresh copy."""
        return self._visit.view.get(key, default)

    def results(self) -> Mapping[str, Mapping[str, Any]]:
        """The results of the task's dependencies."""
        run = self._host.run
        places = run.compiled.graph.dependencies[self._visit.place]
        return {run.compiled.graph.ids[place]: copy_plain(run.schedule.nodes[place].result()) for place in places}

    def tell_progress(self, share: float, text: str) -> None:
        """Record progress."""
        visit = self._visit
        text = self._host.secrets.out_of_text(text)
        self._tell(Progress(task=visit.id, visit=visit.number, attempt=self._attempt, share=share, text=text))

    def tell_log(self, message: str, fields: Mapping[str, Any]) -> None:
        """Record a log line."""
        visit, secrets = self._visit, self._host.secrets
        self._tell(
            TaskLogged(
                task=visit.id,
                visit=visit.number,
                attempt=self._attempt,
                message=secrets.out_of_text(message),
                fields=secrets.out_of(dict(fields)),
            )
        )

    def _tell(self, event: Event) -> None:
        loop = self._host.loop
        if loop is _running_loop():
            self._record(event)
        elif loop is not None:
            with suppress(RuntimeError):  # the loop is closed: a thread that was left behind talks to nobody
                loop.call_soon_threadsafe(self._record, event)

    def _record(self, event: Event) -> None:
        if not self._host.run.final and self._visit.attempts == self._attempt and self._visit.calling:
            self._host.record(event)
