"""The page on tasks, done: its program is written and its commands run, in order, and print what is shown."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from discreet.agents.stores.checks import COVERED_EVENTS_KEPT
from discreet.cli.commands import verbs
from discreet.cli.verbs import tasks
from support.pages import Page, run
from support.requirements import missing

PAGE = Page("docs/tasks.md")


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
def test_whoever_follows_the_page_sees_what_it_shows(tmp_path: Path) -> None:
    if not shutil.which("jq"):
        missing("jq is not installed")
    folder = PAGE.install(tmp_path)
    assert len(PAGE.sessions) == 5
    for command, shown in PAGE.sessions:
        assert run(command, folder) == shown, command


def test_the_page_names_every_action_and_the_numbers_of_the_code() -> None:
    (choices,) = (row.choices for row in verbs()["tasks"].arguments if row.dest == "action")
    assert tuple(re.findall(r"^\| `(\w+)[^`|]*` \|", PAGE.text, re.MULTILINE)[1:]) == choices
    for number in (tasks.PAGE_SIZE, tasks.TEXT_CHARACTERS, tasks.TAIL_LINES):
        assert f" {number} " in PAGE.text or f" {number}," in PAGE.text
    assert COVERED_EVENTS_KEPT > tasks.TAIL_LINES
