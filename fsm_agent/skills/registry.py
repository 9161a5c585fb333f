"""The skills that there are, by name; loaded, looked up, and reloaded while runs are in flight.

The table of skills is replaced as a whole, never changed: whoever looks something up sees the old one or the new one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fsm_agent.clock import Clock, SystemClock
from fsm_agent.errors import BadSkill, DuplicateSkill, SkillLoadError, UnknownSkill
from fsm_agent.plan.catalog import SkillSpec
from fsm_agent.plan.nearness import near
from fsm_agent.skills.builtin import builtin_skills
from fsm_agent.skills.loading import EntryPointSource, Source, Unit, find_source, read_source
from fsm_agent.skills.skill import Skill, build_skills

__all__ = ["ReloadReport", "Skill", "SkillRegistry", "SkillSource"]

Given = Callable[..., Any] | Skill
SkillSource = Mapping[str, Given] | Iterable[Given] | str | Path | None
"""Functions by name, functions, or a path (a file, a folder) or dotted module to load."""

BUILT_IN = "the built-in skills"
GIVEN = "given"


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """What a reload changed. What a file that failed held before is still there, in its old version."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    reloaded: tuple[str, ...]
    errors: tuple[SkillLoadError, ...]


class SkillRegistry:
    """All skills that an engine can call. May be used from several threads."""

    def __init__(
        self, skills: SkillSource = None, *, builtins: bool = True, root: Path | None = None, clock: Clock | None = None
    ) -> None:
        """`root` is the folder that `read_file` and `write_file` keep to (the current one); `clock` is for `sleep`.

        Raises BadSkill, DuplicateSkill, and SkillLoadError for a path that leads nowhere. A file that fails to import
        raises nothing: see `errors`.
        """
        self._lock = threading.RLock()
        self._sources: dict[Source, tuple[str, ...]] = {}
        self._units: dict[str, Unit] = {}
        self._skills: Mapping[str, Skill] = MappingProxyType({})
        self._specs: Mapping[str, SkillSpec] = MappingProxyType({})
        if builtins:
            own = builtin_skills(root or Path.cwd(), clock or SystemClock())
            built = tuple(skill for function in own for skill in build_skills(function, source=BUILT_IN))
            self._publish({BUILT_IN: Unit(BUILT_IN, built)})
        if isinstance(skills, (str, Path)):
            self.load(skills)
        elif isinstance(skills, Mapping):
            for name, function in skills.items():
                self.add(function, name)
        else:
            for function in skills or ():
                self.add(function)

    @property
    def errors(self) -> tuple[SkillLoadError, ...]:
        """Why files, modules and entry points could not be loaded; those that can be now are not among them."""
        return tuple(unit.error for unit in self._units.values() if unit.error is not None)

    def add(self, skill: Given, name: str | None = None) -> Skill:
        """Add one function (with or without `@skill`) or skill, by its own name or another.

        Raises BadSkill or DuplicateSkill; then nothing is added.
        """
        if isinstance(skill, Skill):
            built: tuple[Skill, ...] = (skill if name is None else replace(skill, spec=replace(skill.spec, name=name)),)
        elif callable(skill):
            built = build_skills(skill, name=name)
        else:
            raise BadSkill(f"a skill is a function, not a {type(skill).__name__}", hint="load a path by load(path)")
        with self._lock:
            given = self._units.get(GIVEN, Unit(GIVEN))
            self._publish({**self._units, GIVEN: Unit(GIVEN, given.skills + built)})
        return built[0]

    def load(self, where: str | Path) -> list[Skill]:
        """Load a file, a folder (its `*.py` files but those with a leading `_`) or a dotted module.

        Loading a file again replaces what it gave before. What fails to import is in `errors`, and the rest is loaded.
        Raises SkillLoadError for a path that leads nowhere, and DuplicateSkill; then nothing is loaded.
        """
        return self._load(find_source(where))

    def load_entry_points(self) -> list[Skill]:
        """Load what installed packages announce in the entry-point group `fsm_agent.skills`. As `load`."""
        return self._load(EntryPointSource())

    def reload(self) -> ReloadReport:
        """Read all files and modules again. A visit under way keeps the version that it began with.

        Raises DuplicateSkill; then everything is as before.
        """
        with self._lock:
            before = self._skills
            units = dict(self._units)
            sources: dict[Source, tuple[str, ...]] = {}
            for source, origins in self._sources.items():
                found = _read_again(source, origins, units)
                _adopt(units, found)
                sources[source] = tuple(unit.origin for unit in found)
            self._publish(units)
            self._sources = sources
            return _compare(before, self._skills, self.errors)

    def get(self, name: str) -> Skill:
        """The skill of that name, as it is now. Raises UnknownSkill, with the nearest names."""
        skill = self._skills.get(name)
        if skill is None:
            raise UnknownSkill(name, near(name, self._skills))
        return skill

    def specs(self) -> Mapping[str, SkillSpec]:
        """What plans may know of the skills, by name; the same mapping until something is loaded."""
        return self._specs

    def __contains__(self, name: object) -> bool:
        return name in self._skills

    def __iter__(self) -> Iterator[Skill]:
        return iter(self._skills.values())

    def __len__(self) -> int:
        return len(self._skills)

    def _load(self, source: Source) -> list[Skill]:
        with self._lock:
            found = read_source(source, again=source in self._sources)
            units = dict(self._units)
            _adopt(units, found)
            self._publish(units)
            self._sources[source] = tuple(unit.origin for unit in found)
            return [skill for unit in found for skill in unit.skills]

    def _publish(self, units: dict[str, Unit]) -> None:
        """Make these units what there is. Raises DuplicateSkill before anything is changed."""
        skills: dict[str, Skill] = {}
        for skill in (skill for unit in units.values() for skill in unit.skills):
            other = skills.setdefault(skill.spec.name, skill)
            if other is not skill:
                raise DuplicateSkill(skill.spec.name, other.spec.source, skill.spec.source)
        self._units = units
        self._skills = MappingProxyType(skills)
        self._specs = MappingProxyType({name: skill.spec for name, skill in skills.items()})


def _adopt(units: dict[str, Unit], found: Iterable[Unit]) -> None:
    """Put what was read in its place. A unit that failed keeps the skills that it had."""
    for unit in found:
        old = units.get(unit.origin)
        units[unit.origin] = unit if unit.error is None or old is None else replace(old, error=unit.error)


def _read_again(source: Source, origins: tuple[str, ...], units: dict[str, Unit]) -> list[Unit]:
    """What a source holds now. Units that it no longer holds are taken out, unless it is gone as a whole."""
    try:
        found = read_source(source, again=True)
    except SkillLoadError as error:
        return [*(units[origin] for origin in origins if origin in units), Unit(error.where, error=error)]
    for origin in {*origins} - {unit.origin for unit in found}:
        units.pop(origin, None)
    return found


def _compare(
    before: Mapping[str, Skill], after: Mapping[str, Skill], errors: tuple[SkillLoadError, ...]
) -> ReloadReport:
    return ReloadReport(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        reloaded=tuple(name for name in after if name in before and before[name] is not after[name]),
        errors=errors,
    )
