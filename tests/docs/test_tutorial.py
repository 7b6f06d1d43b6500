"""The tutorial, done: its files are written and its commands run, in order, and print what is shown."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from support.programs import finished, install_commands

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.py)(, continued)?\n")
DURATION = re.compile(r"in \d+\.\d+s")

BLOCKS = [(match[1], match[2]) for match in FENCED.finditer(PAGE.read_text(encoding="utf-8"))]


def run(command: str, folder: Path) -> str:
    """stdout, and what the programs themselves said on stderr, without the log."""
    variables = {
        "PATH": os.pathsep.join((str(folder / "bin"), os.environ["PATH"])),
        "PYTHONDONTWRITEBYTECODE": "1",  # files are continued within the second that their time tells
        "COLUMNS": "80",
    }
    done = finished(["sh", "-c", command], folder, **variables)
    said = "".join(line for line in done.stderr.splitlines(keepends=True) if line.startswith("discreet: "))
    return DURATION.sub("in 1.23s", done.stdout + said).strip()


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
def test_whoever_follows_the_tutorial_sees_what_it_shows(tmp_path: Path) -> None:
    install_commands(tmp_path / "bin", python="")
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
