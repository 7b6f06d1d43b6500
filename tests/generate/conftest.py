"""The operations that clients are generated for, and the TypeScript compiler.

`DISCREET_INTEROP` names a folder whose `node_modules` hold typescript, vscode-jsonrpc and, as vscode-jsonrpc-8, the oldest
release of it that is supported (`NODE_PATH` will do too); without one they are installed into a temporary folder.
`DISCREET_INTEROP_REQUIRED=1` makes what is missing a failure.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from discreet.daemon.operations.registry import Registry
from discreet.daemon.operations.service import Service
from discreet.schemas.documents import OperationSchema, snapshot
from support.requirements import missing

HERE: Final = Path(__file__).parent
OLDEST: Final = "vscode-jsonrpc-8"
PACKAGES: Final = ("typescript", "vscode-jsonrpc")
VERSIONS: Final = ("typescript@7", "vscode-jsonrpc@10", f"{OLDEST}@npm:vscode-jsonrpc@8.2.1")
INSTALL_SECONDS: Final = 90.0


@pytest.fixture(scope="session")
def services() -> list[Service]:
    spec = importlib.util.spec_from_file_location("kinds_app", HERE / "kinds_app.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["kinds_app"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [module.app, module.bare]


@pytest.fixture(scope="session")
def operations(services: list[Service]) -> list[OperationSchema]:
    return list(snapshot(Registry(services)).operations.values())


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiler and the library."""
    if shutil.which("node") is None:
        missing("node is not installed")
    places = [Path(entry) for entry in os.environ.get("NODE_PATH", "").split(os.pathsep) if entry]
    if folder := os.environ.get("DISCREET_INTEROP"):
        places.insert(0, Path(folder).resolve() / "node_modules")
    for place in places:
        if all((place / package / "package.json").exists() for package in PACKAGES):
            return place
    return _installed(tmp_path_factory.mktemp("node"))


@pytest.fixture
def oldest_library(node_modules: Path, tmp_path: Path) -> Path:
    """A `node_modules` folder with the oldest vscode-jsonrpc that is supported, and nothing else."""
    if not (node_modules / OLDEST / "package.json").exists():
        missing(f"{OLDEST} is not installed beside vscode-jsonrpc")
    folder = tmp_path / "node_modules"
    folder.mkdir()
    shutil.copytree(node_modules / OLDEST, folder / "vscode-jsonrpc")
    return folder


def _installed(folder: Path) -> Path:
    npm = shutil.which("npm") or missing("npm is not installed")
    quiet = ("--silent", "--no-audit", "--no-fund", "--fetch-retries=0", "--prefix", str(folder))
    try:
        done = subprocess.run(
            [npm, "install", *quiet, *VERSIONS], capture_output=True, check=False, timeout=INSTALL_SECONDS, cwd=folder
        )
    except subprocess.TimeoutExpired:
        missing("npm did not install typescript and vscode-jsonrpc in time")
    if done.returncode:
        missing("npm can't install typescript and vscode-jsonrpc")
    return folder / "node_modules"
