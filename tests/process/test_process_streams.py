"""Stdin and stdout of the real process: nothing but frames leaves, whatever writes; any kind of descriptor serves."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.backends import BACKENDS
from support.programs import DISCREET, environment
from support.waits import DEADLINE_SECONDS
from support.wire import frame, request

Spawn = Callable[..., Any]
Run = Callable[..., subprocess.CompletedProcess[bytes]]


def test_stray_output_of_any_origin_becomes_a_log_event_and_never_a_byte_of_the_stream(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    log = ""
    for how in ("print", "stderr", "write", "child"):
        assert child.call(how, "app/noise", {"how": how})["result"] == how
        assert child.call("version", "version")["id"] == "version"
        while f"stray from {how}" not in log:  # one event may hold several
            log += child.stderr_until("stray")
    assert child.end() == 0
    log += child.stderr()
    assert "raw banner at import" in log
    assert [line for line in log.splitlines() if "stray from stderr" in line and "stderr.stray" in line]
    for how in ("print", "write", "child"):
        assert [line for line in log.splitlines() if f"stray from {how}" in line and "stdout.stray" in line], how


def test_nobody_but_the_daemon_reads_from_the_stream(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    hows = ("stdin", "child-stdin")
    child.write(b"".join(request(how, "app/noise", {"how": how}) for how in hows) + request("last", "version"))
    answers = {message["id"]: message["result"] for message in (child.read() for _ in range(3))}
    assert [answers[how] for how in hows] == ["''", ""]
    assert child.end() == 0


def test_a_flood_of_prints_does_not_stall_the_daemon_whose_stderr_nobody_reads(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    assert child.call(1, "app/flood", {"lines": 20_000})["result"] == 20_000
    assert child.call(2, "version")["id"] == 2
    child.close_stdin()
    assert child.wait() == 0


def test_errors_for_every_request_do_not_stall_the_daemon_whose_stderr_nobody_reads(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", "--log-level", "debug")
    for call_id in range(2000):
        assert child.call(call_id, "no/such", {"x": "y" * 200})["error"]["code"] == -32601
    child.close_stdin()
    assert child.wait() == 0


def test_a_stdin_without_a_client_is_the_end_which_is_said_in_one_line(
    app_directory: Path, command: list[str], run: Run
) -> None:
    null = run(stdin=subprocess.DEVNULL)
    assert (null.returncode, null.stdout, len(null.stderr.splitlines())) == (0, b"", 1)
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, cwd=app_directory, timeout=DEADLINE_SECONDS
    )
    assert (closed.returncode, closed.stdout) == (0, b"")


def test_stdout_may_be_the_null_device_but_not_closed(app_directory: Path, command: list[str], run: Run) -> None:
    null = run(input=request(1, "version"), stdout=subprocess.DEVNULL)
    assert null.returncode == 0
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command],
        input=b"",
        stderr=subprocess.PIPE,
        cwd=app_directory,
        timeout=DEADLINE_SECONDS,
    )
    assert closed.returncode == 2
    assert len(closed.stderr.decode().strip().splitlines()) == 1


def test_on_a_terminal_a_hint_says_what_this_program_speaks(app_directory: Path, command: list[str]) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=app_directory
    ) as child:
        os.close(theirs)
        assert child.stderr is not None
        assert b"JSON-RPC" in child.stderr.readline()
        os.write(ours, b"\x04")
        assert child.wait(DEADLINE_SECONDS) == 0
    os.close(ours)


@pytest.mark.parametrize(
    ("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"DISCREET_NO_COLOR": "true"}, False)]
)
def test_a_terminal_gets_colours_unless_a_variable_forbids_it(
    app_directory: Path, variables: dict[str, str], coloured: bool
) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*DISCREET, "serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        cwd=app_directory,
        env=environment(TERM="xterm") | variables,
    ) as child:
        assert child.stdin is not None
        line = os.read(ours, 1 << 16)
        child.stdin.close()
        assert child.wait(DEADLINE_SECONDS) == 0
    os.close(ours)
    os.close(theirs)
    assert (b"\x1b[" in line) is coloured


@pytest.mark.parametrize("more", [[], ["--log-level", "info"], ["--log-file", "/nowhere/log"]])
def test_a_start_that_fails_says_one_line_on_a_terminal_too(app_directory: Path, more: list[str]) -> None:
    text = "from discreet import Service\ns = Service('')\n@s.query()\ndef version(): ...\n"
    (app_directory / "wrong.py").write_text(text)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*DISCREET, "serve", "./wrong.py:s", *more],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=app_directory,
        env=environment(),
    ) as child:
        assert child.stderr is not None
        lines = child.stderr.read().decode().splitlines()
        assert child.wait(DEADLINE_SECONDS) == 2
    os.close(ours)
    os.close(theirs)
    assert len(lines) == 1
    assert lines[0].startswith("discreet: ")


# -- messages ---------------------------------------------------------------------------------------------------------

STREAMS = """
from collections.abc import AsyncIterator
from discreet import Service
app = Service("app")

@app.subscription()
async def count(to: int, pad: int = 0) -> AsyncIterator[str]:
    for number in range(to):
        yield f"{number}:{'x' * pad}"
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stream_through_real_pipes_is_whole_and_a_call_overtakes_it(
    spawn: Spawn, app_directory: Path, backend: str
) -> None:
    (app_directory / "streams.py").write_text(STREAMS)
    child = spawn("serve", "./streams.py:app", "--backend", backend)
    child.write(request("s", "app/count", {"to": 2000, "pad": 2000}))
    assert child.read()["params"]["seq"] == 1
    child.write(request("v", "version"))
    child.close_stdin()
    messages = child.read_all()
    place = next(index for index, message in enumerate(messages) if message.get("id") == "v")
    assert place < 500
    events = [message["params"]["seq"] for message in messages if "method" in message]
    assert events == list(range(2, 2001))
    assert messages[-1] == {"jsonrpc": "2.0", "id": "s", "result": {"completed": True, "events": 2000}}
    assert child.wait() == 0


BODY = b'{"jsonrpc":"2.0","id":1,"method":"quick"}'

BROKEN = {
    "too long": b"Content-Length: %d\r\n\r\n%b" % (len(BODY) + 20, BODY) + frame(BODY),
    "too short": b"Content-Length: %d\r\n\r\n%b" % (len(BODY) - 3, BODY),
    "no JSON and junk": frame(b"{bad") + b"junk",
    "no JSON and no length": frame(b"{bad") + b"X: y\r\n\r\n",
    "junk": b"junk\r\n\r\n" * 100,
    "text": BODY,
}


def test_a_request_that_is_sent_on_seeing_the_error_is_answered(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    for name in (*BROKEN, *BROKEN):
        child.write(BROKEN[name])
        error = child.read()
        assert ("error" in error, error["id"]) == (True, None), name
        child.write(request(name, "app/pid"))
        while (answer := child.read()).get("id") != name:
            assert answer["id"] is None, name
        assert "result" in answer, name


def test_a_cancel_that_is_sent_as_a_request_is_answered(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    for params in ({}, {"id": 99}, {"id": None}, {"id": []}):
        assert child.call(7, "$/cancelRequest", params) == {"jsonrpc": "2.0", "id": 7, "result": None}
    assert child.end() == 0


def test_a_text_of_many_characters_without_a_blank_does_not_stop_the_log(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    assert child.call(1, "x" * 9000)["error"]["code"] == -32601
    child.write(frame(b"oops"))
    assert child.read()["error"]["code"] == -32700
    child.stderr_until("frame.dropped")
    assert child.end() == 0
