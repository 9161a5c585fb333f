"""Which plan file is meant: a path, the name of a template, or the template for a goal."""

from __future__ import annotations

from pathlib import Path

from fsm_agent.cli.encoding import as_utf8
from fsm_agent.errors import NoTemplate, UsageError
from fsm_agent.plan.nearness import near
from fsm_agent.planner.template import ENDINGS, TemplatePlanner, template_files, templates_in


def find_plan(plan: str | None, goal: str | None, folder: Path) -> Path:
    """The file of the plan to run. Raises UsageError or NoTemplate, naming the templates that there are."""
    if plan is not None:
        return _by_name(plan, folder)
    if not goal:
        raise UsageError("no plan was given", hint="give a plan file, a template's name, or --goal")
    if not folder.is_dir():
        raise NoTemplate("no template fits the goal", hint=_no_folder(folder))
    chosen = TemplatePlanner(folder).choose(goal)
    return next(path for path, template in templates_in(folder) if template == chosen)


def _by_name(name: str, folder: Path) -> Path:
    path = Path(name)
    if _is_there(path) or path.name != name or path.suffix.lower() in ENDINGS:
        return path
    by_file = [file for file in template_files(folder) if file.stem == name]
    found = by_file or [file for file, template in templates_in(folder) if template.name == as_utf8(name)]
    if len(found) > 1:
        files = ", ".join(map(str, found))
        raise UsageError(f"{len(found)} templates are named {name!r}: {files}", hint="give the path of one of them")
    if not found:
        raise UsageError(
            f"there is no plan file {name!r}, and no template of that name in {folder}", hint=_known(name, folder)
        )
    return found[0]


def _is_there(path: Path) -> bool:
    """Whether it exists; a path that the system takes for none at all is to be read, which tells what is wrong."""
    try:
        return path.exists()
    except OSError:
        return True


def _known(name: str, folder: Path) -> str:
    if not folder.is_dir():
        return _no_folder(folder)
    names = [file.stem for file in template_files(folder)]
    nearest = near(name, names)
    if nearest:
        return f"did you mean {' or '.join(map(repr, nearest))}?"
    return f"the templates there: {', '.join(names)}" if names else f"{folder} holds no templates; give a plan's path"


def _no_folder(folder: Path) -> str:
    return f"there is no folder {folder} here; give a plan's path, or the folder by --plans"
