"""`discreet call --progress`: what a caller at a shell sees of a call that takes long."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.cli.remote_call import ProgressLine, describe
from support.in_process import in_process
from support.programs import DISCREET, on_terminal

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
    return in_process("call", *words)


def served(app: str, dialect: str) -> str:
    serve = [*DISCREET, "serve", app, "--dialect", dialect, "--log-level", "error"]
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


def on_a_terminal(*words: str, **more: str) -> tuple[str, str]:
    """What the call writes to stdout, and to stderr, which is a terminal."""
    done, shown = on_terminal([*DISCREET, "call", *words], "stderr", **{"TERM": "xterm", **more})
    assert done.returncode == 0
    return done.stdout, shown


needs_a_terminal = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


@needs_a_terminal
def test_on_a_terminal_progress_is_one_line_that_is_gone_at_the_end(app: str) -> None:
    result, shown = on_a_terminal("work/pack", "boxes=2", "--app", app)
    assert result == "2\n"
    *messages, blank, end = shown.split("\r")
    assert messages == ["work/pack: 1/2", "work/pack: 2/2"]
    assert (blank.strip(), len(blank), end) == ("", len(messages[-1]), "")


@needs_a_terminal
@pytest.mark.parametrize(
    ("words", "variables"), [(["--no-progress"], {}), ([], {"TERM": "dumb"}), (["--server=-"], {})]
)
def test_the_line_is_left_out_where_it_is_not_wanted(app: str, words: list[str], variables: dict[str, str]) -> None:
    server = [served(app, "plain")] if words == ["--server=-"] else ["--app", app, *words]
    assert on_a_terminal("work/pack", "boxes=2", *server, **variables) == ("2\n", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, 3], "1/3"),
        ({"progress": 1, "total": 3, "message": "a\nb"}, "1/3 a\\nb"),
        ({"progress": 0.5}, "0.5"),
        ({"kind": "report", "percentage": 50, "message": "half"}, "50% half"),
        ({"kind": "begin", "title": "Index"}, "Index"),
        ("\x1b[2J", "\\x1b[2J"),
        ({"done": 1}, '{"done":1}'),
        (None, "null"),
    ],
)
def test_a_message_is_what_a_person_reads(value: object, text: str) -> None:
    assert describe(value) == text


def test_the_line_never_wraps(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine("m")
    line.show("漢" * 100)
    line.show("x")
    line.close()
    first, second, third, _ = capsys.readouterr().err.split("\r")
    assert first == "m: " + "漢" * 36
    assert (len(second), third) == (78, "    ")
