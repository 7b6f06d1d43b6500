"""The tutorial, done: its files are written and its commands run, in order, and print what is shown."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from support.pages import Page, run
from support.programs import install_commands

PAGE = Page("docs/tutorial.md")
FILE = re.compile(r"# (\w+\.py)(, continued)?\n")


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
def test_whoever_follows_the_tutorial_sees_what_it_shows(tmp_path: Path) -> None:
    install_commands(tmp_path / "bin", python="")
    for language, text in PAGE.blocks:
        if language == "python":
            named = FILE.match(text)
            assert named is not None, text
            with (tmp_path / named[1]).open("a" if named[2] else "x", encoding="utf-8") as file:
                file.write(text)
            continue
        assert language == "console"
        for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = session.partition("\n")
            # files are continued within the second that their time tells
            assert run(command, tmp_path, PYTHONDONTWRITEBYTECODE="1") == shown.strip(), command


def test_the_tutorial_has_what_it_promises() -> None:
    assert list(PAGE.programs) == ["library.py", "desk.py", "test_library.py", "test_contract.py"]
    assert len(PAGE.sessions) >= 9
