"""`discreet call --progress`: what a caller at a shell sees of a call that takes long."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.programs import finished

APP = """
from discreet import Context, Service

work = Service("work")

@work.mutation
async def pack(ctx: Context, boxes: int) -> int:
    "Pack boxes."
    for packed in range(1, boxes + 1):
        await ctx.progress((packed, boxes))
    return boxes

@work.mutation
async def talk(ctx: Context) -> None:
    "Tell what no terminal should do, and more than fits into a line."
    await ctx.progress("\\x1b[2J\\u202e")
    await ctx.progress("x" * 10_000)

@work.command
async def index(ctx: Context) -> str:
    "Index a folder."
    await ctx.progress({"kind": "report", "percentage": 50})
    return "done"
"""


@pytest.fixture
def app(tmp_path: Path) -> str:
    path = tmp_path / "work_app.py"
    path.write_text(APP)
    return f"{path}:work"


def call(*words: str) -> subprocess.CompletedProcess[str]:
    return finished([sys.executable, "-P", "-m", "discreet", "call", *words])


def served(app: str, dialect: str) -> str:
    serve = [sys.executable, "-P", "-m", "discreet", "serve", app, "--dialect", dialect, "--log-level", "error"]
    return f"--server={shlex.join(serve)}"


def lines(text: str) -> list[object]:
    return [json.loads(line) for line in text.splitlines()]


def test_progress_is_lines_of_json_on_stderr_and_the_result_is_alone_on_stdout(app: str) -> None:
    done = call("work/pack", "boxes=3", "--progress", "--app", app)
    assert (done.returncode, done.stdout) == (0, "3\n")
    assert lines(done.stderr) == [[1, 3], [2, 3], [3, 3]]


def test_nobody_is_told_who_does_not_ask(app: str) -> None:
    done = call("work/pack", "boxes=3", "--app", app)
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_tools_of_mcp_tell_of_their_progress(app: str) -> None:
    server = served(app, "mcp")
    params = json.dumps({"name": "work_pack", "arguments": {"boxes": 2}})
    done = call("tools/call", params, "--dialect", "mcp", "--progress", server)
    assert done.returncode == 0
    assert lines(done.stderr) == [{"progress": 1, "total": 2}, {"progress": 2, "total": 2}]


def test_commands_of_a_language_server_tell_of_their_progress(app: str) -> None:
    server = served(app, "lsp")
    done = call(
        "workspace/executeCommand", json.dumps({"command": "work.index"}), "--dialect", "lsp", "--progress", server
    )
    assert (done.returncode, done.stdout) == (0, '"done"\n')
    assert {"kind": "report", "percentage": 50} in lines(done.stderr)


def test_progress_cannot_move_the_cursor_and_is_cut(app: str) -> None:
    done = call("work/talk", "--progress", "--app", app)
    first, second = done.stderr.splitlines()
    assert first.isprintable()
    assert json.loads(first) == "\x1b[2J\u202e"
    assert len(second) < 8300
    assert second.endswith("(10002 characters)")


@pytest.mark.parametrize("words", [["[1]"], ['{"_meta": 1}'], ["--stream"]])
def test_where_there_is_no_place_for_the_token_it_is_said_so(app: str, words: list[str]) -> None:
    done = call("work/pack", *words, "--progress", "--app", app)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("discreet: --progress ")
