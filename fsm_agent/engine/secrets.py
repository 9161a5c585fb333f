"""What a run must not tell: the secret inputs that it was given."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from fsm_agent.core.approvals import digest_of
from fsm_agent.core.run import Run
from fsm_agent.errors import InvalidPlan, MissingSecret, UsageError
from fsm_agent.jsonable import encode
from fsm_agent.plan.inputs import check_inputs
from fsm_agent.plan.model import Plan
from fsm_agent.redaction import Redactor
from fsm_agent.skills.outcomes import cut

Resolver = Callable[[str], Any]
"""Gives the value of a secret input by its name, or None."""

SecretInputs = Mapping[str, Any] | Callable[[Plan], Mapping[str, Any]] | None
"""Secret inputs, given again: by name, or by a function of the run's plan."""

KnownSecrets = Callable[[Run], Mapping[str, Any]]
"""Gives the secret inputs of a run that are known here, by name."""

_NO_SECRETS = Redactor()


class Secrets:
    """Takes the secrets of one run out of what is recorded. Without secret inputs, well-known names still count."""

    __slots__ = ("_key", "_known", "_redactor")

    def __init__(self, key: Callable[[], bytes] = bytes) -> None:
        """`key` gives the key of digests: without it nobody can try out what a digest may stand for."""
        self._key = key
        self._redactor = _NO_SECRETS
        self._known: Redactor | None = None

    def keep(self, secrets: Mapping[str, Any]) -> None:
        """From now on, these are to be kept."""
        if secrets:
            self._redactor = Redactor(secrets.values())
            self._known = Redactor(secrets.values(), names=False)

    def known_out_of(self, value: Any) -> Any:
        """Plain data without the secret inputs; what is only named like a secret stays."""
        return value if self._known is None else self._known.value(value)

    def out_of(self, value: Any) -> Any:
        """Plain data without anything secret."""
        return self._redactor.value(value)

    def out_of_text(self, text: str) -> str:
        """A text without anything secret, then cut to the length of a message: half a secret is one too."""
        return cut(self._redactor.text(text))

    def digest(self, value: Any) -> str:
        """A short stable digest of plain data; a keyed one where anything in it is secret."""
        if self.out_of(value) is value:
            return digest_of(value)
        return hashlib.blake2b(encode(value), key=self._key()[:64], digest_size=8).hexdigest()


def with_secrets(plan: Plan, given: Mapping[str, Any], resolver: Resolver | None) -> Mapping[str, Any]:
    """The inputs as given, with those secret ones that only the resolver knows."""
    if resolver is None:
        return given
    found = {name: resolver(name) for name, declared in plan.inputs.items() if declared.secret and name not in given}
    return {**given, **{name: value for name, value in found.items() if value is not None}}


def inputs_for(run: Run, inputs: SecretInputs) -> Mapping[str, Any]:
    """The secret inputs that are given again to this run."""
    if callable(inputs):
        return inputs(run.compiled.plan) if run.plan_version else {}
    return inputs or {}


def known_secrets(inputs: SecretInputs, resolver: Resolver | None) -> KnownSecrets | None:
    """What is known here of the secrets of runs that others drive; None where nothing can be known."""
    if inputs is None and resolver is None:
        return None
    return lambda run: given_again(run, inputs_for(run, inputs), resolver, lenient=True)


def given_again(
    run: Run, given: Mapping[str, Any], resolver: Resolver | None, *, lenient: bool = False
) -> dict[str, Any]:
    """The secret inputs of a run that another process began. Lenient, those that are missing are left out.

    Raises MissingSecret, and InvalidPlan for what does not fit, or is no secret: other inputs are in the journal.
    """
    if not run.plan_version:
        return {}
    plan = run.compiled.plan
    known = {name: value for name, value in run.inputs.items() if name in plan.inputs}
    again = [name for name in given if name in known]
    if again:
        raise UsageError(f"input {again[0]!r} was given when the run began", hint="only secret inputs are given again")
    values, problems = check_inputs(plan, {**with_secrets(plan, given, resolver), **known})
    # What is known was checked when the run began; where it holds a secret, only what hides that is known here.
    problems = [problem for problem in problems if (problem.field or "").removeprefix("inputs.") not in known]
    missing = [problem for problem in problems if problem.rule == "missing_input"]
    if missing and not lenient:
        names = [(problem.field or "").removeprefix("inputs.") for problem in missing]
        raise MissingSecret(run.run_id, names, missing[0].hint)
    wrong = [problem for problem in problems if problem.rule != "missing_input"]
    if wrong:
        raise InvalidPlan(wrong)
    return {name: value for name, value in values.items() if plan.inputs[name].secret}
