"""Clients that others wrote complete a session with the daemon, and all of them see the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.requirements import interop_python, missing

Place = Any

EXAMPLE = Path(__file__).parents[2] / "examples" / "language_server" / "todo_server.py"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the clients are started by way of a POSIX shell")

SESSION = {
    "initialize": "session", "add": "42", "text": "same", "large": "same", "unknown": "-32601", "params": "-32602 a",
    "refuse": "REFUSED it rains", "progress": "1 2 3", "cancel": "-32800", "shutdown": "Shutting down gracefully",
    "status": "0",
}  # fmt: skip
"""What every session prints."""


LANGUAGE_SERVER = {"diagnostics": "2", "hover": "`rose`: 2 times", "completion": "3"}
"""What every editor sees of the language server of the examples."""


MCP_SESSION = {
    "tool": "Add two numbers.",
    "add": "({'result': 5}, False)",
    "refuse": "('REFUSED', True)",
    "wrong": "('INVALID_INPUT', True)",
    "unknown": "-32602",
    "progress": "[(1.0, None), (2.0, None), (3.0, None)]",
    "cancelled": "{'result': 2}",
}
"""What MCP's own client sees, whichever way it came."""


def said(done: subprocess.CompletedProcess[bytes]) -> dict[str, str]:
    lines = done.stdout.decode().splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def tool(name: str) -> str:
    return shutil.which(name) or missing(f"{name} is not installed")


def test_a_session_of_emacs_runs_from_its_handshake_to_its_end(place: Place) -> None:
    done = place.run([tool("emacs"), "--batch", "-Q", "-l", "session.el"])
    assert said(done) == {**SESSION, "garbage": "(-32600) 42"}, done.stderr
    assert done.returncode == 0


def test_a_session_of_emacs_holds_in_a_locale_of_other_letters(place: Place) -> None:
    done = place.run(["env", "LC_ALL=de_DE.ISO-8859-1", tool("emacs"), "--batch", "-Q", "-l", "session.el"])
    assert said(done) == {**SESSION, "garbage": "(-32600) 42"}, done.stderr


def test_a_session_of_neovims_rpc_client_runs_from_its_handshake_to_its_end(place: Place, neovim: str) -> None:
    done = place.run([neovim, "--headless", "-u", "NONE", "-c", "luafile session.lua", "-c", "cq"])
    assert said(done) == SESSION, done.stderr
    assert (done.returncode, done.stderr) == (0, b"")


def test_neovims_language_client_has_nothing_to_complain_about(place: Place, neovim: str) -> None:
    done = place.run([neovim, "--headless", "-u", "NONE", "-c", "luafile session_lsp.lua", "-c", "cq"])
    shared = {name: SESSION[name] for name in ("initialize", "add", "progress", "status")}
    assert said(done) == {**shared, "settled": "true", "complaints": "0"}, done.stderr
    assert (done.returncode, done.stderr) == (0, b"")


def test_neovim_edits_with_the_language_server_of_the_examples(place: Place, neovim: str) -> None:
    shutil.copy(EXAMPLE, place.folder)
    done = place.run([neovim, "--headless", "-u", "NONE", "-c", "luafile language_server.lua", "-c", "cq"])
    renamed = "# TODO tulip|TODO 🌹 tulip tulip DONE"
    changed = {"changed": "`rose`: 3 times", "renamed": renamed, "status": "0"}
    assert said(done) == {**LANGUAGE_SERVER, **changed}, done.stderr
    assert (done.returncode, done.stderr) == (0, b"")


def test_eglot_edits_with_the_language_server_of_the_examples(place: Place) -> None:
    shutil.copy(EXAMPLE, place.folder)
    emacs = tool("emacs")
    if place.run([emacs, "--batch", "-q", "--eval", "(require 'eglot)"]).returncode:
        missing("eglot is not installed")
    done = place.run([emacs, "--batch", "-q", "-l", "language_server.el"])
    changed = {"name": "todo", "changed": "`rose`: 3 times", "status": "ended"}
    assert said(done) == {**LANGUAGE_SERVER, **changed}, done.stderr
    assert done.returncode == 0


def test_the_types_of_pygls_accept_all_that_the_language_server_of_the_examples_says(place: Place) -> None:
    shutil.copy(EXAMPLE, place.folder)
    done = place.run([interop_python("pygls"), "-P", "language_server_pygls.py"])
    told = {name: LANGUAGE_SERVER[name] for name in ("diagnostics", "hover")}
    more = {"encoding": "utf-32", "renamed": "1:7-1:11", "pulled": "2", "edits": "2", "command": "True"}
    assert said(done) == {**told, **more}, done.stderr
    assert done.returncode == 0


def test_the_language_server_of_the_examples_sends_no_editor_what_it_can_not_take(place: Place) -> None:
    shutil.copy(EXAMPLE, place.folder)
    options = ["-W", "error", "-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function"]
    done = place.run([interop_python("pytest-lsp"), "-P", "-m", "pytest", *options, "language_server_pytest_lsp.py"])
    assert done.returncode == 0, done.stdout.decode()


def test_a_session_of_vscode_jsonrpc_runs_from_its_handshake_to_its_end(place: Place) -> None:
    node = tool("node")
    modules = [os.environ.get("NODE_PATH", "")]
    if folder := os.environ.get("DISCREET_INTEROP"):
        modules.insert(0, os.path.join(os.path.abspath(folder), "node_modules"))
    command = ["env", "NODE_PATH=" + os.pathsep.join(filter(None, modules)), node]
    if place.run([*command, "-e", 'require("vscode-jsonrpc/node")']).returncode:
        missing("vscode-jsonrpc is not installed where DISCREET_INTEROP or NODE_PATH says")
    done = place.run([*command, "session.js"])
    assert said(done) == {**SESSION, "garbage": "(-32600) 42"}, done.stderr
    # All that stands on stderr is the daemon's own log.
    assert b"EPIPE" not in done.stderr
    assert b"Error" not in done.stderr
    assert done.returncode == 0


def test_a_session_of_pygls_runs_from_its_handshake_to_its_end(place: Place) -> None:
    done = place.run([interop_python("pygls"), "-P", "session_pygls.py"])
    assert said(done) == {**SESSION, "chatter": "2000", "garbage": "42"}, done.stderr
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("mode", "revision"), [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")])
def test_a_session_of_mcps_own_sdk_runs_in_both_eras(place: Place, mode: str, revision: str) -> None:
    done = place.run([interop_python("mcp", 2), "-P", "session_mcp.py", mode])
    assert said(done) == {**MCP_SESSION, "revision": revision}, done.stderr
    assert done.returncode == 0
