"""Choosing a plan template for a goal, by the words that each template names in its `when`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from fsm_agent.errors import NoTemplate, UsageError
from fsm_agent.plan.loader import read_plan
from fsm_agent.plan.model import Plan
from fsm_agent.plan.patterns import matches, pattern_error
from fsm_agent.planner.protocol import PlanRequest, Proposal

ENDINGS = (".yaml", ".yml", ".json")
"""Plan files in a folder of templates."""

_LONGEST_GOAL = 10_000


def fits(plan: Plan, goal: str) -> bool:
    """Whether a template is for this goal: one of its `when` words stands in it, or a /regular expression/ matches."""
    rules = [plan.when] if isinstance(plan.when, str) else plan.when or []
    return any(_fits(rule, goal[:_LONGEST_GOAL]) for rule in rules)


def _fits(rule: str, goal: str) -> bool:
    if len(rule) > 2 and rule.startswith("/") and rule.endswith("/"):
        error = pattern_error(rule[1:-1])
        if error:
            raise UsageError(f"`when: {rule}` is no regular expression that may stand there: {error}")
        return matches(rule[1:-1], goal)
    words = rule.casefold().split()
    there = goal.casefold()
    return bool(words) and all(word in there for word in words)


def template_files(folder: Path) -> list[Path]:
    """The plan files of a folder, by name."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in ENDINGS and path.is_file())


def templates_in(folder: Path) -> list[tuple[Path, Plan]]:
    """The templates of a folder. Files that hold no plan at all are left out: `validate` tells what is wrong."""
    drafts = ((path, read_plan(path)) for path in template_files(folder))
    return [(path, draft.plan) for path, draft in drafts if draft.plan is not None]


class TemplatePlanner:
    """Proposes the one template that fits the goal."""

    def __init__(self, templates: Path | str | Iterable[Plan]) -> None:
        """Templates from a folder (read anew for each goal), or as plans."""
        self._source = Path(templates) if isinstance(templates, (str, Path)) else list(templates)

    def choose(self, goal: str) -> Plan:
        """The template for a goal. Raises NoTemplate, naming those that fit, unless there is exactly one."""
        known = self._templates()
        chosen = [(name, plan) for name, plan in known if fits(plan, goal)]
        if len(chosen) == 1:
            return chosen[0][1]
        if not chosen:
            names = ", ".join(name for name, _ in known) or "none"
            raise NoTemplate(
                "no template fits the goal", hint=f"templates here: {names}; each names its goals in `when`"
            )
        names = ", ".join(name for name, _ in chosen)
        raise NoTemplate(f"{len(chosen)} templates fit the goal: {names}", hint="name the one to run")

    def _templates(self) -> Sequence[tuple[str, Plan]]:
        if isinstance(self._source, Path):
            return [(plan.name or path.stem, plan) for path, plan in templates_in(self._source)]
        return [(plan.name or f"template {place + 1}", plan) for place, plan in enumerate(self._source)]

    async def propose(self, request: PlanRequest) -> Proposal:
        """The template for the request's goal."""
        if not request.goal:
            raise NoTemplate("a template is chosen by its goal, and no goal was given", hint="give goal=…")
        return Proposal(self.choose(request.goal), author="template")
