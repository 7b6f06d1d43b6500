"""A page for people: its programs, its commands with what they print, and its tables."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final

from .programs import finished, install_commands
from .requirements import missing

ROOT: Final = Path(__file__).parents[3]
DIFFERS: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "<time>"),
    (re.compile(r"in \d+\.\d+s"), "in 1.23s"),
)
"""What is another one in each run, and how it is shown."""

_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SESSION: Final = re.compile(r"^\$ (.*(?:\n> .*)*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


class Page:
    """A page, by its path from the root. `text` is all of it, `blocks` are its languages and texts of code."""

    def __init__(self, path: str) -> None:
        self.text = (ROOT / path).read_text(encoding="utf-8")
        self.blocks = [(found[1], found[2]) for found in _BLOCK.finditer(self.text)]

    def section(self, heading: str) -> str:
        """What stands below a heading, up to the next one of its level or above."""
        level, text = re.split(rf"^(##+) {re.escape(heading)}\n", self.text, maxsplit=1, flags=re.MULTILINE)[1:]
        return re.split(rf"^#{{2,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0].strip()  # "# " is a comment

    def rows(self, heading: str) -> list[list[str]]:
        """The cells of the tables below a heading, without the head of the first."""
        found = re.findall(r"^\|(.+)\|$", self.section(heading), re.MULTILINE)
        return [[cell.strip() for cell in row.split("|")] for row in found[2:]]

    @property
    def programs(self) -> dict[str, str]:
        """The programs of the page, by the name of the file that their first line tells."""
        named = [(re.match(r"# (\w+\.py)\n", text), text) for language, text in self.blocks if language == "python"]
        return {name[1]: text for name, text in named if name}

    @property
    def sessions(self) -> list[tuple[str, str]]:
        """Each command of the console blocks, with what is shown below it."""
        text = "".join(text for language, text in self.blocks if language == "console")
        return [(command.replace("\n> ", "\n"), shown.strip()) for command, shown in _SESSION.findall(text)]

    def install(self, folder: Path) -> Path:
        """Write the programs of the page into a folder, and the two that it calls."""
        for name, text in self.programs.items():
            (folder / name).write_text(text, encoding="utf-8")
        install_commands(folder / "bin", python="")
        return folder


def run(command: str, folder: Path, **more: str) -> str:
    """stdout, and what the programs themselves said on stderr, without the log."""
    done = finished(["sh", "-c", command], folder, **variables(folder, **more))
    said = "".join(line for line in done.stderr.splitlines(keepends=True) if line.startswith("discreet: "))
    shown = done.stdout + said
    for differing, name in DIFFERS:
        shown = differing.sub(name, shown)
    return shown.strip()


def variables(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a command that finds the programs of `Page.install`."""
    search = os.pathsep.join((str(folder / "bin"), os.environ["PATH"]))
    return {"PATH": search, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80", **more}


def played(session: str, url: str, folder: Path) -> str:
    """What a command with curl prints whose server is at this URL. Skips the test where curl is not installed."""
    if not shutil.which("curl"):
        missing("curl is not installed")
    done = finished(["sh", "-c", session.replace("http://127.0.0.1:8000/", url)], folder, **variables(folder))
    return done.stdout + done.stderr
