"""`read_file` and `write_file`: files of one folder, nothing outside of it, nothing hidden, and no code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fsm_agent.api import PlannerEngine
from fsm_agent.errors import FileError, TooLarge
from fsm_agent.skills.registry import SkillRegistry


def use(registry: SkillRegistry, name: str, /, **parameters: Any) -> Any:
    """Call a skill as an engine does, with validated parameters."""
    skill = registry.get(name)
    return skill.function(**skill.validate(parameters))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    (tmp_path / "outside.txt").write_text("outside")
    return made


@pytest.fixture
def files(root: Path) -> SkillRegistry:
    return SkillRegistry(root=root)


def test_a_text_can_be_written_and_read(files: SkillRegistry, root: Path) -> None:
    text = "Zürich\r\n東京\n"
    assert use(files, "write_file", path="a/b/c.txt", content=text) == {"path": "a/b/c.txt", "bytes": 16}
    assert (root / "a/b/c.txt").read_bytes() == text.encode()
    assert use(files, "read_file", path="a/b/c.txt") == text


def test_data_can_be_written_and_read_as_json(files: SkillRegistry, root: Path) -> None:
    use(files, "write_file", path="a.json", content={"city": "東京", "n": [1, None]})
    assert "東京" in (root / "a.json").read_text()
    assert use(files, "read_file", path="a.json", as_json=True) == {"city": "東京", "n": [1, None]}
    use(files, "write_file", path="b.json", content="{")
    with pytest.raises(FileError, match="no JSON"):
        use(files, "read_file", path="b.json", as_json=True)


def test_a_byte_order_mark_is_no_part_of_the_text(files: SkillRegistry, root: Path) -> None:
    (root / "a.txt").write_bytes(b"\xef\xbb\xbfa")
    assert use(files, "read_file", path="a.txt") == "a"


@pytest.fixture(params=["by handle", "by path"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With handles on folders, and as on a system that has none."""
    if request.param == "by path":
        monkeypatch.setattr("fsm_agent.skills.builtin.root._BY_HANDLE", False)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("path", ["../outside.txt", "a/../../outside.txt", "/etc/passwd", "..", "/"])
def test_nothing_outside_the_root_folder_is_read_or_written(files: SkillRegistry, root: Path, path: str) -> None:
    with pytest.raises(FileError, match="out of the root"):
        use(files, "read_file", path=path)
    with pytest.raises(FileError, match="out of the root"):
        use(files, "write_file", path=path, content="x")
    assert (root.parent / "outside.txt").read_text() == "outside"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("path", ["out", "in", "nowhere", "folder/outside.txt", "within/a.txt", "within/new/a.txt"])
def test_links_are_not_followed_wherever_they_lead(files: SkillRegistry, root: Path, path: str) -> None:
    (root / "a").mkdir()
    (root / "a" / "a.txt").write_text("a")
    links = {"out": "../outside.txt", "in": "a/a.txt", "nowhere": "../new.txt", "folder": "..", "within": "a"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    with pytest.raises(FileError, match="symbolic link"):
        use(files, "read_file", path=path)
    with pytest.raises(FileError, match="symbolic link"):
        use(files, "write_file", path=path, content="x")
    assert (root.parent / "outside.txt").read_text() == "outside"
    assert not (root.parent / "new.txt").exists()
    assert [each.name for each in (root / "a").iterdir()] == ["a.txt"]


@pytest.mark.usefixtures("way")
def test_paths_that_stay_inside_are_fine(files: SkillRegistry, root: Path) -> None:
    assert use(files, "write_file", path="a/./b.txt", content="b") == {"path": "a/b.txt", "bytes": 1}
    for path in ("a/b.txt", "./a/c/../b.txt", "c/../a//b.txt", str(root / "a" / "b.txt"), f"../{root.name}/a/b.txt"):
        assert use(files, "read_file", path=path) == "b"


def test_the_root_folder_may_be_given_by_a_link_may_be_hidden_and_may_not_be_there_yet(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(".hidden")
    files = SkillRegistry(root=tmp_path / "link" / "root")
    use(files, "write_file", path="a.txt", content="a")
    for path in ("a.txt", str(tmp_path / "link" / "root" / "a.txt"), str(tmp_path / ".hidden" / "root" / "a.txt")):
        assert use(files, "read_file", path=path) == "a"


HIDDEN = [".env", ".git/hooks/pre-commit", "a/.venv/x.txt", "./.env", "\u200c.env", "..."]


@pytest.mark.parametrize("path", HIDDEN)
def test_hidden_names_are_neither_read_nor_written(files: SkillRegistry, root: Path, path: str) -> None:
    (root / ".env").write_text("KEY=hunter2")
    with pytest.raises(FileError, match="begins with a dot, so it is hidden"):
        use(files, "read_file", path=path)
    with pytest.raises(FileError, match="begins with a dot, so it is hidden"):
        use(files, "write_file", path=path, content="x")
    assert [each.name for each in root.iterdir()] == [".env"]


LOADED = [
    "skills/evil.py", "evil.pyc", "a.pyw", "a.pyd", "x.pth", "python311._pth", "m.so", "m.cpython-311-x86_64.so",
    "m.so.1", "m.dll", "m.dylib", "a.whl", "a.pyz", "model.pkl", "conftest.py", "pyproject.toml", "setup.cfg",
    "tox.ini", "pytest.ini", "pyvenv.cfg", "requirements.txt", "uv.lock", "Pipfile", "__pycache__/a.txt",
    "evil-1.0.dist-info/entry_points.txt", "evil.egg-info/entry_points.txt",
    "EVIL.PY", "PyProject.TOML", "\u017fetup.cfg", "evil.p\u200cy", "evil.py.", "evil.py ", "evil.py::$DATA",
    "a:evil.py",
]  # fmt: skip


@pytest.mark.parametrize("path", LOADED)
def test_names_of_code_and_of_settings_are_not_written(files: SkillRegistry, root: Path, path: str) -> None:
    with pytest.raises(FileError, match="loaded as code or as settings"):
        use(files, "write_file", path=path, content="x")
    assert list(root.iterdir()) == []


def test_names_of_code_and_of_settings_can_be_read(files: SkillRegistry, root: Path) -> None:
    (root / "pyproject.toml").write_text("[project]")
    assert use(files, "read_file", path="pyproject.toml") == "[project]"


@pytest.mark.parametrize(
    "path", ["a.json", "py", "happy", "a.py.txt", "settings.toml", "12:30.txt", "東京.md", "a.b..c", "…a", "copy"]
)
def test_names_that_only_look_like_code_are_written(files: SkillRegistry, path: str) -> None:
    assert use(files, "write_file", path=path, content="x")["path"] == path


def put(what: Path, there: Path) -> None:
    """Move it there, and away with whatever stands in the way."""
    while what.is_symlink() or what.exists():
        if there.is_symlink():
            there.unlink()
        shutil.rmtree(there, ignore_errors=True)
        with suppress(OSError):
            what.rename(there)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no handles on folders")
@pytest.mark.parametrize("step", range(10))
@pytest.mark.parametrize("name", ["read_file", "write_file"])
def test_a_folder_that_is_swapped_with_a_link_between_any_two_steps_never_leads_outside(
    files: SkillRegistry, root: Path, monkeypatch: pytest.MonkeyPatch, name: str, step: int
) -> None:
    outside = root.parent
    (root / "a").mkdir()
    (root / "a" / "outside.txt").write_text("inside")
    steps = count()

    def then_swap(function: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            if next(steps) == step:
                (root / "a").rename(root / "kept")
                (root / "a").symlink_to(outside)
            return function(*args, **kwargs)

        return run

    with monkeypatch.context() as patch, suppress(FileError):
        for each in ("open", "stat", "mkdir", "replace"):
            patch.setattr(os, each, then_swap(getattr(os, each)))
        found = use(files, name, path="a/outside.txt", **({"content": "x"} if name == "write_file" else {}))
        assert found in ("inside", {"path": "a/outside.txt", "bytes": 1})
    assert sorted(each.name for each in outside.iterdir()) == ["outside.txt", "root"]
    assert (outside / "outside.txt").read_text() == "outside"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no handles on folders")
@pytest.mark.parametrize("depth", [1, 2])
def test_a_folder_that_is_swapped_with_a_link_meanwhile_never_leads_outside(
    files: SkillRegistry, root: Path, tmp_path: Path, depth: int
) -> None:
    outside = tmp_path / "outside"
    below = ["a", "b"][:depth]
    inner = root.joinpath(*below)
    for folder, text in ((inner, "inside"), (outside.joinpath(*below[1:]), "outside")):
        folder.mkdir(parents=True)
        (folder / "read.txt").write_text(text)
    before = sorted(outside.rglob("*"))
    stop = threading.Event()

    def swap() -> None:
        there, kept, link = root / "a", root / "kept", root / "link"
        while not stop.is_set():
            there.rename(kept)
            link.symlink_to(outside)
            put(link, there)
            put(kept, there)

    swapper = threading.Thread(target=swap)
    swapper.start()
    read: set[str] = set()
    path = "/".join(below)
    try:
        for number in range(300):
            with suppress(FileError):
                read.add(use(files, "read_file", path=f"{path}/read.txt"))
            with suppress(FileError):
                use(files, "write_file", path=f"{path}/{number}.txt", content="x")
    finally:
        stop.set()
        swapper.join()
    assert read <= {"inside"}
    assert sorted(outside.rglob("*")) == before


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("path", ["missing.txt", ".", "a\0b", "x" * 5000, "file/below", "missing/a.txt"])
def test_what_cannot_be_read_is_a_clear_error(files: SkillRegistry, root: Path, path: str) -> None:
    (root / "file").write_text("x")
    with pytest.raises(FileError):
        use(files, "read_file", path=path)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("path", [".", "folder", "a\0b", "x" * 5000, "file/below"])
def test_what_cannot_be_written_is_a_clear_error(files: SkillRegistry, root: Path, path: str) -> None:
    (root / "file").write_text("x")
    (root / "folder").mkdir()
    with pytest.raises(FileError):
        use(files, "write_file", path=path, content="x")
    assert sorted(each.name for each in root.iterdir()) == ["file", "folder"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_no_file_and_does_not_hang(files: SkillRegistry, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(FileError, match="no file"):
        use(files, "read_file", path="pipe")
    with pytest.raises(FileError, match="no file"):
        use(files, "write_file", path="pipe", content="x")


def test_what_is_no_text_is_refused(files: SkillRegistry, root: Path) -> None:
    (root / "a.bin").write_bytes(b"\xff\x00")
    with pytest.raises(FileError, match="UTF-8"):
        use(files, "read_file", path="a.bin")
    with pytest.raises(FileError, match="surrogate"):
        use(files, "write_file", path="a.txt", content="\ud800")


def test_a_file_that_is_too_large_is_refused(files: SkillRegistry, root: Path) -> None:
    (root / "a.txt").write_text("x" * 11)
    assert use(files, "read_file", path="a.txt", max_bytes=11) == "x" * 11
    with pytest.raises(TooLarge, match="11 bytes, at most 10"):
        use(files, "read_file", path="a.txt", max_bytes=10)
    with pytest.raises(TooLarge):
        use(files, "write_file", path="b.txt", content="x" * 10_000_001)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such modes here")
def test_a_file_keeps_its_mode_but_cannot_be_executed_and_nothing_else_is_left(
    files: SkillRegistry, root: Path
) -> None:
    use(files, "write_file", path="a.sh", content="1")
    (root / "a.sh").chmod(0o4750)
    use(files, "write_file", path="a.sh", content="2")
    assert (root / "a.sh").stat().st_mode & 0o7777 == 0o640
    assert [each.name for each in root.iterdir()] == ["a.sh"]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="handles cannot be counted here")
def test_no_handle_is_left_open_whatever_happens(files: SkillRegistry, root: Path) -> None:
    (root / "link").symlink_to("a")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ("a/b/c.txt", "a/b", "link/c.txt", "a/b/c.txt/d.txt", "a/missing.txt"):
        for name, more in (("write_file", {"content": "x"}), ("read_file", {})):
            with suppress(FileError):
                use(files, name, path=path, **more)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits here")
def test_when_there_is_no_room_the_old_file_stays(root: Path) -> None:
    (root / "a.txt").write_text("old")
    code = f"""
        import resource
        from pathlib import Path
        from fsm_agent.errors import FileError
        from fsm_agent.skills.builtin.files import Files
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            Files(Path({str(root)!r})).write_file("a.txt", "x" * 2000)
        except FileError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True, timeout=60
    )
    assert "the disk is full; what was there before is unchanged" in done.stdout
    assert (root / "a.txt").read_text() == "old"
    assert [each.name for each in root.iterdir()] == ["a.txt"]


def test_readers_never_see_half_a_file(files: SkillRegistry, root: Path) -> None:
    use(files, "write_file", path="a.txt", content="a" * 50_000)
    seen: set[str] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add(use(files, "read_file", path="a.txt"))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(20):
        use(files, "write_file", path="a.txt", content="ab"[number % 2] * 50_000)
    stop.set()
    reader.join()
    assert seen <= {"a" * 50_000, "b" * 50_000}


def test_a_run_that_was_not_granted_it_writes_no_file(files: SkillRegistry, root: Path) -> None:
    engine = PlannerEngine(files)
    plan = [{"id": "a", "skill": "write_file", "parameters": {"path": "a.txt", "content": "x"}}]
    refused = engine.run_sync(plan)
    assert refused.reason is not None
    assert refused.reason["kind"] == "permission"
    assert list(root.iterdir()) == []
    engine.run_sync(plan, grants=["file.write"])
    assert (root / "a.txt").read_text() == "x"
