"""What a plan may know of the skills there are: names, schemas, risks, permissions, policies. No functions to call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from fsm_agent.plan.model import Backoff, Fallback, Risk

ParameterCheck = Callable[[Mapping[str, Any], Collection[str]], list[tuple[str, str]]]
"""(constant parameters, names of parameters that hold expressions) → problems as (path, message)."""


@dataclass(frozen=True, slots=True)
class SkillPolicy:
    """How a skill's author wants it to be called; None leaves the matter to the engine's defaults."""

    timeout: float | None = None
    max_retries: int | None = None
    retry_on: tuple[str, ...] | None = None
    backoff: Backoff | None = None
    fallback: Fallback | None = None


@dataclass(frozen=True, slots=True)
class SkillSpec:
    """One skill, as a plan, a person or a model may see it.

    `parameters` is the JSON Schema of its parameters, or None where it is not known (then anything fits).
    `check` tells which parameters do not fit; `source` says where the skill is from.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    risk: Risk = "low"
    requires: frozenset[str] = frozenset()
    idempotent: bool = False
    writes: tuple[str, ...] | None = None
    policy: SkillPolicy = SkillPolicy()
    source: str = ""
    check: ParameterCheck | None = None


@dataclass(frozen=True, slots=True)
class Catalog:
    """All that there is for a plan to name.

    `any_skill` stands for a catalog that is not known: names, workers and parameters are then not checked, and a
    task that names nobody counts as having a skill.
    """

    skills: Mapping[str, SkillSpec] = field(default_factory=dict)
    workers: Mapping[str, str] = field(default_factory=dict)
    default_skill: str | None = None
    any_skill: bool = False


ANY_SKILL = Catalog(any_skill=True)
"""The catalog for `simulate` and `validate --any-skill`."""
