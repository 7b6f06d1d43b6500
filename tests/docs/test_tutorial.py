"""The tutorial, done: its files are written and its commands run, in order, and print what is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
SECONDS = 60

FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.py)(, continued)?\n")
DURATION = re.compile(r"in \d+\.\d+s")

BLOCKS = [(match[1], match[2]) for match in FENCED.finditer(PAGE.read_text(encoding="utf-8"))]


def run(command: str, folder: Path) -> str:
    """stdout, and what the programs themselves said on stderr, without the log."""
    paths = [str(Path(entry).resolve()) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DISCREET_", "PYTEST_"))}
    environment |= {
        "PATH": os.pathsep.join((str(folder / "bin"), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",  # files are continued within the second that their time tells
        "COLUMNS": "80",
    }
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    said = "".join(line for line in done.stderr.splitlines(keepends=True) if line.startswith("discreet: "))
    return DURATION.sub("in 1.23s", done.stdout + said).strip()


def programs(folder: Path) -> None:
    (folder / "bin").mkdir()
    for name, arguments in (("discreet", "-P -m discreet"), ("python", "")):
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (folder / "bin" / name).chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
def test_whoever_follows_the_tutorial_sees_what_it_shows(tmp_path: Path) -> None:
    programs(tmp_path)
    for language, text in BLOCKS:
        if language == "python":
            named = FILE.match(text)
            assert named is not None, text
            with (tmp_path / named[1]).open("a" if named[2] else "x", encoding="utf-8") as file:
                file.write(text)
            continue
        assert language == "console"
        for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = session.partition("\n")
            assert run(command, tmp_path) == shown.strip(), command


def test_the_tutorial_has_what_it_promises() -> None:
    files = [(named[1], named[2]) for language, text in BLOCKS if language == "python" and (named := FILE.match(text))]
    assert [name for name, continued in files if not continued] == [
        "library.py",
        "desk.py",
        "test_library.py",
        "test_contract.py",
    ]
    commands = sum(text.count("$ ") for language, text in BLOCKS if language == "console")
    assert commands >= 9
