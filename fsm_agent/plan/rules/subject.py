"""What the rules look at, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from fsm_agent.plan.catalog import Catalog, SkillSpec
from fsm_agent.plan.compiled import Compilation
from fsm_agent.plan.findings import Finding, Path, Suggestions
from fsm_agent.plan.graph import Graph
from fsm_agent.plan.model import Plan


@dataclass(frozen=True, slots=True)
class Subject:
    """A plan under examination: what could be read of it, and all that was worked out from that."""

    plan: Plan
    compilation: Compilation
    catalog: Catalog
    supported: Collection[str] = ()
    """Keys of features that are supported although a later version brings them."""
    left_out: frozenset[Path] = frozenset()
    """What did not fit the model and is not in the plan: paths of fields, of tasks, of keys of the plan."""
    suggestions: Suggestions = field(default_factory=Suggestions)

    @property
    def graph(self) -> Graph:
        """The plan's shape."""
        return self.compilation.plan.graph

    def spec(self, skill: str | None) -> SkillSpec | None:
        """What is known of a skill."""
        return self.catalog.skills.get(skill) if skill is not None else None

    def lacks(self, place: int, *fields: str) -> bool:
        """Whether one of these fields of a task was given, but in a form that could not be read."""
        task = ("tasks", place)
        return task in self.left_out or any((*task, name) in self.left_out for name in fields)


Rule = Callable[[Subject], Iterator[Finding]]
"""Finds all cases of one thing that can be wrong with a plan."""
