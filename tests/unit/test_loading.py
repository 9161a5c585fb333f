"""Skills out of files, folders, modules and installed packages, also while runs are in flight."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fsm_agent.errors import DuplicateSkill, SkillLoadError
from fsm_agent.skills.importing import PREFIX
from fsm_agent.skills.registry import SkillRegistry

HEAD = "from fsm_agent.skills.declaration import skill\n"
SILENT = "class Silent(Exception):\n    def __getattribute__(self, name): raise SystemExit\n"


def skill_file(name: str, value: object = 1) -> str:
    return f"{HEAD}\n@skill\ndef {name}() -> object:\n    return {value!r}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "skills"
    made.mkdir()
    return made


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    made = tmp_path / "site"
    made.mkdir()
    monkeypatch.syspath_prepend(str(made))
    before = set(sys.modules)
    yield made
    for name in set(sys.modules) - before:
        if not name.startswith(("fsm_agent", PREFIX)):
            del sys.modules[name]


def empty() -> SkillRegistry:
    return SkillRegistry(builtins=False)


def names(registry: SkillRegistry) -> list[str]:
    return [skill.spec.name for skill in registry]


def call(registry: SkillRegistry, name: str) -> Any:
    return registry.get(name).function()


def test_a_file_gives_its_declared_functions_and_no_others(folder: Path) -> None:
    (folder / "a.py").write_text(
        HEAD + "from fsm_agent.skills.builtin.note import note\n"
        "@skill\ndef one(): ...\n@skill('zwei')\ndef two(): ...\nthree = one\ndef helper(): ...\n"
    )
    registry = empty()
    loaded = registry.load(folder / "a.py")
    assert [skill.spec.name for skill in loaded] == names(registry) == ["one", "zwei"]
    assert registry.get("one").spec.source == f"{folder / 'a.py'}:3"


def test_a_file_without_a_declaration_gives_nothing(folder: Path) -> None:
    (folder / "a.py").write_text("def one(): ...\n")
    assert empty().load(folder / "a.py") == []


def test_a_folder_gives_its_files_in_order_but_hidden_ones_and_those_below(folder: Path) -> None:
    for name in ("b", "a", "_c"):
        (folder / f"{name}.py").write_text(skill_file(name))
    (folder / "below").mkdir()
    (folder / "below" / "d.py").write_text(skill_file("d"))
    (folder / "notes.txt").write_text("no Python")
    registry = SkillRegistry(folder, builtins=False)
    assert names(registry) == ["a", "b"]
    assert names(SkillRegistry(str(folder), builtins=False)) == ["a", "b"]


@pytest.mark.parametrize("name", ["missing.py", "nowhere/x", "no module", "~no-such-user-anywhere/x", "x" * 5000 + "/"])
def test_a_path_that_leads_nowhere_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(SkillLoadError):
        empty().load(name)
    with pytest.raises(SkillLoadError):
        empty().load(tmp_path / name)


@pytest.mark.parametrize("name", ["notes.txt", "a.pyc", "script"])
def test_a_file_whose_name_does_not_end_in_py_is_called_no_python_file(folder: Path, name: str) -> None:
    (folder / name).write_text(skill_file("one"))
    for where in (folder / name, str(folder / name)):
        with pytest.raises(SkillLoadError, match=r"no Python file: its name does not end in \.py"):
            empty().load(where)


def test_a_file_with_a_second_dot_in_its_name_is_told_so(folder: Path) -> None:
    (folder / "a.b.py").write_text(skill_file("one"))
    (error,) = SkillRegistry(folder, builtins=False).errors
    assert error.reason == "BadSkill: the name of a skill file has one dot, that of .py"


def test_a_file_that_is_gone_keeps_its_skills_and_is_named(folder: Path) -> None:
    path = folder / "a.py"
    path.write_text(skill_file("one"))
    registry = SkillRegistry(path, builtins=False)
    path.unlink()
    assert [(error.where, error.reason) for error in registry.reload().errors] == [(str(path), "there is no such file")]
    assert names(registry) == ["one"]
    path.write_text(skill_file("one", 2))
    assert registry.reload().errors == ()
    assert call(registry, "one") == 2


def test_a_link_to_a_file_is_loaded_under_its_own_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "stored").write_text(skill_file("one"))
    (folder / "a.py").symlink_to(tmp_path / "stored")
    registry = SkillRegistry(folder / "a.py", builtins=False)
    registry.load(folder)
    assert names(registry) == ["one"]


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("import no_such_module_anywhere\n", "ModuleNotFoundError: No module named 'no_such_module_anywhere'", 1),
        ("x = 1\n1 / 0\n", "ZeroDivisionError: division by zero", 2),
        ("x = 1\ndef broken(:\n", "SyntaxError", 2),
        ("import sys\n\nsys.exit('bye')\n", "SystemExit: bye", 3),
        ("import asyncio\nraise asyncio.CancelledError\n", "CancelledError", 2),
        (SILENT + "raise Silent('x')\n", "Silent: x", None),
        (HEAD + "@skill(risk='hgih')\ndef f(): ...\n", "BadSkill: @skill: risk must be one of low medium high", 2),
        (HEAD + "@skill\ndef f(a, /): ...\n", "BadSkill: skill 'f': parameter 'a' is positional-only", 2),
        (HEAD + "@skill\ndef f(a: 'Missing'): ...\n", "BadSkill", None),
    ],
)
def test_a_file_that_fails_is_named_with_its_error_and_the_others_are_loaded(
    folder: Path, text: str, reason: str, line: int | None
) -> None:
    (folder / "bad.py").write_text(text)
    (folder / "good.py").write_text(skill_file("good"))
    registry = SkillRegistry(folder, builtins=False)
    assert names(registry) == ["good"]
    (error,) = registry.errors
    assert error.where == str(folder / "bad.py")
    assert error.reason.startswith(reason)
    assert error.line == line
    assert str(folder / "bad.py") in str(error)


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"x = '\xff'\n", b"x = 1\x00\n"])
def test_a_file_that_is_no_python_text_is_named(folder: Path, data: bytes) -> None:
    (folder / "bad.py").write_bytes(data)
    registry = SkillRegistry(folder, builtins=False)
    assert [error.where for error in registry.errors] == [str(folder / "bad.py")]


def test_an_interrupt_while_loading_is_not_swallowed(folder: Path) -> None:
    (folder / "a.py").write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        SkillRegistry(folder, builtins=False)


def test_an_error_in_a_sibling_says_where_it_really_is(folder: Path) -> None:
    (folder / "_common.py").write_text("x = 1\ny = z\n")
    (folder / "a.py").write_text("\nfrom ._common import x\n")
    (error,) = SkillRegistry(folder, builtins=False).errors
    assert (error.reason, error.line) == ("NameError: name 'z' is not defined in _common.py, line 2", 2)


def test_the_line_of_a_syntax_error_is_told_once(folder: Path) -> None:
    (folder / "a.py").write_text("x = 1\ndef broken()\n")
    (error,) = SkillRegistry(folder, builtins=False).errors
    assert (error.reason, error.line) == ("SyntaxError: expected ':'", 2)
    assert str(error).count("line 2") == 1


def test_the_line_of_a_syntax_error_in_a_sibling_is_told_once(folder: Path) -> None:
    (folder / "_common.py").write_text("x = 1\ny = 2\ndef broken()\n")
    (folder / "a.py").write_text("\nfrom ._common import x\n")
    (error,) = SkillRegistry(folder, builtins=False).errors
    assert error.reason == "SyntaxError: expected ':' in _common.py, line 3"


def test_failed_imports_leave_nothing_behind(folder: Path) -> None:
    before = set(sys.modules)
    (folder / "bad.py").write_text("import _helper\n1 / 0\n")
    (folder / "_helper.py").write_text("x = 1\n")
    registry = SkillRegistry(folder, builtins=False)
    assert registry.errors
    assert set(sys.modules) == before


def test_a_file_that_imports_its_own_name_means_another_module(folder: Path) -> None:
    (folder / "no_such_library.py").write_text("import no_such_library\n")
    (error,) = SkillRegistry(folder, builtins=False).errors
    assert error.reason == "ModuleNotFoundError: No module named 'no_such_library'"


def test_skill_files_shadow_nothing(folder: Path) -> None:
    (folder / "http.py").write_text(HEAD + "import http.client\n@skill\ndef fetch(): return http.client.__name__\n")
    (folder / "json.py").write_text(HEAD + "import json\n@skill\ndef dump(): return json.dumps([1])\n")
    path = list(sys.path)
    registry = SkillRegistry(folder, builtins=False)
    assert (call(registry, "fetch"), call(registry, "dump")) == ("http.client", "[1]")
    assert not hasattr(sys.modules["http"], "fetch")
    assert sys.path == path


@pytest.mark.parametrize(
    "line",
    [
        "from ._common import value",
        "from _common import value",
        "from . import _common; value = _common.value",
        "import _common; value = _common.value",
        "import os, _common as c; value = c.value",
        "from _package.deep import value",
        "from ._package import deep; value = deep.value",
    ],
)
def test_a_skill_file_can_import_its_siblings(folder: Path, line: str) -> None:
    (folder / "_common.py").write_text("from _other import value\n")
    (folder / "_other.py").write_text("value = 42\n")
    (folder / "_package").mkdir()
    (folder / "_package" / "__init__.py").write_text("")
    (folder / "_package" / "deep.py").write_text("value = 42\n")
    (folder / "a.py").write_text(f"{HEAD}{line}\n@skill\ndef one(): return value\n")
    registry = SkillRegistry(folder, builtins=False)
    assert registry.errors == ()
    assert call(registry, "one") == 42
    assert not {"_common", "_other", "_package"} & set(sys.modules)


def test_a_sibling_can_be_imported_when_the_skill_runs(folder: Path) -> None:
    (folder / "a.py").write_text(f"{HEAD}@skill\ndef one():\n    import _late\n    return _late.value\n")
    (folder / "_late.py").write_text("value = 42\n")
    assert call(SkillRegistry(folder, builtins=False), "one") == 42


def test_a_sibling_with_skills_is_loaded_once(folder: Path) -> None:
    (folder / "a.py").write_text(f"{HEAD}from b import b\n@skill\ndef a(): return b\n")
    (folder / "b.py").write_text(skill_file("b"))
    registry = SkillRegistry(folder, builtins=False)
    assert names(registry) == ["a", "b"]
    assert call(registry, "a") is registry.get("b").function


def test_two_folders_may_have_files_of_the_same_name(tmp_path: Path) -> None:
    registry = empty()
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_common.py").write_text(f"value = {name!r}\n")
        (tmp_path / name / "a.py").write_text(f"{HEAD}from _common import value\n@skill\ndef {name}(): return value\n")
        registry.load(tmp_path / name)
    assert (call(registry, "x"), call(registry, "y")) == ("x", "y")


def test_two_files_with_a_skill_of_one_name_are_an_error_that_names_both(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.py").write_text(skill_file("same"))
    registry = empty()
    with pytest.raises(DuplicateSkill) as caught:
        registry.load(folder)
    assert str(folder / "a.py") in str(caught.value)
    assert str(folder / "b.py") in str(caught.value)
    assert names(registry) == []


def test_loading_a_file_again_replaces_what_it_gave(folder: Path) -> None:
    path = folder / "a.py"
    path.write_text(skill_file("one", 1))
    registry = SkillRegistry(path, builtins=False)
    path.write_text(skill_file("one", 2))
    registry.load(path)
    assert call(registry, "one") == 2
    registry.load(folder)
    assert names(registry) == ["one"]


def test_a_reload_reads_at_once_what_was_just_written(folder: Path) -> None:
    path = folder / "a.py"
    path.write_text(skill_file("one", 0))
    registry = SkillRegistry(folder, builtins=False)
    for value in range(1, 6):  # the same size, within the same second
        path.write_text(skill_file("one", value))
        registry.reload()
        assert call(registry, "one") == value
    assert not (folder / "__pycache__").exists()


def test_a_reload_tells_what_changed(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.py").write_text(skill_file(name))
    registry = SkillRegistry(folder, builtins=False)
    (folder / "a.py").unlink()
    (folder / "c.py").write_text(skill_file("c"))
    report = registry.reload()
    assert (report.added, report.removed, report.reloaded, report.errors) == (("c",), ("a",), ("b",), ())


def test_a_visit_keeps_the_version_it_began_with(folder: Path) -> None:
    (folder / "_common.py").write_text("def value(): return 'old'\n")
    (folder / "a.py").write_text(
        f"{HEAD}def late(): return 'old'\n"
        "@skill\ndef one():\n    from ._common import value\n    return value() + late()\n"
    )
    registry = SkillRegistry(folder, builtins=False)
    begun = registry.get("one")
    begun.function()
    for name in ("_common", "a"):
        path = folder / f"{name}.py"
        path.write_text(path.read_text().replace("old", "new"))
    registry.reload()
    assert begun.function() == "oldold"
    assert call(registry, "one") == "newnew"


def test_a_file_that_fails_in_a_reload_keeps_its_old_skills(folder: Path) -> None:
    path = folder / "a.py"
    path.write_text(skill_file("one", 1))
    registry = SkillRegistry(folder, builtins=False)
    path.write_text("def broken(:\n")
    assert [error.where for error in registry.reload().errors] == [str(path)]
    assert call(registry, "one") == 1
    path.write_text(skill_file("one", 2))
    assert registry.reload().errors == ()
    assert registry.errors == ()
    assert call(registry, "one") == 2


def test_a_folder_that_is_gone_keeps_its_skills_and_is_named(folder: Path) -> None:
    (folder / "a.py").write_text(skill_file("one"))
    registry = SkillRegistry(folder, builtins=False)
    moved = folder.rename(folder.parent / "elsewhere")
    assert [error.where for error in registry.reload().errors] == [str(folder)]
    assert names(registry) == ["one"]
    moved.rename(folder)
    assert registry.reload().errors == ()
    assert registry.errors == ()


def test_a_reload_with_two_skills_of_one_name_changes_nothing(folder: Path) -> None:
    (folder / "a.py").write_text(skill_file("one", 1))
    registry = SkillRegistry(folder, builtins=False)
    (folder / "a.py").write_text(skill_file("one", 2))
    (folder / "b.py").write_text(skill_file("one", 3))
    with pytest.raises(DuplicateSkill):
        registry.reload()
    assert call(registry, "one") == 1


def test_given_functions_survive_a_reload(folder: Path) -> None:
    registry = empty()
    registry.add(lambda: 1, "given")
    registry.load(folder)
    (folder / "a.py").write_text(skill_file("one"))
    assert registry.reload().added == ("one",)
    assert names(registry) == ["given", "one"]


def test_readers_see_a_whole_table_while_others_reload(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.py").write_text(skill_file(name, 0))
    registry = SkillRegistry(folder, builtins=False)
    stop = threading.Event()
    odd: list[object] = []

    def read() -> None:
        while not stop.is_set():
            found = registry.specs()
            if set(found) != {"a", "b"} or registry.get("a").function() not in range(10):
                odd.append(found)
            time.sleep(0.0001)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for value in range(10):
        (folder / "a.py").write_text(skill_file("a", value))
        registry.reload()
    stop.set()
    for reader in readers:
        reader.join()
    assert not odd


def test_a_dotted_module_gives_its_declared_functions(packages: Path) -> None:
    (packages / "my_skills_pkg").mkdir()
    (packages / "my_skills_pkg" / "__init__.py").write_text("from my_skills_pkg.web import fetch\n")
    (packages / "my_skills_pkg" / "web.py").write_text(skill_file("fetch"))
    assert names(SkillRegistry("my_skills_pkg.web", builtins=False)) == ["fetch"]
    assert names(SkillRegistry("my_skills_pkg", builtins=False)) == ["fetch"]


def test_a_dotted_module_that_fails_is_named(packages: Path) -> None:
    (packages / "my_bad_skills.py").write_text("x = 1\n1 / 0\n")
    registry = SkillRegistry("my_bad_skills", builtins=False)
    (error,) = registry.errors
    assert (error.where, error.reason, error.line) == ("my_bad_skills", "ZeroDivisionError: division by zero", 2)
    assert "my_bad_skills" not in sys.modules


def test_a_module_that_imports_what_is_not_there_is_not_called_missing_itself(packages: Path) -> None:
    (packages / "my_needy_skills.py").write_text("import no_such_module_anywhere\n")
    (error,) = SkillRegistry("my_needy_skills", builtins=False).errors
    assert (error.reason, error.line) == ("ModuleNotFoundError: No module named 'no_such_module_anywhere'", 1)


@pytest.mark.parametrize("name", ["nofolder", "nofolder.skills", "json.skills", "email.skills.web"])
def test_a_name_that_is_no_file_folder_or_module_is_called_that(name: str) -> None:
    with pytest.raises(SkillLoadError) as caught:
        empty().load(name)
    assert caught.value.reason == "there is no such file, folder or importable module"
    assert caught.value.hint.startswith("give the path of a .py file")


def test_a_module_that_is_gone_keeps_its_skills_and_is_named(packages: Path) -> None:
    path = packages / "my_passing_skills.py"
    path.write_text(skill_file("one"))
    registry = SkillRegistry("my_passing_skills", builtins=False)
    path.unlink()
    (error,) = registry.reload().errors
    assert "there is no such" in error.reason
    assert names(registry) == ["one"]
    path.write_text(skill_file("one"))
    assert registry.reload().errors == ()


def test_a_dotted_module_is_reloaded_with_what_is_below_it(packages: Path) -> None:
    (packages / "my_skills_again").mkdir()
    init, web = (packages / "my_skills_again" / name for name in ("__init__.py", "web.py"))
    init.write_text("from .web import fetch\n")
    web.write_text(skill_file("fetch", 1))
    registry = SkillRegistry("my_skills_again", builtins=False)
    begun = registry.get("fetch")
    web.write_text(skill_file("fetch", 2))
    registry.reload()
    assert (begun.function(), call(registry, "fetch")) == (1, 2)
    web.write_text("1 / 0\n")
    assert registry.reload().errors
    assert call(registry, "fetch") == 2
    assert sys.modules["my_skills_again"].fetch() == 2
    assert "my_skills_again.web" in sys.modules


def test_installed_packages_announce_skills_by_entry_points(packages: Path) -> None:
    (packages / "announced.py").write_text(skill_file("one") + "\n@skill\ndef two(): ...\nlist_of = [two]\n")
    (packages / "announced_module.py").write_text(skill_file("three"))
    info = packages / "announced-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: announced\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[fsm_agent.skills]\na = announced:one\nb = announced:list_of\nc = announced_module\nd = no_such_thing:x\n"
        "e = announced:skill\n"
    )
    registry = empty()
    assert [skill.spec.name for skill in registry.load_entry_points()] == ["one", "two", "three"]
    assert [error.where for error in registry.errors] == [
        "entry point d (no_such_thing:x)",
        "entry point e (announced:skill)",
    ]
    assert registry.reload().reloaded == ("one", "two", "three")
