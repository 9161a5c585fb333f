"""For tests of agents: skills, planners and models that follow a script, and a clock on which no time is lost.

    clock = SimulatedClock()
    book = ScriptedSkill("book", [OSError("down"), Takes(3600, {"cost": 80})], clock=clock)
    engine = PlannerEngine([book], clock=clock)

With a simulated clock an hour of waiting takes no time: whenever the event loop has nothing else to do, the clock
jumps to the next moment that somebody waits for. What really waits (a socket, a long `time.sleep`) does not see it.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from fsm_agent.errors import UsageError
from fsm_agent.llm.protocol import ModelRequest, Reply, ReplyStream, Step
from fsm_agent.llm.tokens import usage_of
from fsm_agent.plan.model import Plan
from fsm_agent.planner.protocol import PlanRequest, Proposal
from fsm_agent.skills.declaration import ATTRIBUTE, declaration_of, skill
from fsm_agent.skills.threads import THREADS

__all__ = ["FixedRandom", "ScriptedModel", "ScriptedPlanner", "ScriptedSkill", "SimulatedClock", "Takes"]

EPOCH = 1_700_000_000.0
"""The time of day at which a simulated clock begins, in seconds since 1970."""

_POLL = 0.0005


@dataclass(slots=True, eq=False)
class _SimulatedTimer:
    """A call that is to come on a simulated clock."""

    callback: Callable[[], object] | None

    def cancel(self) -> None:
        """Forget the call."""
        self.callback = None


class SimulatedClock:
    """A clock that stands still while anything happens, and jumps ahead when all that is left is to wait."""

    def __init__(self, start: float = 0.0) -> None:
        """`start` is the first reading of `monotonic`, in seconds."""
        self._now = start
        self._timers: list[tuple[float, int, _SimulatedTimer]] = []
        self._numbers = count()
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> float:
        """The time of day, in seconds since 1970."""
        return EPOCH + self._now

    def monotonic(self) -> float:
        """Simulated seconds."""
        return self._now

    def call_later(self, delay: float, callback: Callable[[], object]) -> _SimulatedTimer:
        """Call back once the clock has jumped that far."""
        timer = _SimulatedTimer(callback)
        heapq.heappush(self._timers, (self._now + max(0.0, delay), next(self._numbers), timer))
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            loop.call_soon(self._look, loop)
        return timer

    async def sleep(self, delay: float) -> None:
        """Wait, in simulated time."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(delay, partial(_wake, woken))
        try:
            await woken
        finally:
            timer.cancel()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Jump if nothing else is to be done; look again later if anybody still waits."""
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        if self._loop is not loop or not self._timers:
            self._loop = None
            return
        if THREADS.busy:
            loop.call_later(_POLL, self._look, loop)
            return
        if not getattr(loop, "_ready", None):  # the loop's own list of what is to be done: empty, so all wait
            self._jump()
        loop.call_soon(self._look, loop)

    def _jump(self) -> None:
        moment = self._timers[0][0]
        self._now = max(self._now, moment)
        while self._timers and self._timers[0][0] <= moment:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                timer.callback()


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


@dataclass(frozen=True, slots=True)
class Takes:
    """A scripted outcome that comes after some seconds of the clock."""

    seconds: float
    outcome: Any = None


class ScriptedSkill:
    """An async skill that does what its script says, one entry a call; the last entry repeats.

    An entry is a value to return, an exception to raise, a function of the parameters, or `Takes` around one of them.
    `calls` are the parameters of each call.
    """

    def __init__(
        self,
        name: str,
        outcomes: Sequence[Any] = ({},),
        *,
        clock: SimulatedClock | None = None,
        **declaration: Any,
    ) -> None:
        """`declaration` goes to `@skill`: risk, idempotent, retry_on, …"""
        if isinstance(outcomes, (str, bytes, Mapping)) or not outcomes:
            raise UsageError("the script of a skill is a list with at least one outcome", hint="write [outcome]")
        self.calls: list[dict[str, Any]] = []
        self._outcomes = list(outcomes)
        self._clock = clock

        async def scripted(**parameters: Any) -> Any:
            return await self._play(parameters)

        self.function = skill(name, **declaration)(scripted)
        setattr(self, ATTRIBUTE, declaration_of(self.function))

    async def __call__(self, **parameters: Any) -> Any:
        """One call, as a skill."""
        return await self._play(parameters)

    async def _play(self, parameters: dict[str, Any]) -> Any:
        self.calls.append(parameters)
        outcome = self._outcomes[min(len(self.calls), len(self._outcomes)) - 1]
        if isinstance(outcome, Takes):
            await (self._clock.sleep(outcome.seconds) if self._clock else asyncio.sleep(outcome.seconds))
            outcome = outcome.outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome(**parameters) if callable(outcome) else outcome


class ScriptedPlanner:
    """A planner that proposes its plans one after the other. An exception among them is raised."""

    def __init__(self, proposals: Iterable[Plan | Mapping[str, Any] | BaseException]) -> None:
        self._proposals = list(proposals)
        self.requests: list[PlanRequest] = []

    async def propose(self, request: PlanRequest) -> Proposal:
        """The next plan of the script; the last one repeats."""
        self.requests.append(request)
        proposal = self._proposals[min(len(self.requests), len(self._proposals)) - 1]
        if isinstance(proposal, BaseException):
            raise proposal
        return Proposal(proposal, author="script")


class ScriptedModel:
    """A model that answers from a list, one entry a question; the last entry repeats.

    An entry is a text, data (sent as JSON), a `Reply`, an exception to raise, a function of the request that gives one
    of these, or `Takes` around one of them. `requests` are the questions. What it does not count, it estimates.
    """

    def __init__(self, answers: Sequence[Any], *, clock: SimulatedClock | None = None) -> None:
        if isinstance(answers, (str, bytes, Mapping)) or not answers:
            raise UsageError("the script of a model is a list with at least one answer", hint="write [answer]")
        self.requests: list[ModelRequest] = []
        self._answers = list(answers)
        self._clock = clock

    async def complete(self, request: ModelRequest) -> Reply:
        """The next answer."""
        self.requests.append(request)
        answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        seconds = 0.0
        if isinstance(answer, Takes):
            seconds, answer = answer.seconds, answer.outcome
            await (self._clock.sleep(seconds) if self._clock else asyncio.sleep(seconds))
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Reply):
            return answer
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        usage = usage_of(None, request.messages, text)
        step: Step | None = "json_schema" if request.schema is not None else None
        return Reply(text, usage, "stop", "scripted", seconds, step)

    def stream(self, request: ModelRequest) -> ReplyStream:
        """The next answer, word by word."""
        return ReplyStream(self._parts(request))

    async def _parts(self, request: ModelRequest) -> AsyncGenerator[str | Reply]:
        reply = await self.complete(request)
        for piece in re.findall(r"\s*\S+|\s+$", reply.text):
            yield piece
        yield reply


class FixedRandom:
    """A random source that always gives the same number."""

    def __init__(self, value: float = 0.5) -> None:
        self._value = value

    def random(self) -> float:
        """The number."""
        return self._value
