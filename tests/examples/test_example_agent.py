"""The agent's page tells the truth: its commands run as they stand there, and print what it shows."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.programs import environment
from support.waits import DEADLINE_SECONDS

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent"
PAGE = (EXAMPLE / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy, away from the settings of this project."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "agent", ignore=shutil.ignore_patterns("__pycache__")))


def run(command: str, folder: Path) -> str:
    """What a command of the page prints: `python` is this one, `discreet` what is installed in it."""
    (shown,) = re.findall(rf"^```sh\n({re.escape(command)})\n```$", PAGE, re.MULTILINE)
    first, *rest = shlex.split(shown)
    program = {"python": [sys.executable], "discreet": [sys.executable, "-P", "-m", "discreet"]}[first]
    done = subprocess.run(
        [*program, *rest],
        cwd=folder,
        env=environment(REPORT_PAUSE="0"),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def test_the_talk_is_the_one_that_the_page_shows(folder: Path) -> None:
    (shown,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert run("python demo.py", folder) == shown


def test_the_card_says_what_the_agent_does_and_how_to_start_it(folder: Path) -> None:
    card: dict[str, Any] = json.loads(run("discreet card ./report.py:agent", folder))
    assert card["name"] == "Report writer"
    assert [skill["id"] for skill in card["skills"]] == ["report"]
    assert card["capabilities"]["streaming"] is True
    assert {interface["url"] for interface in card["supportedInterfaces"]} == {
        "stdio:discreet%20serve%20./report.py:agent"
    }
