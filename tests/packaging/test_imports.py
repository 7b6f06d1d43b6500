"""Every module is imported without a warning, and from an archive."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from support.programs import SOURCES


def run(arguments: Sequence[str], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-P", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


EVERY_MODULE = """
import importlib, pkgutil, sys, discreet
for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
    if not module.name.endswith(("__main__", "_windows")):
        importlib.import_module(module.name)
print(len(sys.modules))
"""


def test_every_module_is_imported_without_a_warning(tmp_path: Path) -> None:
    files = [name for _, _, names in os.walk(SOURCES / "discreet", followlinks=True) for name in names]
    modules = sum(name.endswith(".py") for name in files)
    assert int(run(["-W", "error", "-c", EVERY_MODULE], tmp_path)) > modules > 0


ARCHIVE = """
import sys
sys.path.insert(0, {sources!r})
with open("started", "a") as file:
    print("once", file=file)
from discreet.__main__ import main
sys.exit(main())
"""


def test_a_zipapp_starts_itself_as_the_server(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", ARCHIVE.format(sources=str(SOURCES)))
    assert "version" in run(["app.pyz", "call", "version"], tmp_path)
    assert (tmp_path / "started").read_text(encoding="utf-8").count("once") == 2
