"""Skills out of files, folders, modules and installed packages. What fails to load is named, and the rest is loaded.

A file or module gives the functions that it defines and declares with `@skill`; other functions are helpers. A folder
gives its `*.py` files in the order of their names, but for those that begin with `_`, and not those in folders below.
"""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fsm_agent.errors import BadSkill, SkillLoadError
from fsm_agent.skills.declaration import declaration_of
from fsm_agent.skills.importing import SkillPackage, import_afresh
from fsm_agent.skills.outcomes import class_name, describe
from fsm_agent.skills.signature import Function
from fsm_agent.skills.skill import Skill, build_skills

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "fsm_agent.skills"
"""The group in which an installed package announces skills: functions, or modules or lists of them."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What one file, module or entry point gave: its skills, or why there are none."""

    origin: str
    skills: tuple[Skill, ...] = ()
    error: SkillLoadError | None = None


@dataclass(frozen=True, slots=True)
class FileSource:
    """One file."""

    path: Path


@dataclass(frozen=True, slots=True)
class FolderSource:
    """The files of one folder."""

    path: Path


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """A module by its dotted name."""

    name: str


@dataclass(frozen=True, slots=True)
class EntryPointSource:
    """All that installed packages announce."""


Source = FileSource | FolderSource | ModuleSource | EntryPointSource

_WANTED = (
    "give the path of a .py file or of a folder that is there, or the dotted name of a module that can be imported"
)


def find_source(where: str | Path) -> Source:
    """What is meant: a file or folder that is there, else a dotted module. Raises SkillLoadError for neither."""
    text = str(where)
    try:
        path = Path(where).expanduser()
        if path.is_dir():
            return FolderSource(path.resolve())
        if path.is_file():
            return FileSource(path.parent.resolve() / _python_name(path))
    except (OSError, RuntimeError, ValueError) as error:
        raise SkillLoadError(text, f"it is no path that can be used ({type(error).__name__})", hint=_WANTED) from error
    if isinstance(where, Path) or os.sep in text or "/" in text or text.endswith(".py"):
        raise SkillLoadError(text, "there is no such file or folder", hint=_WANTED)
    if not all(part.isidentifier() for part in text.split(".")):
        raise SkillLoadError(text, "it is no file, no folder and no dotted module", hint=_WANTED)
    return ModuleSource(text)


def _python_name(path: Path) -> str:
    if path.suffix != ".py":
        raise SkillLoadError(str(path), "it is no Python file: its name does not end in .py", hint=_WANTED)
    return path.name


def read_source(source: Source, *, again: bool = False) -> list[Unit]:
    """Load what a source holds now. `again`: a module that was imported before is imported anew.

    Raises SkillLoadError for a file, folder or module that is not there.
    """
    match source:
        case FileSource(path):
            if not path.is_file():
                raise SkillLoadError(str(path), "there is no such file", hint=_WANTED)
            return _read_files(path.parent, [path])
        case FolderSource(path):
            return _read_files(path, _skill_files(path))
        case ModuleSource(name):
            return [_unit(name, lambda: declared_in(_module(name, again=again)))]
        case EntryPointSource():
            from importlib.metadata import entry_points  # noqa: PLC0415 - it is slow to import, and rarely wanted

            found = entry_points(group=ENTRY_POINTS)
            return [_read_entry_point(each) for each in sorted(found, key=lambda each: (each.name, each.value))]


class _NoSuchModule(Exception):
    """There is no module of that name."""


def _module(name: str, *, again: bool) -> ModuleType:
    try:
        return import_afresh(name) if again else importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise _NoSuchModule from error
        raise  # it is there, and what it imports is not


def declared_in(module: ModuleType) -> list[Function]:
    """The functions with `@skill` that a module defines (a package: also those that it takes from below it)."""
    found: dict[int, Function] = {}
    for value in list(vars(module).values()):
        if declaration_of(value) is not None and _is_at_home(value, module):
            found[id(value)] = value
    return list(found.values())


def _is_at_home(value: Any, module: ModuleType) -> bool:
    home = getattr(value, "__module__", None)
    below = hasattr(module, "__path__") and isinstance(home, str) and home.startswith(f"{module.__name__}.")
    return below or home == module.__name__


def _skill_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise SkillLoadError(str(folder), "there is no such folder", hint=_WANTED)
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith("_") and path.is_file())


def _read_files(folder: Path, paths: Iterable[Path]) -> list[Unit]:
    package = SkillPackage(folder)

    def functions_in(path: Path) -> list[Function]:
        if "." in path.stem:
            raise BadSkill("the name of a skill file has one dot, that of .py", hint="rename the file")
        return declared_in(package.load(path))

    units = [_unit(str(path), partial(functions_in, path), path) for path in paths]
    if all(unit.error is not None for unit in units):
        package.discard()
    return units


def _read_entry_point(entry: EntryPoint) -> Unit:
    return _unit(f"entry point {entry.name} ({entry.value})", lambda: _announced(entry.load()))


def _announced(found: Any) -> list[Function]:
    if isinstance(found, ModuleType):
        return declared_in(found)
    functions = [found] if callable(found) else list(found)
    if all(declaration_of(function) is not None for function in functions):
        return functions
    raise BadSkill("an entry point gives functions with @skill, a module, or a list of such functions")


def _unit(origin: str, find: Callable[[], list[Function]], path: Path | None = None) -> Unit:
    try:
        return Unit(origin, tuple(skill for function in find() for skill in build_skills(function)))
    except KeyboardInterrupt:
        raise
    except _NoSuchModule as error:
        raise SkillLoadError(origin, "there is no such file, folder or importable module", hint=_WANTED) from error
    except BaseException as error:  # noqa: BLE001 - also SystemExit: no file may take the others down
        return Unit(origin, error=_load_error(origin, error, path))


def _load_error(origin: str, error: BaseException, path: Path | None) -> SkillLoadError:
    reason = f"{class_name(type(error))}: {describe(error)}"
    try:
        if isinstance(error, SyntaxError) and path is not None:
            place = f" ({Path(error.filename or '').name}, line {error.lineno})"
            reason = reason.removesuffix(place)  # it is told as the line of the file, or as the place elsewhere
        return SkillLoadError(origin, reason + _elsewhere(error, path), _line(error, path))
    except BaseException:  # noqa: BLE001 - code of the error's own fails when it is asked for its place
        return SkillLoadError(origin, reason)


def _line(error: BaseException, path: Path | None) -> int | None:
    """The line of the file (of the module, where there is no file to name) at which its import failed."""
    if isinstance(error, SyntaxError) and (path is None or error.filename == str(path)):
        return error.lineno
    frames = _frames(error)
    if path is None:
        return frames[0].lineno if frames else None
    own = [frame for frame in frames if frame.filename == str(path)]
    return own[-1].lineno if own else None


def _elsewhere(error: BaseException, path: Path | None) -> str:
    """Where it failed, if that was in a sibling of the file."""
    if isinstance(error, SyntaxError):
        filename, line = error.filename or "", error.lineno
    else:
        frames = _frames(error)
        filename, line = (frames[-1].filename, frames[-1].lineno) if frames else ("", None)
    place = Path(filename)
    return (
        f" in {place.name}, line {line}" if path is not None and place.parent == path.parent and place != path else ""
    )


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The traceback without the frames of the import system and of this package."""
    machinery = (Path(importlib.__file__).parent, Path(__file__).parent)
    found = traceback.extract_tb(error.__traceback__)
    return [each for each in found if not each.filename.startswith("<") and Path(each.filename).parent not in machinery]
