"""What is published, built once by the program that builds it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import discreet
from support.tree import FOLDERS, ROOT

BUILT_FROM = (*FOLDERS, "src", "tools", "LICENSE", "README.md", "pyproject.toml")

Release = Callable[[Path, str], subprocess.CompletedProcess[str]]


def release_of(folder: Path, heading: str) -> subprocess.CompletedProcess[str]:
    """The release of a copy of the tree whose changelog begins with `heading`."""
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    changes = re.sub(r"^## \[.+\].*$", heading, changes, count=1, flags=re.MULTILINE)
    (folder / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    environ = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    command = [sys.executable, "-P", "tools/release.py"]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture
def release() -> Release:
    return release_of


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with sdist, wheel and bill of materials."""
    folder = tmp_path_factory.mktemp("released")
    done = release_of(folder, f"## [{discreet.__version__}] - 2026-02-03")
    assert done.returncode == 0, done.stderr
    return folder / "dist"


@pytest.fixture(scope="session")
def sdist(released: Path) -> Path:
    (found,) = released.glob("*.tar.gz")
    return found


@pytest.fixture(scope="session")
def wheel(released: Path) -> Path:
    """The wheel, built from what the source distribution holds."""
    (found,) = released.glob("*.whl")
    return found
