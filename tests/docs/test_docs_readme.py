"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.programs import environment, install_commands
from support.waits import DEADLINE_SECONDS

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(match[1], match[2]) for match in FENCED.finditer(README)]
FILE_NAMED = re.compile(r"# (\w+\.py)\n")


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


def sessions() -> list[tuple[str, str]]:
    """Each command of the console blocks with the output shown below it."""
    found: list[tuple[str, str]] = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *rest = part.splitlines()
            while rest and rest[0].startswith("> "):
                command += "\n" + rest.pop(0).removeprefix("> ")
            found.append((command, "\n".join(rest)))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the README, and the two programs that it calls."""
    for block in blocks("python"):
        if name := FILE_NAMED.match(block):
            (tmp_path / name[1]).write_text(block, encoding="utf-8")
            os.utime(tmp_path / name[1], (1767225600, 1767225600))  # 2026-01-01
    install_commands(tmp_path / "bin", python="")
    return tmp_path


def run(command: list[str], folder: Path, **more: str) -> tuple[str, str]:
    """stdout, and what the programs themselves said on stderr, without the log."""
    search = os.pathsep.join((str(folder / "bin"), os.environ["PATH"]))
    variables = environment(**{"PATH": search, **more})
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS
    )
    said = "".join(line for line in done.stderr.splitlines(keepends=True) if line.startswith("discreet: "))
    return done.stdout, said


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
@pytest.mark.parametrize(("command", "shown"), sessions())
def test_a_command_of_the_readme_prints_what_is_shown(command: str, shown: str, folder: Path) -> None:
    stdout, said = run(["sh", "-c", command], folder)
    assert (stdout + said).strip() == shown


def test_the_readme_shows_commands_and_programs() -> None:
    assert len(sessions()) >= 6
    assert [name[1] for block in blocks("python") if (name := FILE_NAMED.match(block))] == [
        "shop.py",
        "client.py",
        "noisy.py",
        "test_shop.py",
    ]
