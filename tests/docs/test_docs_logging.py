"""The commands of docs/logging.md that find the lines of a request and of a task, done."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from support.pages import Page, run

PAGE = Page("docs/logging.md")


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
def test_the_commands_find_the_lines_of_a_request_and_of_a_task(tmp_path: Path) -> None:
    PAGE.install(tmp_path)
    assert len(PAGE.sessions) == 4
    for command, shown in PAGE.sessions:
        if "jq" not in command or shutil.which("jq"):
            assert run(command, tmp_path) == shown, command
