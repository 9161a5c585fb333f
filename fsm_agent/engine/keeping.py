"""An engine and its store: who it is there, how it calls it, and what it does for runs that it does not drive."""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final, TypeVar, cast

from msgspec import structs

from fsm_agent.clock import Clock
from fsm_agent.core.approvals import decided_already, decision_on, has_expired
from fsm_agent.core.events import ApprovalAsked, ApprovalDecided, Event, RunTakenUp, Verdict
from fsm_agent.core.machine import FINAL
from fsm_agent.core.result import RunResult
from fsm_agent.core.run import Run
from fsm_agent.engine.attending import POLL, Attendant
from fsm_agent.engine.decisions import decision_in, request_body
from fsm_agent.engine.keys import DigestKey
from fsm_agent.engine.secrets import KnownSecrets
from fsm_agent.errors import DecisionRefused, FsmAgentError, RunHeld, RunNotActive
from fsm_agent.journal.holes import HIDDEN, Holes
from fsm_agent.journal.loading import Loaded, PlanReader, StoredPlans, load
from fsm_agent.journal.opening import open_store
from fsm_agent.journal.owners import Owner, driver_of, this_process
from fsm_agent.journal.records import Lease, Request, RunHead
from fsm_agent.journal.store import Store
from fsm_agent.journal.writer import StoredJournal
from fsm_agent.jsonable import encode, to_plain

T = TypeVar("T")

HEARD: Final = 1.0
"""So long it is waited for the driver of a run to hear of a decision, in seconds."""
LEASE: Final = 15.0
"""How long a lease holds, in seconds. It is renewed three times as often."""


class Keeper:
    """One engine's door to its store."""

    def __init__(self, store: Store, clock: Clock, owner: Owner, key: DigestKey) -> None:
        self.store = store
        self.owner = owner
        self.key = key
        self.executor: Executor | None = None if store.is_quick else ThreadPoolExecutor(1, "fsm-agent-store")
        """Makes the calls of a store that must not be waited for on the event loop."""
        self.attendant = Attendant(store, clock, LEASE, self.do)
        self._clock = clock

    async def do(self, call: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Make a call of the store."""
        if self.executor is None:
            return call(*arguments, **options)
        return await asyncio.get_running_loop().run_in_executor(self.executor, lambda: call(*arguments, **options))

    def journal(self, run: Run, lease: Lease | None = None, checksum: int = 0) -> StoredJournal:
        """The journal of a run that is driven from now on."""
        return StoredJournal(self.store, run, self.owner, LEASE, lease=lease, checksum=checksum)

    async def acquire(self, run_id: str) -> Lease:
        """Take a run. Raises RunHeld, UnknownRun."""
        return await self.do(self.store.acquire, run_id, self.owner, LEASE)

    async def load(self, run_id: str, plans: PlanReader | None = None, upto: int | None = None) -> Loaded:
        """Fold a run. Without `plans` no skill need be there."""
        return await self.do(load, self.store, run_id, plans or StoredPlans(self.store.plan), upto=upto)

    async def left_behind(self) -> list[RunHead]:
        """Runs that were under way, and that nobody drives any more; the oldest first."""
        heads = await self.do(self.store.heads, unfinished=True)
        now = await self.do(self.store.now)
        return [head for head in reversed(heads) if head.phase != "paused" and driver_of(head, now) is None]

    async def ask_driver(
        self, run_id: str, kind: str, by: str | None, why: str | None, known: KnownSecrets | None = None
    ) -> None:
        """Leave word for the process that drives the run. `known` gives the secrets that are not to be left there.

        Raises RunNotActive where none does, UnknownRun.
        """
        head = await self.do(self.store.head, run_id)
        if driver_of(head, await self.do(self.store.now)) is None:
            if head.phase == "paused" and kind == "pause":
                return
            if head.phase in FINAL:
                raise RunNotActive(f"run {run_id!r} is over: its phase is {head.phase}")
            raise RunNotActive(
                f"nobody drives run {run_id!r}: its last phase is {head.phase}", hint="resume it, or cancel it"
            )
        words = {"by": by, "why": why}
        if known is not None:
            words = _without(words, _holes(await self.load(run_id), known))
        body = encode(words).decode()
        await self.do(self.store.ask, run_id, kind, body, at=self._clock.now())

    def close(self) -> None:
        """Give back what the store takes."""
        self.store.close()
        if self.executor is not None:
            self.executor.shutdown(wait=False)

    # Decisions ------------------------------------------------------------------------------------------------------

    async def decide(
        self,
        run_id: str,
        which: str | None,
        verdict: Verdict,
        by: str | None,
        why: str | None,
        result: Any,
        known: KnownSecrets | None = None,
    ) -> None:
        """Record what somebody decided: at once where nobody drives the run, else its driver does.

        `known` gives the secrets that are not to be in the record.

        Raises DecisionRefused, UnknownRun, NotJson.
        """
        result = to_plain(result)
        now = self._clock.now()
        loaded = await self.load(run_id)
        asked = loaded.run.approvals.find(which, verdict)
        if not has_expired(asked, now):
            words = request_body(asked.approval, verdict, by, why, result)
            body = encode(_without(words, _holes(loaded, known))).decode()
            first = await self.do(self.store.ask, run_id, "decide", body, at=now, key=asked.approval)
            if first is not None:
                raise await self._second_to(run_id, asked, first)
        try:
            lease = await self.acquire(run_id)
        except RunHeld:
            await self._until_taken(run_id)
            loaded = await self.load(run_id)
        else:
            try:
                loaded = await self._take_down(run_id, lease, now)
            finally:
                await self.do(self.store.release, lease)
        decided = _decided(loaded, asked.approval)
        if has_expired(asked, now):
            raise DecisionRefused(f"the approval of {asked.task!r} has expired", hint="it counts as rejected")
        mine = decided is None or (
            decided.decision == verdict and _may_be(decided.by, by) and _may_be(decided.why, why)
        )
        if decided is not None and not mine:
            raise decided_already(repr(asked.task or "the plan"), decided.decision, decided.by, decided.at)

    async def _second_to(self, run_id: str, asked: ApprovalAsked, first: Request) -> DecisionRefused:
        """The answer to whoever comes second to a decision that is still to be taken up. That one may itself have come
        second, to one that was taken up a moment ago: the journal knows.
        """
        loaded = await self.load(run_id)
        name = repr(asked.task or "the plan")
        decided = _decided(loaded, asked.approval)
        if decided is not None:
            return decided_already(name, decided.decision, decided.by, decided.at)
        said = Holes(loaded.mark, {}).filled_record(dict(first.body)) if loaded.mark else first.body
        return decided_already(name, str(said.get("decision")), said.get("by"), first.at)

    async def _until_taken(self, run_id: str) -> None:
        """Until whoever drives the run has taken up what was asked of it: not for long, for it may be busy."""
        for _ in range(round(HEARD / POLL)):
            await self._clock.sleep(POLL)
            if not await self.do(self.store.requests, (run_id,)):
                return

    async def _take_down(self, run_id: str, lease: Lease, now: float) -> Loaded:
        """Make decisions that were left in the store a part of the run's journal. Returns the run with them in it."""
        loaded = await self.load(run_id)
        requests = await self.do(self.store.requests, (run_id,))
        decisions = [request for request in requests if request.kind == "decide"]
        run = loaded.run
        late = [asked for asked in run.approvals.open.values() if has_expired(asked, now)]
        if run.final or not (decisions or late):
            return loaded
        journal = self.journal(run, lease, loaded.checksum)
        _record(run, journal, RunTakenUp(driver=str(self.owner), why="decide"), now)
        for request in decisions:
            journal.answer(request.number)
            _record(run, journal, decision_in(run, request.body, request.at), now)
        for asked in late:
            if asked.approval in run.approvals.open:
                _record(run, journal, decision_on(asked, "expired"), now)
        journal.prepare()
        await self.do(journal.write)
        return loaded

    async def shown(self, run_id: str, upto: int | None = None) -> RunResult:
        """A run as its journal has it."""
        return (await self.load(run_id, upto=upto)).result()


def keeper_of(store: Store | str | os.PathLike[str], clock: Clock, key: bytes | None) -> Keeper:
    """A door to a store, which is opened where it is told by its path or URL. Raises StoreError, UsageError."""
    opened = open_store(store, clock=clock) if isinstance(store, (str, os.PathLike)) else store
    return Keeper(opened, clock, this_process(uuid.uuid4().hex), DigestKey(key, opened.key_file))


def waiting_for(result: RunResult, kind: str, error: FsmAgentError) -> RunResult:
    """A run that rests as its journal has it, because of this."""
    hint = f" ({error.hint})" if error.hint else ""
    reason = {"kind": kind, "task": None, "message": f"{error.message}{hint}"}
    return structs.replace(result, reason=reason)


def _holes(loaded: Loaded, known: KnownSecrets | None) -> Holes | None:
    return Holes(loaded.mark, known(loaded.run)) if loaded.mark and known is not None else None


def _decided(loaded: Loaded, approval: str) -> ApprovalDecided | None:
    """What was decided, with secrets as `***`: what was taken down a moment ago still has its holes."""
    decided = loaded.run.approvals.decided.get(approval)
    if decided is None or not loaded.mark:
        return decided
    return cast(ApprovalDecided, Holes(loaded.mark, {}).filled(decided))


def _without(words: dict[str, Any], holes: Holes | None) -> dict[str, Any]:
    """What somebody said, with holes where the secrets were that are known here."""
    punched: dict[str, Any] = words if holes is None else holes.punched_record(words)
    return punched


def _may_be(kept: str | None, said: str | None) -> bool:
    """Whether this is what was said: whoever wrote it down may know secrets that are not known here."""
    if kept is None or said is None:
        return kept == said
    return re.fullmatch(".*".join(map(re.escape, kept.split(HIDDEN))), said, re.DOTALL) is not None


def _record(run: Run, journal: StoredJournal, event: Event, now: float) -> None:
    stamped = structs.replace(event, seq=run.seq + 1, at=now, run_id=run.run_id)
    run.evolve(stamped)
    journal.append(stamped)
