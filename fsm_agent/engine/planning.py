"""How a run gets its plan: one that is given, or one that a planner proposes and that passes every check."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any

from fsm_agent.core.events import PlanAdopted, PlanRejected
from fsm_agent.engine.host import RunHost
from fsm_agent.errors import FsmAgentError, InvalidPlan
from fsm_agent.journal.loading import StoredPlans, digest_of_normal
from fsm_agent.jsonable import encode
from fsm_agent.plan.catalog import Catalog
from fsm_agent.plan.compiled import CompiledPlan
from fsm_agent.plan.inputs import check_inputs
from fsm_agent.planner.protocol import Planner, PlanRequest
from fsm_agent.skills.outcomes import MAX_RAW, describe


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan that passed all checks, with its digest."""

    compiled: CompiledPlan
    digest: str

    @staticmethod
    def of(compiled: CompiledPlan) -> Prepared:
        """Take the digest of a plan's normal form."""
        normal = encode(compiled.plan.to_record())
        return Prepared(replace(compiled, normal=normal), digest_of_normal(normal))


_NO_WORKERS: dict[str, str] = {}
"""Most engines name none: their events share this. Nobody changes what an event holds."""


@dataclass(slots=True)
class Planning:
    """The planning of one run."""

    given: Mapping[str, Any]
    """The inputs as given."""
    prepared: Prepared | None = None
    planner: Planner | None = None
    check: Callable[[Any], Prepared] | None = None
    """Checks what a planner proposes. Raises InvalidPlan."""
    catalog: Catalog = field(default_factory=Catalog)
    """What the engine knows besides the plan: kinds of workers, and the skill for tasks that name nobody."""
    library: dict[str, CompiledPlan] = field(default_factory=dict)
    """The compiled plans of this run, by digest."""
    stored: StoredPlans | None = None
    """The plans that the run had in other processes."""
    _asking: asyncio.Task[None] | None = None
    _closed: bool = False

    def plan_of(self, adopted: PlanAdopted) -> CompiledPlan:
        """The compiled plan that an event speaks of."""
        if self.prepared is not None and self.prepared.digest == adopted.digest:
            return self.prepared.compiled
        known = self.library.get(adopted.digest)
        if known is None and self.stored is not None:
            return self.stored.plan_of(adopted)
        return self.library[adopted.digest] if known is None else known

    def go_on(self, host: RunHost) -> bool:
        """Adopt the plan that is given, or ask the planner. True if that has brought the run a step further."""
        if self.prepared is not None:
            self._adopt(host, self.prepared, "person", None)
            return True
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask(host))
        return False

    async def _ask(self, host: RunHost) -> None:
        """Ask the planner; whatever comes of it is an event."""
        try:
            if self.planner is None or self.check is None:
                raise InvalidPlan(())
            request = PlanRequest(host.run.run_id, host.run.goal, tuple(self.given))
            proposal = await self.planner.propose(request)
            if self._closed:
                return
            self.given = {**proposal.inputs, **self.given}
            self._adopt(host, self.check(proposal.plan), proposal.author, proposal.reason)
        except InvalidPlan as error:
            self._reject(host, error, tuple(problem.to_json() for problem in error.problems))
        except Exception as error:  # noqa: BLE001 - a planner is foreign code: its failure is the run's
            self._reject(host, error, ())
        finally:
            self._asking = None
            host.wake()

    def _adopt(self, host: RunHost, prepared: Prepared, author: str, reason: str | None) -> None:
        plan = prepared.compiled.plan
        values, problems = check_inputs(plan, self.given)
        if problems:
            raise InvalidPlan(problems)
        secrets = {name: value for name, value in values.items() if plan.inputs[name].secret}
        if prepared is not self.prepared:
            self.library[prepared.digest] = prepared.compiled
        host.run.secrets = secrets
        host.secrets.keep(secrets)
        host.cancel_grace = plan.limits.cancel_grace
        host.record(
            PlanAdopted(
                version=host.run.plan_version + 1,
                digest=prepared.digest,
                inputs={name: value for name, value in values.items() if name not in secrets},
                secrets=tuple(secrets),
                author=author,
                reason=reason,
                workers=dict(self.catalog.workers) if self.catalog.workers else _NO_WORKERS,
                default_skill=self.catalog.default_skill,
                guarded=prepared.compiled.guarded_finalizers,
                mark=token_hex(8) if secrets else "",
            )
        )

    def _reject(self, host: RunHost, error: Exception, problems: tuple[dict[str, Any], ...]) -> None:
        if self._closed:
            return
        own = issubclass(type(error), FsmAgentError)
        message = getattr(error, "message", "") if own else f"the planner failed: {describe(error, MAX_RAW)}"
        host.record(PlanRejected(message=host.secrets.out_of_text(message), problems=problems))

    def close(self) -> None:
        """Nobody plans any more."""
        self._closed = True
        if self._asking is not None:
            self._asking.cancel()
