"""One call of the command line: its settings, its output, and the skills that it knows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from fsm_agent.api import PlannerEngine
from fsm_agent.cli.exits import BAD
from fsm_agent.cli.follow_up import FollowUp
from fsm_agent.cli.output import Output
from fsm_agent.cli.problems import problems_document, problems_text
from fsm_agent.cli.settings import Settings
from fsm_agent.cli.signals import Signals
from fsm_agent.errors import Problem, SkillLoadError, StoreUnavailable, UnknownRun, UsageError
from fsm_agent.journal.opening import file_of, open_store
from fsm_agent.journal.store import Store
from fsm_agent.plan.catalog import Catalog
from fsm_agent.skills.registry import SkillRegistry

DEFAULT_SKILLS = Path("skills")
DEFAULT_PLANS = Path("plans")
DEFAULT_STORE = Path(".fsm-agent", "runs.db")
KEY_VARIABLE = "FSM_AGENT_KEY"
"""The variable that gives the key of digests over secrets."""


@dataclass(frozen=True, slots=True)
class Session:
    """What a command works with."""

    settings: Settings
    output: Output
    json: bool
    """Whether standard output is for a program: one JSON document."""
    signals: Signals
    follow_up: FollowUp

    def registry(self) -> SkillRegistry:
        """All skills: built-in ones, those of installed packages, and those of the settings' paths.

        A file of a folder that fails to import is told on standard error, and the rest is there. Raises SkillLoadError
        for a file or module that was named itself, DuplicateSkill, BadSkill, and UsageError for a folder that is gone.
        """
        here = str(current_folder())
        if here not in sys.path and "" not in sys.path:
            sys.path.append(here)  # modules of the project are found, as with `python -m`
        registry = SkillRegistry()
        registry.load_entry_points()
        for path in self._skill_paths():
            known = len(registry.errors)
            registry.load(path)
            if not Path(path).expanduser().is_dir() and registry.errors[known:]:
                failed = registry.errors[-1]
                hint = "mend it, or leave it out of --skills"
                raise SkillLoadError(failed.where, failed.reason, failed.line, hint=hint)
        for error in registry.errors:
            self.output.note(f"warning: {error.message}")
        return registry

    def _skill_paths(self) -> tuple[str, ...]:
        if self.settings.skills is not None:
            return self.settings.skills
        return (str(DEFAULT_SKILLS),) if DEFAULT_SKILLS.is_dir() else ()

    def engine(self, registry: SkillRegistry | None = None, *, store: Store | None = None) -> PlannerEngine:
        """An engine with these skills and workers, whose runs are kept in `store`. Raises as `registry`."""
        workers, default = self.settings.workers, self.settings.default_skill
        key = os.environ.get(KEY_VARIABLE, "").encode() or None
        return PlannerEngine(registry or self.registry(), workers=workers, default_skill=default, store=store, key=key)

    def store(self) -> Store:
        """The store of runs, made where there is none yet. Raises StoreError, UsageError."""
        if self.settings.store is not None:
            return open_store(self.settings.store)
        folder = DEFAULT_STORE.parent
        try:
            folder.mkdir(exist_ok=True)
            ignored = folder / ".gitignore"
            if not ignored.exists():
                ignored.write_text("*\n", encoding="ascii")
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise StoreUnavailable(
                f"{folder} cannot be made here: {why}", hint="choose another place with --store, or use --no-store"
            ) from None
        return open_store(DEFAULT_STORE)

    def known_store(self) -> Store | None:
        """The same for whoever only looks: None where nothing was ever kept, and nothing is made."""
        place = DEFAULT_STORE if self.settings.store is None else file_of(self.settings.store)
        if place is not None and not place.exists():
            return None
        return self.store()

    def run_store(self, run_id: str) -> Store:
        """The store that should have this run. Raises UnknownRun where there is none."""
        found = self.known_store()
        if found is None:
            place = self.settings.store or DEFAULT_STORE
            raise UnknownRun(f"there is no run {run_id!r}: {place} is not there", hint="use --store")
        return found

    @property
    def any_skill(self) -> Catalog:
        """What plans may name where skills need not exist."""
        return Catalog(workers=self.settings.workers or {}, default_skill=self.settings.default_skill, any_skill=True)

    def refuse(self, problems: Iterable[Problem], errors: Iterable[SkillLoadError] = ()) -> int:
        """Tell what is wrong with a plan or its inputs, as `validate` does. Returns the exit code."""
        told = self.explained(problems, errors)
        if self.json:
            self.output.document(problems_document(told))
        else:
            self.output.text(problems_text(told))
        return BAD

    def explained(self, problems: Iterable[Problem], errors: Iterable[SkillLoadError]) -> tuple[Problem, ...]:
        """The problems; where a skill is not known, the hint names the files that failed to load, or a missing folder.

        The skill may be there.
        """
        causes = [error.message for error in errors]
        if self.settings.skills is None and not DEFAULT_SKILLS.is_dir():
            causes.append(f"there is no ./{DEFAULT_SKILLS} here: use --skills")
        return tuple(
            replace(problem, hint="; ".join(filter(None, (problem.hint, *causes))))
            if problem.rule == "unknown_skill"
            else problem
            for problem in problems
        )


def current_folder() -> Path:
    """Where this process is. Raises UsageError for a folder that is gone."""
    try:
        return Path.cwd()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise UsageError(f"the current folder cannot be used: {why}", hint="go to a folder that is there") from None
