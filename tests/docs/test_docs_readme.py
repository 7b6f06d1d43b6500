"""The README and the tutorial, done: their files are written and their commands run, and print what is shown."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from support.pages import Page, run
from support.programs import install_commands

README, TUTORIAL = Page("README.md"), Page("docs/tutorial.md")
FILE = re.compile(r"# (\w+\.py)(, continued)?\n")


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
@pytest.mark.parametrize(("command", "shown"), README.sessions)
def test_a_command_of_the_readme_prints_what_is_shown(command: str, shown: str, tmp_path: Path) -> None:
    README.install(tmp_path)
    for name in README.programs:
        os.utime(tmp_path / name, (1767225600, 1767225600))  # 2026-01-01
    assert run(command, tmp_path) == shown


@pytest.mark.parametrize(
    "page", ["README.md", "docs/tutorial.md", "docs/language-servers.md", "docs/mcp.md", "docs/acp.md"]
)
def test_a_page_to_begin_with_installs_before_it_shows_a_program_or_a_command(page: str) -> None:
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    assert text.index("pip install .") < min(text.index("```python"), text.find("```console") % len(text))


def test_the_readme_shows_commands_and_programs() -> None:
    assert len(README.sessions) >= 6
    assert list(README.programs) == ["shop.py", "client.py", "noisy.py", "test_shop.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
def test_whoever_follows_the_tutorial_sees_what_it_shows(tmp_path: Path) -> None:
    install_commands(tmp_path / "bin", python="")
    for language, text in TUTORIAL.blocks:
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
    assert list(TUTORIAL.programs) == ["library.py", "desk.py", "test_library.py", "test_contract.py"]
    assert len(TUTORIAL.sessions) >= 9
