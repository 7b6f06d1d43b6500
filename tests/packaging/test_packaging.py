"""What is built and installed is what stands in the tree: all of it, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.tree import FACE, FOLDERS, ROOT, sources

BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE")


def page_files() -> dict[str, Path]:
    """What the web pages, new projects and gRPC are made of, by its place as in `sources`."""
    places = {
        "cli": FACE / "cli",
        "cli/templates": FACE / "cli/templates",
        "recording": FACE / "recording",
        "generate": FACE / "generate",
        "pages": FACE / "pages",
        "gateway/page": ROOT / "gateway/page",
        "gateway/grpc": ROOT / "gateway/grpc",
    }
    return {
        f"discreet/{name}/{path.name}": path
        for name, place in places.items()
        for path in place.iterdir()
        if path.suffix in (".binpb", ".css", ".html", ".js", ".json", ".ts", ".txt")
    }


def copy_tree(to: Path, *, links: bool) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("src", *FOLDERS):
        shutil.copytree(ROOT / name, to / name, symlinks=True, ignore=ignored)
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, to / name)
    if not links:
        for folder in FOLDERS:
            (to / "src" / "discreet" / folder).unlink(missing_ok=True)
    return to


def run(arguments: Sequence[str], *, cwd: Path, path: Path | None = None) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_every_module_of_the_tree_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        contents = {name: archive.read(name) for name in held}
    expected = sources() | page_files()
    assert len(page_files()) == 42
    assert held == {*expected, "discreet/py.typed"}
    assert {name for name, path in expected.items() if contents[name] != path.read_bytes()} == set()


def test_the_wheel_says_what_pyproject_says(wheel: Path) -> None:
    import discreet

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
        (entries,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/entry_points.txt"))
        licenses = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
    lines = metadata.splitlines()
    assert f"Version: {discreet.__version__}" in lines
    assert {line for line in lines if line.startswith("Requires-Dist: ") and "extra ==" not in line} == {
        f"Requires-Dist: {requirement}" for requirement in project["dependencies"]
    }
    assert entries.split() == ["[console_scripts]", "discreet", "=", "discreet.__main__:main"]
    assert len(licenses) == 1


def test_the_sdist_holds_each_module_once_and_no_tests(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    names = [member.name.partition("/")[2] for member in members if member.isfile()]
    modules = sorted(name for name in names if name.endswith(".py") and name != "setup.py")
    assert modules == sorted(path.relative_to(ROOT).as_posix() for path in sources().values())
    assert [member.name for member in members if member.issym() or member.islnk()] == []


def test_a_checkout_without_the_links_installs_and_serves(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path / "tree", links=False)
    site = tmp_path / "site"
    pip = ["-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    run([*pip, "install", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site), "."], cwd=tree)
    where = "import discreet.client, discreet.daemon.daemon; print(discreet.__file__, discreet.Service.__module__)"
    assert run(["-c", where], cwd=tmp_path, path=site).split() == [
        str(site / "discreet" / "__init__.py"),
        "discreet.daemon.operations.service",
    ]
    assert run(["-m", "discreet", "--version"], cwd=tmp_path, path=site).startswith("discreet ")


@pytest.mark.skipif(sys.platform == "win32", reason="git checks links out as text files there, unless told otherwise")
def test_the_links_lead_to_the_folders() -> None:
    links = {path.name: path.readlink().as_posix() for path in FACE.iterdir() if path.is_symlink()}
    assert links in ({}, {folder: f"../../{folder}" for folder in FOLDERS})
