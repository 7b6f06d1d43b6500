"""`discreet call`: how it ends when something is odd: no result is lost without a word, no status says what is not so."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from discreet.cli.commands import load_verb
from support.in_process import in_process
from support.programs import environment
from support.waits import DEADLINE_SECONDS

APP = """
from pathlib import Path
from discreet import Service

desk = Service("desk")

@desk.mutation()
def take() -> int:
    "Take one."
    Path("taken").touch()
    return 7
"""

LINES = r"""
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    answer = {}
    match message["method"]:
        case "initialize" if sys.argv[1:] == ["mute"]:
            continue
        case "services/subscribe":
            answer = {"error": {"code": -32601, "message": "Method not found"}}
        case "seven":
            answer = {"result": 7}
        case "tools/call":
            answer = {"result": {"content": [], "isError": message["params"]["bad"]}}
        case "odd":
            answer = {"error": {"code": 12345, "message": "no", "data": {"a": [1]}}}
        case "bytes":
            os.write(1, b'{"jsonrpc":"2.0","id":%d,"result":"\xff"}\n' % message["id"])
            continue
        case "lost":
            print('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}', flush=True)
            continue
        case _:
            answer = {"result": {}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "desk.py").write_text(APP)
    (tmp_path / "lines.py").write_text(LINES)
    return tmp_path


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return in_process("call", *words, folder=folder)


def spawned_call(
    folder: Path, *words: str, before: tuple[str, ...] = (), stderr: int | IO[str] = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-P", "-m", "discreet", "call", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        check=False,
        cwd=folder,
        env=environment(),
        timeout=DEADLINE_SECONDS,
    )


def lines(*words: str) -> list[str]:
    return ["--framing=newline", f"--server={shlex.join([sys.executable, '-I', '-S', 'lines.py', *words])}"]


def test_a_handshake_that_is_not_answered_in_time_is_a_timeout(folder: Path) -> None:
    done = call(folder, "m", "--dialect=mcp", "--timeout=0.2", *lines("mute"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (7, "", 1)


def test_what_is_no_subscription_is_not_run_where_the_daemon_knows(folder: Path) -> None:
    done = call(folder, "desk/take", "--stream", "--app=./desk.py:desk")
    assert (done.returncode, done.stdout) == (3, "")
    assert "--stream" in done.stderr
    assert not (folder / "taken").exists()


def test_the_result_of_what_is_no_subscription_and_has_run_is_printed(folder: Path) -> None:
    done = call(folder, "seven", "--stream", *lines())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "7\n", 1)
    assert "has run" in done.stderr


@pytest.mark.parametrize(("bad", "dialect", "status"), [("true", "mcp", 6), ("false", "mcp", 0), ("true", "plain", 0)])
def test_a_tool_that_failed_is_a_failed_operation(folder: Path, bad: str, dialect: str, status: int) -> None:
    done = call(folder, "tools/call", f"bad={bad}", f"--dialect={dialect}", *lines())
    assert (done.returncode, done.stdout) == (status, f'{{"content":[],"isError":{bad}}}\n')


def test_number_and_data_of_an_error_of_another_make_are_told(folder: Path) -> None:
    done = call(folder, "odd", *lines())
    assert (done.returncode, done.stderr) == (9, 'discreet: odd: INTERNAL: no (12345, {"a": [1]})\n')


def test_a_result_that_is_no_utf8_is_no_result(folder: Path) -> None:
    done = call(folder, "bytes", *lines())
    assert (done.returncode, done.stdout) == (10, "")


def test_an_error_that_names_no_request_is_shown(folder: Path) -> None:
    done = call(folder, "lost", "--timeout=0.5", *lines())
    first, second = done.stderr.splitlines()
    assert (done.returncode, second) == (7, "discreet: no answer to lost within 0.5 s")
    assert "PARSE_ERROR" in first


@pytest.mark.parametrize("flag", ["--app=nope:desk", "--app=./desk.py:nope", "--root=/no/such/folder"])
def test_what_the_daemon_calls_wrong_usage_is_that_and_said_once(folder: Path, flag: str) -> None:
    done = call(folder, "version", flag)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_only_the_method_is_required(folder: Path) -> None:
    done = call(folder)
    assert (done.returncode, "METHOD" in done.stderr, "NAME=VALUE" in done.stderr) == (2, True, False)


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_without_a_stdout_nothing_is_called(folder: Path) -> None:
    closing = ("sh", "-c", 'exec "$0" "$@" >&-')
    done = spawned_call(folder, "desk/take", "--app=./desk.py:desk", before=closing)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not (folder / "taken").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_stderr_changes_no_status(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        assert spawned_call(folder, "odd", *lines(), stderr=full).returncode == 9
        assert spawned_call(folder, "desk/take", "--app=./desk.py:nope", stderr=full).returncode == 2


@pytest.mark.parametrize(("words", "seconds"), [([], 30.0), (["--timeout=2.5"], 2.5), (["--timeout=none"], None)])
def test_a_generated_client_is_waited_for_as_long(words: list[str], seconds: float | None) -> None:
    assert load_verb("generate")[0].read(["python", *words]).timeout == seconds
