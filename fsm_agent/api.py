"""The engine as a library: plans in, results out."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Unpack

from fsm_agent.clock import Clock, RandomSource, SystemClock, system_random
from fsm_agent.core.events import CancelAsked, PauseAsked, RunStarted, TakenUpFor, Verdict
from fsm_agent.core.result import RunResult
from fsm_agent.core.run import Run
from fsm_agent.engine.approving import Approver
from fsm_agent.engine.blocking import run_sync
from fsm_agent.engine.driver import Driver
from fsm_agent.engine.keeping import Keeper, keeper_of, waiting_for
from fsm_agent.engine.keys import DigestKey
from fsm_agent.engine.listening import Listener
from fsm_agent.engine.options import (
    RunOptions,
    check_options,
    check_words,
    checked_approver,
    checked_listener,
    checked_listeners,
)
from fsm_agent.engine.planning import Planning, Prepared
from fsm_agent.engine.recovering import RECOVERED_AT_ONCE, Recovery, recover
from fsm_agent.engine.runs import Handle, Runs, RunStream
from fsm_agent.engine.secrets import SecretInputs, Secrets, given_again, inputs_for, known_secrets, with_secrets
from fsm_agent.engine.services import Services
from fsm_agent.errors import (
    InvalidPlan,
    MissingSecret,
    RunHeld,
    RunNotActive,
    StoreBusy,
    StoreUnavailable,
    UsageError,
)
from fsm_agent.journal.loading import StoredPlans, plan_of_run
from fsm_agent.journal.memory import MemoryJournal
from fsm_agent.journal.protocol import Journal
from fsm_agent.journal.store import Store
from fsm_agent.plan.catalog import Catalog
from fsm_agent.plan.compiled import CompiledPlan
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
        store: where runs are kept: the path or URL of a store, or a store. Without one they are in memory only.
        secrets: gives secret inputs by their name, or None: at a run's start, and again when it is resumed.
        key: for digests over secrets, up to 64 bytes. By default it is kept beside a SQLite store.
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
        store: Store | str | os.PathLike[str] | None = None,
        secrets: Callable[[str], Any] | None = None,
        key: bytes | None = None,
    ) -> None:
        self.skills = skills if isinstance(skills, SkillRegistry) else SkillRegistry(skills, clock=clock)
        self._planner = planner
        self._workers = dict(workers or {})
        self._default_skill = default_skill
        self._approver = checked_approver(approver)
        self._listeners = checked_listeners(listeners)
        clock = clock or SystemClock()
        self._ids = ids or (lambda: uuid.uuid4().hex)
        self._keeper = keeper_of(store, clock, key) if store is not None else None
        executor = self._keeper.executor if self._keeper is not None else None
        self._services = Services(self.skills, clock, random or system_random(), executor=executor)
        self._resolver = secrets
        self._key = self._keeper.key if self._keeper is not None else DigestKey(key)
        self._words = Catalog(workers=self._workers, default_skill=default_skill)
        """What the engine adds to a plan's words, without the skills."""
        self._stored: StoredPlans | None = None
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

    async def resume(
        self, run_id: str, *, inputs: Mapping[str, Any] | None = None, approver: Approver | None = None
    ) -> RunResult:
        """Go on with a paused run; with a store, also with one whose process has died.

        `inputs` gives secret inputs again, which no store holds; where one is missing the run stays as it is, and the
        result says which. `approver` stands in for the engine's.

        Raises UnknownRun, RunNotActive (it is driven here, or over), RunHeld (another process drives it), InvalidPlan
        (skills are gone), JournalBroken.
        """
        if self._keeper is not None and run_id not in self._runs.ids():
            return await self._resume_stored(run_id, inputs, approver)
        handle = self._runs.get(run_id)
        if handle.driven or handle.run.phase != "paused":
            raise RunNotActive(f"run {run_id!r} is not paused", hint="only a paused run can be resumed")
        handle.driver.fire_resume()
        return await self._drive(handle)

    async def recover(self, *, inputs: SecretInputs = None, most: int = RECOVERED_AT_ONCE) -> Recovery:
        """Go on with every run of the store whose process has died, `most` of them at once.

        `inputs` gives secret inputs again, or is a function that gives them for a run's plan. A run that cannot be
        taken up is named with its error, and the others go on. Raises UsageError without a store.
        """
        heads = await self._kept().left_behind()
        return await recover([head.run_id for head in heads], partial(self._recovered, inputs), most)

    async def pause(
        self, run_id: str, *, by: str | None = None, why: str | None = None, inputs: SecretInputs = None
    ) -> None:
        """Ask a live run to pause: what runs is let finish first. Returns at once.

        A run that another process drives is asked through the store. `inputs` gives its secret inputs, so that they
        are left out of what is said: here, in `cancel` and in `decide`.
        """
        check_words(by=by, why=why)
        if self._keeper is not None and run_id not in self._runs.ids():
            await self._keeper.ask_driver(run_id, "pause", by, why, known_secrets(inputs, self._resolver))
            return
        handle = self._going(run_id)
        if handle.run.phase != "paused":
            handle.driver.tell(PauseAsked(by=by, why=why))

    async def cancel(
        self, run_id: str, *, by: str | None = None, why: str | None = None, inputs: SecretInputs = None
    ) -> RunResult | None:
        """End a run. A live one is told, and ends within its grace time: its result goes to whoever awaits it.

        One that nobody drives is ended here and now, and its result is returned; one that another process drives is
        asked to end through the store. `inputs` gives secret inputs again, for its clean-up.
        """
        check_words(by=by, why=why)
        if self._keeper is not None and run_id not in self._runs.ids():
            return await self._cancel_stored(run_id, by, why, inputs)
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
        inputs: SecretInputs = None,
    ) -> None:
        """Decide what a run waits for: `approve` or `reject`, or about a failed task `rerun done skip fail`.

        `task` is the task's id, or the approval's where several wait for one task; None is the plan itself. `result` is
        the data of a task that is `done`. A live run goes on by itself; a paused one by `resume`. Raises
        DecisionRefused, UnknownRun, NotJson.
        """
        verdict = VERDICTS.get(decision)
        check_words(by=by, why=why)
        if verdict is None:
            raise UsageError(f"{decision!r} is no decision", hint=f"one of: {', '.join(VERDICTS)}")
        if self._keeper is not None and run_id not in self._runs.ids():
            known = known_secrets(inputs, self._resolver)
            await self._keeper.decide(run_id, task, verdict, by, why, result, known)
            return
        self._runs.get(run_id).driver.decide(task, verdict, by=by, why=why, result=result)

    def status(self, run_id: str) -> RunResult:
        """The present state of a run in hand. Raises UnknownRun."""
        return self._runs.get(run_id).result()

    async def show(self, run_id: str, *, at: int | None = None) -> RunResult:
        """A run as the store has it, or as it was after its event number `at`. Raises UnknownRun, JournalBroken."""
        return await self._kept().shown(run_id, at)

    async def plan_of(self, run_id: str) -> CompiledPlan | None:
        """The plan of a run of the store, for which no run is folded; None while it has none.

        Raises UnknownRun, InvalidPlan (skills are gone), JournalBroken.
        """
        keeper = self._kept()
        return await keeper.do(plan_of_run, keeper.store, run_id, self._stored_plans(lenient=False))

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
        if self._keeper is not None and not self._runs.ids():
            self._keeper.close()

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
        prepared = self._given_plan(plan)
        given = checked.inputs
        if prepared is not None:
            given = with_secrets(prepared.compiled.plan, given, self._resolver)
            _, problems = check_inputs(prepared.compiled.plan, given)
            if problems:
                raise InvalidPlan(problems)
        started = RunStarted(
            goal=checked.goal,
            grants=checked.grants,
            labels={**(prepared.compiled.plan.labels if prepared else {}), **checked.labels},
            max_parallel=checked.max_parallel,
            deadline=checked.deadline,
            plan_approval=checked.require_plan_approval,
        )
        planning = Planning(given, prepared, self._planner, self.check, self._words)
        run = Run(checked.run_id or self._ids(), planning.plan_of)
        journal = MemoryJournal() if self._keeper is None else self._keeper.journal(run)
        handle = self._handle(run, planning, journal, checked.approver)
        self._runs.add(handle)
        handle.driver.record(started)
        return handle

    def _handle(self, run: Run, planning: Planning, journal: Journal, approver: Approver | None) -> Handle:
        driver = Driver(
            run,
            self._services,
            journal,
            planning,
            listeners=self._listeners,
            approver=approver or self._approver,
            secrets=Secrets(self._key),
        )
        return Handle(run, driver, self._services.clock, keeper=self._keeper)

    def _given_plan(self, plan: PlanSource | None) -> Prepared | None:
        if plan is not None:
            return self.check(plan)
        if self._planner is None:
            raise UsageError("no plan was given, and the engine has no planner", hint="give a plan, or planner=…")
        return None

    # Runs of the store ----------------------------------------------------------------------------------------------

    def _kept(self) -> Keeper:
        if self._keeper is None:
            raise UsageError("the engine has no store", hint="give store=…, the path of a file")
        return self._keeper

    async def _resume_stored(
        self, run_id: str, inputs: Mapping[str, Any] | None, approver: Approver | None
    ) -> RunResult:
        try:
            handle = await self._take_up(run_id, "resume", inputs, checked_approver(approver))
        except MissingSecret as missing:
            return waiting_for(await self._kept().shown(run_id), "secret", missing)
        return await self._drive(handle)

    async def _recovered(self, inputs: SecretInputs, run_id: str) -> RunResult:
        handle = await self._take_up(run_id, "recover", inputs, None)
        return await self._drive(handle)

    async def _cancel_stored(
        self, run_id: str, by: str | None, why: str | None, inputs: SecretInputs
    ) -> RunResult | None:
        try:
            handle = await self._take_up(run_id, "cancel", inputs, None, CancelAsked(by=by, why=why))
        except RunHeld:
            await self._kept().ask_driver(run_id, "cancel", by, why, known_secrets(inputs, self._resolver))
            return None
        return await self._drive(handle)

    async def _take_up(
        self,
        run_id: str,
        why: TakenUpFor,
        inputs: SecretInputs,
        approver: Approver | None,
        wish: CancelAsked | None = None,
    ) -> Handle:
        """Take a run of the store in hand. Nothing of it has changed if that fails."""
        keeper = self._kept()
        lease = await keeper.acquire(run_id)
        try:
            given = {} if inputs is None or callable(inputs) else inputs
            stored = self._stored_plans(lenient=wish is not None)
            planning = Planning(given, None, self._planner, self.check, self._words, stored=stored)
            loaded = await keeper.load(run_id, planning)
            if loaded.run.final:
                raise RunNotActive(f"run {run_id!r} is over: its phase is {loaded.run.phase}")
            given = inputs_for(loaded.run, inputs)
            secrets = given_again(loaded.run, given, self._resolver, lenient=wish is not None)
            holes = loaded.with_secrets(secrets, planning)
            run = loaded.run
            requests = await keeper.do(keeper.store.requests, (run_id,))
            journal = keeper.journal(run, lease, loaded.checksum)
            journal.holes = holes
            handle = self._handle(run, planning, journal, approver)
            handle.elapsed = run.active_time(run.at)
            self._runs.add(handle)
        except BaseException:
            await keeper.do(keeper.store.release, lease)
            raise
        handle.take_up(str(keeper.owner), why, secrets, requests, wish)
        return handle

    def _stored_plans(self, *, lenient: bool) -> StoredPlans:
        """The plans of the store, with the skills of this engine; lenient, those that have them not, too."""
        specs = self.skills.specs()
        if lenient:
            return StoredPlans(self._kept().store.plan, specs, lenient=True)
        if self._stored is None or self._stored.skills is not specs:
            self._stored = StoredPlans(self._kept().store.plan, specs)
        return self._stored

    def _going(self, run_id: str) -> Handle:
        """A run in hand that is not over yet."""
        handle = self._runs.get(run_id)
        if handle.run.final:
            raise RunNotActive(f"run {run_id!r} is over: its phase is {handle.run.phase}")
        return handle

    async def _drive(self, handle: Handle) -> RunResult:
        try:
            return await handle.drive()
        except (StoreBusy, StoreUnavailable) as trouble:
            return await handle.at_rest(trouble)
        finally:
            self._runs.let_go(handle)
