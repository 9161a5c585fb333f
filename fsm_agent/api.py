"""The engine as a library: plans in, results out."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Unpack

from fsm_agent.clock import Clock, RandomSource, SystemClock, system_random
from fsm_agent.core.events import CancelAsked, PauseAsked, RunStarted, Verdict
from fsm_agent.core.result import RunResult
from fsm_agent.core.run import Run
from fsm_agent.engine.approving import Approver
from fsm_agent.engine.driver import Driver
from fsm_agent.engine.listening import Listener
from fsm_agent.engine.options import RunOptions, check_options, checked_approver, checked_listener, checked_listeners
from fsm_agent.engine.planning import Planning, Prepared
from fsm_agent.engine.runs import Handle, Runs, RunStream
from fsm_agent.engine.services import Services
from fsm_agent.errors import InvalidPlan, RunNotActive, UsageError
from fsm_agent.journal.memory import MemoryJournal
from fsm_agent.plan.catalog import Catalog
from fsm_agent.plan.loader import PlanSource, check_inputs, check_plan
from fsm_agent.plan.model import Plan
from fsm_agent.planner.protocol import Planner
from fsm_agent.skills.registry import SkillRegistry, SkillSource

VERDICTS: Mapping[str, Verdict] = {
    "approve": "approved", "approved": "approved", "reject": "rejected", "rejected": "rejected", "rerun": "rerun",
    "done": "done", "skip": "skip", "fail": "fail",
}  # fmt: skip
"""The words for a decision."""

_CACHED_PLANS = 64


class PlannerEngine:
    """Runs plans with skills. One engine drives many runs at once, in one event loop at a time.

    Args:
        skills: a dict of name → function, a list of functions, the path of a file or a folder, or a registry.
        planner: gives a plan where `run` is called without one.
        workers: kinds of workers and their skills, besides those that a plan names.
        default_skill: the skill for tasks that name nobody.
        approver: asked for each approval; without one a run pauses and waits for `decide`.
        listeners: called with every event of every run, as frozen records; one that raises is logged, and that is all.
        clock, random, ids: where time, chance and run ids come from.
    """

    def __init__(  # noqa: PLR0913 - all but the first are for those who want them
        self,
        skills: SkillSource | SkillRegistry = None,
        *,
        planner: Planner | None = None,
        workers: Mapping[str, str] | None = None,
        default_skill: str | None = None,
        approver: Approver | None = None,
        listeners: Iterable[Listener] = (),
        clock: Clock | None = None,
        random: RandomSource | None = None,
        ids: Callable[[], str] | None = None,
    ) -> None:
        self.skills = skills if isinstance(skills, SkillRegistry) else SkillRegistry(skills, clock=clock)
        self._planner = planner
        self._workers = dict(workers or {})
        self._default_skill = default_skill
        self._approver = checked_approver(approver)
        self._listeners = checked_listeners(listeners)
        self._services = Services(self.skills, clock or SystemClock(), random or system_random())
        self._ids = ids or (lambda: uuid.uuid4().hex)
        self._runs = Runs()
        self._checked: dict[int, tuple[Plan, object, Prepared]] = {}

    # Running --------------------------------------------------------------------------------------------------------

    async def run(self, plan: PlanSource | None = None, **options: Unpack[RunOptions]) -> RunResult:
        """Run a plan to its end, or to a pause.

        Args:
            plan: a Plan, data in any of the accepted spellings, or the path of a plan file. Without one the engine's
                planner is asked.
            options: goal, inputs, run_id, grants, labels, approver, deadline, max_parallel: see `RunOptions`.

        Cancelling the awaiting task cancels the run; its finalizers still run.

        Raises:
            InvalidPlan: the plan or the inputs have problems; nothing was run.
            UsageError: a file cannot be read, or an argument is of no use.
            RunExists: a run of that id is in hand.
        """
        return await self._drive(self._open(plan, options))

    def stream(self, plan: PlanSource | None = None, **options: Unpack[RunOptions]) -> RunStream:
        """The same as `run`, step by step: `async for event in engine.stream(plan)`.

        The run goes on as its events are taken. Leaving early and closing the stream cancels it.
        """
        return RunStream(self._open(plan, options), self._runs)

    def run_sync(self, plan: PlanSource | None = None, **options: Unpack[RunOptions]) -> RunResult:
        """`run` for programs without an event loop; the same arguments. Raises UsageError inside of one."""
        return run_sync(self.run(plan, **options))

    async def resume(self, run_id: str) -> RunResult:
        """Go on with a paused run. Raises UnknownRun, and RunNotActive if it is driven already."""
        handle = self._runs.get(run_id)
        if handle.driven or handle.run.phase != "paused":
            raise RunNotActive(f"run {run_id!r} is not paused", hint="only a paused run can be resumed")
        handle.driver.fire_resume()
        return await self._drive(handle)

    async def pause(self, run_id: str, *, by: str | None = None, why: str | None = None) -> None:
        """Ask a live run to pause: what runs is let finish first. Returns at once."""
        handle = self._going(run_id)
        if handle.run.phase != "paused":
            handle.driver.tell(PauseAsked(by=by, why=why))

    async def cancel(self, run_id: str, *, by: str | None = None, why: str | None = None) -> RunResult | None:
        """End a run. A live one is told, and ends within its grace time: its result goes to whoever awaits it.

        A paused one is ended here and now, and its result is returned.
        """
        handle = self._going(run_id)
        handle.driver.tell(CancelAsked(by=by, why=why))
        if not handle.driven and handle.run.phase == "paused":
            return await self._drive(handle)
        return None

    async def decide(
        self,
        run_id: str,
        task: str | None,
        decision: str,
        *,
        by: str | None = None,
        why: str | None = None,
        result: Any = None,
    ) -> None:
        """Decide what a run waits for: `approve` or `reject`, or about a failed task `rerun done skip fail`.

        `task` is the task's id, or the approval's where several wait for one task. `result` is the data of a task that
        is `done`. A live run goes on by itself; a paused one by `resume`. Raises DecisionRefused, UnknownRun, NotJson.
        """
        verdict = VERDICTS.get(decision)
        if verdict is None:
            raise UsageError(f"{decision!r} is no decision", hint=f"one of: {', '.join(VERDICTS)}")
        self._runs.get(run_id).driver.decide(task, verdict, by=by, why=why, result=result)

    def status(self, run_id: str) -> RunResult:
        """The present state of a run in hand. Raises UnknownRun."""
        return self._runs.get(run_id).result()

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs in hand: live and paused ones."""
        return self._runs.ids()

    def add_listener(self, listener: Listener) -> None:
        """Call a function with every event of the runs that start from now on."""
        self._listeners.append(checked_listener(listener))

    async def aclose(self) -> None:
        """End all runs in hand: live ones are told to cancel, paused ones are cancelled."""
        for handle in self._runs:
            if not handle.run.final:
                await self.cancel(handle.run.run_id, why="the engine is closing")

    async def __aenter__(self) -> PlannerEngine:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # Checking -------------------------------------------------------------------------------------------------------

    @property
    def catalog(self) -> Catalog:
        """What plans may name here."""
        return Catalog(self.skills.specs(), self._workers, self._default_skill)

    def check(self, plan: PlanSource) -> Prepared:
        """A plan that is fit to run here. Raises InvalidPlan with all problems."""
        if isinstance(plan, Plan):
            known = self._checked.get(id(plan))
            if known is not None and known[0] is plan and known[1] is self.skills.specs():
                return known[2]
        specs = self.skills.specs()
        checked = check_plan(plan, Catalog(specs, self._workers, self._default_skill))
        if checked.compiled is None:
            raise InvalidPlan(checked.problems)
        prepared = Prepared.of(checked.compiled)
        if isinstance(plan, Plan):
            while len(self._checked) >= _CACHED_PLANS:
                del self._checked[next(iter(self._checked))]
            self._checked[id(plan)] = (plan, specs, prepared)
        return prepared

    # The inside -----------------------------------------------------------------------------------------------------

    def _open(self, plan: PlanSource | None, options: RunOptions) -> Handle:
        """Take a run in hand: everything that can be wrong beforehand is found here."""
        checked = check_options(options)
        prepared = self._given_plan(plan, checked.inputs)
        started = RunStarted(
            goal=checked.goal,
            grants=checked.grants,
            labels={**(prepared.compiled.plan.labels if prepared else {}), **checked.labels},
            max_parallel=checked.max_parallel,
            deadline=checked.deadline,
        )
        given = checked.inputs
        planning = Planning(given, prepared, self._planner, self.check)
        run = Run(checked.run_id or self._ids(), planning.plan_of)
        driver = Driver(
            run,
            self._services,
            MemoryJournal(),
            planning,
            listeners=self._listeners,
            approver=checked.approver or self._approver,
        )
        handle = Handle(run, driver, self._services.clock)
        self._runs.add(handle)
        driver.record(started)
        return handle

    def _given_plan(self, plan: PlanSource | None, given: Mapping[str, Any]) -> Prepared | None:
        if plan is None:
            if self._planner is None:
                raise UsageError("no plan was given, and the engine has no planner", hint="give a plan, or planner=…")
            return None
        prepared = self.check(plan)
        _, problems = check_inputs(prepared.compiled.plan, given)
        if problems:
            raise InvalidPlan(problems)
        return prepared

    def _going(self, run_id: str) -> Handle:
        """A run in hand that is not over yet."""
        handle = self._runs.get(run_id)
        if handle.run.final:
            raise RunNotActive(f"run {run_id!r} is over: it has {handle.run.phase}")
        return handle

    async def _drive(self, handle: Handle) -> RunResult:
        try:
            return await handle.drive()
        finally:
            self._runs.let_go(handle)


def run_sync(work: Coroutine[Any, Any, RunResult]) -> RunResult:
    """Run a coroutine to its end from a program without an event loop. Raises UsageError inside of one."""
    if _in_event_loop():
        work.close()
        raise UsageError("run_sync was called inside an event loop", hint="there, await engine.run(…)")
    return asyncio.run(work)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
