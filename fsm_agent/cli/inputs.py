"""The inputs of a run: from a file, from --set, and secret ones from the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fsm_agent.cli.data_files import assignments, json_or_text, read_object
from fsm_agent.cli.encoding import as_utf8
from fsm_agent.errors import Problem
from fsm_agent.plan.inputs import ENVIRONMENT_PREFIX, check_inputs, secret_variable
from fsm_agent.plan.model import Input, Plan
from fsm_agent.redaction import Redactor


@dataclass(frozen=True, slots=True)
class GivenInputs:
    """What a plan was given, and what is wrong with that."""

    given: Mapping[str, Any]
    """As given, without defaults."""
    values: Mapping[str, Any]
    """Complete: defaults are filled in."""
    problems: tuple[Problem, ...]
    secrets: tuple[Any, ...]
    """The values of secret inputs, as given and by default: they are in no output."""

    @property
    def redactor(self) -> Redactor:
        """Takes the secrets out of what is shown."""
        return Redactor(self.secrets)


def gather_inputs(
    plan: Plan, file: str | None, sets: Sequence[str], input_file: str | None, environment: Mapping[str, str]
) -> GivenInputs:
    """The inputs for a plan that stands in `file`: --set wins over the input file, that over the environment.

    Raises UsageError for a file that cannot be read and for what is not KEY=VALUE.
    """
    given = secrets_in(environment, plan)
    if input_file is not None:
        given.update(read_object(input_file))
    given.update(assignments(sets, "--set"))
    values, problems = check_inputs(plan, given)
    names = [name for name, declared in plan.inputs.items() if declared.secret]
    secrets = tuple(known[name] for known in (given, values) for name in names if name in known)
    return GivenInputs(given, values, tuple(replace(problem, file=file) for problem in problems), secrets)


def secrets_in(environment: Mapping[str, str], plan: Plan) -> dict[str, Any]:
    """The secret inputs of a plan that variables are there for: `db-password` is FSM_AGENT_SECRET_DB_PASSWORD."""
    found = {}
    for name, declared in plan.inputs.items():
        text = variable(environment, secret_variable(name))
        if declared.secret and text is not None:
            found[name] = text if _takes_text(declared) else json_or_text(text)
    return found


def secrets_of_any_plan(environment: Mapping[str, str]) -> Callable[[Plan], Mapping[str, Any]] | None:
    """The secret inputs of whatever plan it will be; None where there is no variable for any."""
    if any(name.startswith(ENVIRONMENT_PREFIX) for name in environment):
        return partial(secrets_in, environment)
    return None


def variable(environment: Mapping[str, str], name: str) -> str | None:
    """A variable whose name and value are UTF-8, also where the locale knows ASCII only."""
    text = environment.get(os.fsdecode(name.encode()))
    return as_utf8(text) if text is not None else None


def _takes_text(declared: Input) -> bool:
    kinds = declared.type if isinstance(declared.type, list) else [declared.type or "string"]
    return "string" in kinds
