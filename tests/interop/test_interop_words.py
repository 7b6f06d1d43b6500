"""Editors with the very settings that docs/language-servers.md shows have its first server at work."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from support.requirements import missing

Place = Any

PAGE = (Path(__file__).parents[2] / "docs" / "language-servers.md").read_text(encoding="utf-8")
ANSWERS = b"name=words\nhover=2 times\ncompletion=TODO\n"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the server is started by way of a POSIX shell")


def snippet(language: str) -> str:
    [text] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def prepare(place: Place, settings: str, language: str) -> None:
    """Where the page says `/path/to` is the folder."""
    server = next(text for text in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    (place.folder / "words.py").write_text(server, encoding="utf-8")
    (place.folder / "notes.txt").write_text("rose and rose", encoding="utf-8")
    (place.folder / settings).write_text(snippet(language).replace("/path/to", str(place.folder)), encoding="utf-8")


def tool(name: str) -> str:
    return shutil.which(name) or missing(f"{name} is not installed")


def test_neovim_with_the_settings_of_the_page(place: Place, neovim: str) -> None:
    prepare(place, "init.lua", "lua")
    before = ["--cmd", "luafile older_neovim.lua", "-u", "init.lua"]
    done = place.run([neovim, "--headless", *before, "-c", "luafile words.lua", "-c", "cq"])
    assert (done.returncode, done.stdout, done.stderr) == (0, ANSWERS, b"")


def test_emacs_with_the_settings_of_the_page(place: Place) -> None:
    prepare(place, "init.el", "elisp")
    emacs = tool("emacs")
    if place.run([emacs, "--batch", "-q", "--eval", "(require 'eglot)"]).returncode:
        missing("eglot is not installed")
    done = place.run([emacs, "--batch", "-q", "-l", "init.el", "-l", "words.el"])
    assert (done.returncode, done.stdout) == (0, ANSWERS), done.stderr
