"""What is to be done next: wanted effects, as data. `decide` makes them, the engine performs them."""

from __future__ import annotations

import msgspec

from fsm_agent.core.events import Trigger


class Fire(msgspec.Struct, frozen=True, gc=False):
    """A trigger of the machine is due."""

    trigger: Trigger


class MakePlan(msgspec.Struct, frozen=True, gc=False):
    """A plan is wanted."""


class AskAboutPlan(msgspec.Struct, frozen=True, gc=False):
    """A person must agree to the plan."""


class AskAboutTask(msgspec.Struct, frozen=True, gc=False):
    """A person is to say what becomes of a task: it failed, or its call was interrupted."""

    place: int


class Begin(msgspec.Struct, frozen=True, gc=False):
    """It is this task's turn."""

    place: int


class BeginRollback(msgspec.Struct, frozen=True, gc=False):
    """A failed task is to go back, and nothing runs any more."""


class Compensate(msgspec.Struct, frozen=True, gc=False):
    """It is this task's turn to be undone."""

    place: int


class AskAboutCompensation(msgspec.Struct, frozen=True, gc=False):
    """A task could not be undone: a person must look."""

    place: int


class FinishRollback(msgspec.Struct, frozen=True, gc=False):
    """All is compensated: the tasks are to run again."""


class StopCalls(msgspec.Struct, frozen=True, gc=False):
    """All calls under way are to be cancelled."""


class Judge(msgspec.Struct, frozen=True, gc=False):
    """All is settled: the criteria and the output are to be evaluated."""


class Wait(msgspec.Struct, frozen=True, gc=False):
    """Nothing to do before something happens."""


class Rest(msgspec.Struct, frozen=True, gc=False):
    """The run is paused: nothing to do before someone resumes it."""


class End(msgspec.Struct, frozen=True, gc=False):
    """The run is over."""


Command = (
    Fire
    | MakePlan
    | AskAboutPlan
    | AskAboutTask
    | Begin
    | BeginRollback
    | Compensate
    | AskAboutCompensation
    | FinishRollback
    | StopCalls
    | Judge
    | Wait
    | Rest
    | End
)
