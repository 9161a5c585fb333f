"""Importing skill files under private names, so that a user's `skills/http.py` shadows nothing.

A folder is imported as a package with a name of its own, each file as a module of it: `from ._common import x` finds a
sibling, and so does `from _common import x` where nothing else has that name (it is read as the former). Source is read
afresh each time: Python's bytecode cache goes by whole seconds, and a reload may come sooner. What was imported before
a reload stays as it was, for the visits that still use it.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec, module_from_spec
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType

PREFIX = "_fsm_agent_skills_"
"""How the names of the private packages begin."""


class SkillPackage:
    """A folder as a package under a private name."""

    def __init__(self, folder: Path) -> None:
        _install_finder()
        importlib.invalidate_caches()
        self.folder = folder
        self.name = _claim(folder)

    def load(self, path: Path) -> ModuleType:
        """Import one of the folder's files. Raises whatever that raises."""
        return importlib.import_module(f"{self.name}.{path.stem}")

    def discard(self) -> None:
        """Forget the package and all that was imported into it."""
        for name in [name for name in sys.modules if name == self.name or name.startswith(f"{self.name}.")]:
            del sys.modules[name]


def import_afresh(name: str) -> ModuleType:
    """Import a dotted module again, and all below it, as new modules. When that fails, the old ones are back."""
    old = {key: module for key, module in sys.modules.items() if key == name or key.startswith(f"{name}.")}
    for key in old:
        del sys.modules[key]
    importlib.invalidate_caches()
    try:
        with _reading_afresh(name):
            return importlib.import_module(name)
    except BaseException:
        for key in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
            del sys.modules[key]
        sys.modules.update(old)
        raise


class _AfreshLoader(SourceFileLoader):
    """Compiles the source, and neither reads nor writes a bytecode cache."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return self.source_to_code(self._read(path), path)

    def _read(self, path: str) -> bytes | ast.Module:
        return self.get_data(path)


class _SkillFileLoader(_AfreshLoader):
    """Reads a plain import of a sibling as a relative one."""

    def _read(self, path: str) -> bytes | ast.Module:
        tree = ast.parse(self.get_data(path), filename=path)
        _SiblingImports(Path(path)).visit(tree)
        return tree


class _SiblingImports(ast.NodeTransformer):
    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._own_name = path.stem

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.level == 0 and node.module and self._is_sibling(node.module.partition(".")[0]):
            node.level = 1
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.AST]:
        siblings = [each for each in node.names if self._is_sibling(each.name)]
        if not siblings:
            return node
        others = [each for each in node.names if each not in siblings]
        found: list[ast.AST] = [ast.Import(names=others)] if others else []
        found.append(ast.ImportFrom(module=None, names=siblings, level=1))
        return [ast.copy_location(each, node) for each in found]

    def _is_sibling(self, name: str) -> bool:
        if name == self._own_name:
            return False  # a file that imports its own name means another module
        here = (self._folder / f"{name}.py").is_file() or (self._folder / name / "__init__.py").is_file()
        return here and not _is_importable(name)


class _AfreshFinder(MetaPathFinder):
    """Finds what the usual finder finds, for names that begin so, but has it loaded by another loader."""

    def __init__(self, prefix: str, loader: type[_AfreshLoader]) -> None:
        self.prefix = prefix
        self._loader = loader

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(self.prefix):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = self._loader(fullname, spec.loader.path)
        return spec


@contextmanager
def _reading_afresh(name: str) -> Iterator[None]:
    finder = _AfreshFinder(name, _AfreshLoader)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _install_finder() -> None:
    """Once a process: siblings may also be imported later, when a skill runs."""
    if not any(isinstance(each, _AfreshFinder) and each.prefix == PREFIX for each in sys.meta_path):
        sys.meta_path.insert(0, _AfreshFinder(PREFIX, _SkillFileLoader))


def _claim(folder: Path) -> str:
    """Put an empty package for the folder into sys.modules, under the first name that is free."""
    for number in count(1):
        spec = ModuleSpec(f"{PREFIX}{number}", None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        package = module_from_spec(spec)
        if sys.modules.setdefault(spec.name, package) is package:
            return spec.name
    raise AssertionError("the numbers do not end")


def _is_importable(name: str) -> bool:
    try:
        return name in sys.modules or find_spec(name) is not None
    except (ImportError, ValueError):
        return False
