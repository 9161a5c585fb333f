"""What a run may be told, and what an engine may be given: checked before anything happens."""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

from fsm_agent.engine.approving import Approver
from fsm_agent.engine.listening import Listener
from fsm_agent.errors import UsageError
from fsm_agent.journal.records import LONGEST_ID, is_run_id
from fsm_agent.plan.nearness import near


class RunOptions(TypedDict, total=False):
    """What `run`, `stream` and `run_sync` may be told, by keyword; all of it may be left out."""

    goal: str | None
    """What for, in words; the plan's own goal by default."""
    inputs: Mapping[str, Any] | None
    """Values for the plan's inputs."""
    run_id: str | None
    """An id of one's own choice, 1 to 100 printable characters."""
    grants: Collection[str]
    """The permissions that the run has."""
    labels: Mapping[str, str] | None
    """Kept and shown, besides the plan's own."""
    approver: Approver | None
    """Instead of the engine's."""
    deadline: float | None
    """Seconds that the run may take, instead of the plan's `limits.deadline`."""
    max_parallel: int | None
    """How many tasks may run at once, instead of the plan's `limits.max_parallel`."""
    require_plan_approval: bool
    """Whether a person must agree to the plan before anything runs."""


@dataclass(frozen=True, slots=True)
class CheckedOptions:
    """The same, with everything in its place."""

    goal: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    run_id: str | None = None
    grants: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    approver: Approver | None = None
    deadline: float | None = None
    max_parallel: int | None = None
    require_plan_approval: bool = False


def check_options(options: RunOptions) -> CheckedOptions:
    """Raises UsageError, naming the option, and TypeError for one that there is not."""
    unknown = options.keys() - RunOptions.__annotations__.keys()
    if unknown:
        wrong = sorted(unknown)[0]
        meant = near(wrong, RunOptions.__annotations__)
        raise TypeError(f"a run has no option {wrong!r}" + (f"; did you mean {' or '.join(meant)}?" if meant else ""))
    return CheckedOptions(
        goal=_goal(options.get("goal")),
        inputs=_mapping(options.get("inputs"), "inputs"),
        run_id=_run_id(options.get("run_id")),
        grants=_texts(options.get("grants") or (), "grants"),
        labels=_labels(options.get("labels")),
        approver=checked_approver(options.get("approver")),
        deadline=_seconds(options.get("deadline"), "deadline"),
        max_parallel=_count(options.get("max_parallel"), "max_parallel"),
        require_plan_approval=_switch(options.get("require_plan_approval", False), "require_plan_approval"),
    )


def checked_approver(approver: object) -> Approver | None:
    """An approver, or None. Raises UsageError for what cannot be called."""
    if approver is None or callable(approver):
        return cast("Approver | None", approver)
    raise UsageError(f"approver must be a function, not {_kind(approver)}")


def checked_listeners(listeners: object) -> list[Listener]:
    """Listeners in a list. Raises UsageError for what is none."""
    if not isinstance(listeners, Iterable):
        raise UsageError(f"listeners must be a list of functions, not {_kind(listeners)}")
    return [checked_listener(listener) for listener in listeners]


def checked_listener(listener: object) -> Listener:
    """A listener. Raises UsageError for what cannot be called, or would have to be awaited."""
    if not callable(listener):
        raise UsageError(f"a listener must be a function of one event, not {_kind(listener)}")
    if inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(getattr(listener, "__call__", None)):  # noqa: B004 - the method itself is looked at
        raise UsageError(
            "a listener must be a plain function: nobody awaits it",
            hint="let it put the event into a queue, or take the events from engine.stream(…)",
        )
    return cast("Listener", listener)


def _goal(value: object) -> str | None:
    return None if value is None else _text(value, "goal")


def check_words(**words: object) -> None:
    """What people say besides: each a text that can be written down, or None. Raises UsageError."""
    for name, value in words.items():
        if value is not None:
            _text(value, name)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text, not {_kind(value)}")
    if not _is_unicode(value):
        raise UsageError(f"{name} holds half of a surrogate pair: it is no text that can be written down")
    return str.__str__(value)


def _texts(items: object, name: str) -> tuple[str, ...]:
    if isinstance(items, (str, Mapping)) or not isinstance(items, Collection):
        raise UsageError(f"{name} must be a collection of texts, not {_kind(items)}")
    return tuple(sorted({_text(item, f"each of {name}") for item in items}))


def _mapping(value: object, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(f"{name} must be a mapping of names to values, not {_kind(value)}")
    return dict(value)


def _labels(value: object) -> dict[str, str]:
    labels = _mapping(value, "labels")
    return {_text(key, "the name of a label"): _text(item, "the value of a label") for key, item in labels.items()}


def _run_id(value: object) -> str | None:
    if value is None:
        return None
    if not is_run_id(value):
        raise UsageError(f"run_id must be 1 to {LONGEST_ID} printable characters without outer blanks")
    return _text(value, "run_id")


def _seconds(value: object, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise UsageError(f"{name} must be a number of seconds greater than 0")
    return float(value)


def _count(value: object, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} must be a whole number from 1 up")
    return value


def _switch(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be True or False, not {_kind(value)}")
    return value


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
