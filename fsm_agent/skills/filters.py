"""What may look at a skill's parameters before a call and at its data afterwards, and change or refuse them.

A filter is a plain function of the skill's author. It gets copies; what it returns counts, or what it did to its copy
if it returns None. To refuse, it raises RefusedByFilter. A filter that fails in any other way refuses too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from fsm_agent.errors import NotJson, RefusedByFilter
from fsm_agent.jsonable import copy_plain, to_plain
from fsm_agent.plan.catalog import SkillSpec
from fsm_agent.skills.outcomes import MAX_RAW, class_name, describe
from fsm_agent.skills.signature import name_of

When = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class FilterInfo:
    """What a filter is told besides the data: the skill that is called, and whether it is before or after."""

    skill: SkillSpec
    when: When


@dataclass(frozen=True, slots=True)
class FilterNote:
    """What one filter did. `why` is the reason of a refusal."""

    filter: str
    when: When
    what: Literal["changed", "refused"]
    why: str = ""


BeforeFilter = Callable[[dict[str, Any], FilterInfo], Mapping[str, Any] | None]
"""(parameters, info) → the parameters to go on with; None: the same."""

AfterFilter = Callable[[dict[str, Any], Any, FilterInfo], Any]
"""(parameters, data, info) → the data to go on with; None: the same."""


class Filtered(Protocol):
    """What has filters: a skill."""

    @property
    def spec(self) -> SkillSpec: ...
    @property
    def before(self) -> tuple[BeforeFilter, ...]: ...
    @property
    def after(self) -> tuple[AfterFilter, ...]: ...


def apply_before(
    skill: Filtered, parameters: Mapping[str, Any]
) -> tuple[Mapping[str, Any], list[FilterNote], str | None]:
    """The parameters as the skill's filters leave them, what they did, and the refusal in words, if one refused."""
    info = FilterInfo(skill.spec, "before")
    notes: list[FilterNote] = []
    for each in skill.before:
        draft: dict[str, Any] = copy_plain(dict(parameters))
        changed, refusal = _run(each, info, draft, (draft, info), notes)
        if refusal is None and not isinstance(changed, dict):
            refusal = _refuse(each, info, "it returned no mapping", notes)
        if refusal is not None:
            return parameters, notes, refusal
        _note_change(each, info, parameters, changed, notes)
        parameters = changed
    return parameters, notes, None


def apply_after(skill: Filtered, parameters: Mapping[str, Any], data: Any) -> tuple[Any, list[FilterNote], str | None]:
    """The data as the skill's filters leave it, what they did, and the refusal in words, if one refused."""
    info = FilterInfo(skill.spec, "after")
    notes: list[FilterNote] = []
    for each in skill.after:
        draft = copy_plain(data)
        changed, refusal = _run(each, info, draft, (copy_plain(dict(parameters)), draft, info), notes)
        if refusal is not None:
            return data, notes, refusal
        _note_change(each, info, data, changed, notes)
        data = changed
    return data, notes, None


def _run(
    function: Callable[..., Any], info: FilterInfo, draft: Any, arguments: tuple[Any, ...], notes: list[FilterNote]
) -> tuple[Any, str | None]:
    """What one filter makes of its draft, and its refusal."""
    try:
        answer = function(*arguments)
        return to_plain(draft if answer is None else answer), None
    except RefusedByFilter as refused:
        reason = describe(refused, MAX_RAW)
    except NotJson as error:
        reason = f"it made no plain data: {describe(error, MAX_RAW)}"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a guard that fails must not let anything through, nor end the loop
        reason = f"it failed with {class_name(type(error))}: {describe(error, MAX_RAW)}"
    return None, _refuse(function, info, reason, notes)


def _refuse(function: Callable[..., Any], info: FilterInfo, reason: str, notes: list[FilterNote]) -> str:
    name = name_of(function)
    notes.append(FilterNote(name, info.when, "refused", reason))
    return f"filter {name!r} refused the {'parameters' if info.when == 'before' else 'result'}: {reason}"


def _note_change(
    function: Callable[..., Any], info: FilterInfo, before: Any, after: Any, notes: list[FilterNote]
) -> None:
    if before != after:
        notes.append(FilterNote(name_of(function), info.when, "changed"))
