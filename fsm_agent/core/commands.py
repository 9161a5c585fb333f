"""What is to be done next: wanted effects, as data. `decide` makes them, the engine performs them."""

from __future__ import annotations

from dataclasses import dataclass

from fsm_agent.core.events import Trigger


@dataclass(frozen=True, slots=True)
class Fire:
    """A trigger of the machine is due."""

    trigger: Trigger


@dataclass(frozen=True, slots=True)
class MakePlan:
    """A plan is wanted."""


@dataclass(frozen=True, slots=True)
class AskAboutPlan:
    """A person must agree to the plan."""


@dataclass(frozen=True, slots=True)
class AskAboutFailure:
    """A task failed, and its recovery is to ask a person."""

    place: int


@dataclass(frozen=True, slots=True)
class Begin:
    """It is this task's turn."""

    place: int


@dataclass(frozen=True, slots=True)
class StopCalls:
    """All calls under way are to be cancelled."""


@dataclass(frozen=True, slots=True)
class Judge:
    """All is settled: the criteria and the output are to be evaluated."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before something happens."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The run is paused: nothing to do before someone resumes it."""


@dataclass(frozen=True, slots=True)
class End:
    """The run is over."""


Command = Fire | MakePlan | AskAboutPlan | AskAboutFailure | Begin | StopCalls | Judge | Wait | Rest | End
