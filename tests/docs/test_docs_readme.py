"""What the README shows is what happens."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.pages import Page, run

README = Page("README.md")


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
@pytest.mark.parametrize(("command", "shown"), README.sessions)
def test_a_command_of_the_readme_prints_what_is_shown(command: str, shown: str, tmp_path: Path) -> None:
    README.install(tmp_path)
    for name in README.programs:
        os.utime(tmp_path / name, (1767225600, 1767225600))  # 2026-01-01
    assert run(command, tmp_path) == shown


def test_the_readme_shows_commands_and_programs() -> None:
    assert len(README.sessions) >= 6
    assert list(README.programs) == ["shop.py", "client.py", "noisy.py", "test_shop.py"]
