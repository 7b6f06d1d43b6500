"""Editors drive every feature that they have with one language server, and one that is killed leaves no process of it.

The table of docs/language-servers.md is the one here. What an editor's version does not have is skipped, and the reason says so.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest

from support.programs import has_ended
from support.requirements import missing
from support.waits import wait_until

Place = Any

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the server is started by way of a POSIX shell")

PAGE: Final = Path(__file__).parents[2] / "docs" / "language-servers.md"

SEEN: Final = {
    "completion": "water watered",
    "hover": "rose: 2 times",
    "rename": "# water tulip|water 🌹 tulip",
    "code action": "# water tulip|watered 🌹 tulip",
    "semantic tokens": "0 2 5 0 0 1 0 5 0 0",
    "inlay hints": "0 7 1, 1 5 2",
    "diagnostics": "0 thirsty, 1 thirsty",
    "pulled diagnostics": "none pushed",
    "progress": "begin report end",
    "file watching": "sown oak.seed",
}
"""Every feature, and what it comes to in an editor."""


@dataclass(frozen=True)
class Editor:
    """One column of the table."""

    title: str
    command: tuple[str, ...]
    probe: tuple[str, ...]
    """Succeeds if the editor has what it needs."""
    since: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Features with the first version that has them, or None: the session does not drive them."""
    seen: Mapping[str, str] = field(default_factory=dict[str, str])
    """What looks otherwise in this editor than in others."""

    def runnable(self, place: Place, *before: str) -> list[str]:
        if not shutil.which(self.command[0]) or place.run([*self.probe]).returncode:
            missing(f"{self.title} is not installed")
        return ["env", *before, *self.command]


def neovim(program: str) -> Editor:
    run = (program, "--headless", "-u", "NONE", "-c")
    return Editor(
        "Neovim",
        (*run, "luafile editor_garden.lua", "-c", "cq"),
        (*run, "qa"),
        since={
            "semantic tokens": "0.9",
            **dict.fromkeys(("inlay hints", "pulled diagnostics", "file watching"), "0.10"),
        },
        seen={"semantic tokens": "0 2 7 keyword 1 0 5 keyword"},
    )


def emacs(package: str, script: str, *without: str, seen: Mapping[str, str] = {}) -> Editor:
    run = ("emacs", "--batch", "-q")
    probe = (*run, "--eval", f"(require '{package})")
    return Editor(f"Emacs, {package}", (*run, "-l", script), probe, since=dict.fromkeys(without), seen=seen)


EDITORS: Final = {
    "neovim": neovim("nvim"),
    "newer neovim": neovim(os.environ.get("DISCREET_NEOVIM", "")),
    "eglot": emacs("eglot", "editor_garden.el", "semantic tokens", "inlay hints", "pulled diagnostics", "progress"),
    "lsp-mode": emacs(
        "lsp-mode",
        "editor_garden_lsp_mode.el",
        "inlay hints",
        "pulled diagnostics",
        seen={name: SEEN[name].replace("🌹", "♣") for name in ("rename", "code action")},
    ),
    "vscode": Editor(
        "VS Code's client library",
        ("node", "editor_garden.js"),
        ("node", "-e", 'require("vscode-languageserver-protocol/node")'),
    ),
}


def numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


@dataclass(frozen=True)
class Session:
    """What an editor did with the server, from its start to its end."""

    editor: Editor
    done: subprocess.CompletedProcess[bytes]

    @cached_property
    def said(self) -> dict[str, str]:
        return {
            name: value for name, _, value in (each.partition("=") for each in self.done.stdout.decode().splitlines())
        }


@pytest.fixture(scope="module", params=EDITORS)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, place_in: Any) -> Session:
    """One run of an editor, for all its rows."""
    editor = EDITORS[request.param]
    with place_in(tmp_path_factory.mktemp("editor")) as place:
        return Session(editor, place.run(editor.runnable(place)))


@pytest.mark.parametrize("feature", SEEN)
def test_an_editor_has_the_feature(session: Session, feature: str) -> None:
    editor, said = session.editor, session.said
    assert "version" in said, session.done.stderr.decode()
    since = editor.since.get(feature, "0")
    if since is None:
        pytest.skip(f"{feature}: not in {editor.title} {said['version']}, or not driven there")
    if numbers(said["version"]) < numbers(since):
        pytest.skip(f"{feature}: {editor.title} has them from {since} on, and this is {said['version']}")
    assert said.get(feature) == editor.seen.get(feature, SEEN[feature]), session.done.stderr.decode()


def test_an_editor_ends_its_session_without_a_fault(session: Session) -> None:
    assert session.done.returncode == 0, session.done.stderr.decode()
    assert session.said.get("status", "0") == "0"  # an Emacs does not wait for it


@pytest.mark.parametrize("editor", EDITORS.values(), ids=EDITORS)
def test_an_editor_that_is_killed_leaves_no_process_of_its_server(place: Place, editor: Editor) -> None:
    command = editor.runnable(place, "GARDEN_REST=1")
    process = place.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until((place.folder / "resting").exists)  # a request is at work
        [server] = place.daemons()
        assert not has_ended(server)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: has_ended(server))
    finally:
        place.kill(process)


def test_the_page_of_language_servers_has_this_table() -> None:
    def cell(editor: Editor, feature: str) -> str:
        since = editor.since.get(feature, "")
        return "no" if since is None else f"from {since} on" if since else "yes"

    editors = {editor.title: editor for editor in EDITORS.values()}
    rows = [f"| {feature} | {' | '.join(cell(each, feature) for each in editors.values())} |" for feature in SEEN]
    table = "\n".join([f"| feature | {' | '.join(editors)} |", "| --- " * (len(editors) + 1) + "|", *rows])
    assert table in PAGE.read_text("utf-8"), table
