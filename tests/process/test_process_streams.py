"""Stdin and stdout of the real process: nothing but frames leaves, whatever writes; any kind of descriptor serves."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.framing.events import END_OF_INPUT, Fault, Frame, FrameLimits
from discreet.framing.parser import parser_for
from support.programs import DISCREET, environment
from support.waits import DEADLINE_SECONDS
from support.wire import request

Spawn = Callable[..., Any]
Run = Callable[..., subprocess.CompletedProcess[bytes]]


def messages(data: bytes) -> list[dict[str, Any]]:
    """What strict framing makes of a whole stdout; fails on anything that is no frame."""
    parser = parser_for("content-length", FrameLimits(max_body=1 << 30))
    if data:
        parser.receive_data(data)
    parser.end_of_input()
    found: list[dict[str, Any]] = []
    while (event := parser.next_event()) is not END_OF_INPUT:
        assert not isinstance(event, Fault), event
        assert isinstance(event, Frame)
        found.append(json.loads(event.body))
    return found


@pytest.mark.parametrize("how", ["print", "stderr", "write", "child"])
def test_stray_output_of_any_origin_becomes_a_log_event_and_never_a_byte_of_the_stream(spawn: Spawn, how: str) -> None:
    child = spawn("serve", "./app.py:app")
    assert child.call(1, "app/noise", {"how": how})["result"] == how
    assert child.call(2, "version")["id"] == 2
    log = child.stderr_until("raw banner at import")
    if f"stray from {how}" not in log:  # one event may hold both
        log += child.stderr_until(f"stray from {how}")
    assert ("stderr.stray" if how == "stderr" else "stdout.stray") in log
    assert child.end() == 0


@pytest.mark.parametrize("how", ["stdin", "child-stdin"])
def test_nobody_but_the_daemon_reads_from_the_stream(spawn: Spawn, how: str) -> None:
    child = spawn("serve", "./app.py:app")
    child.write(request(1, "app/noise", {"how": how}) + request(2, "version"))
    answers = {message["id"]: message["result"] for message in (child.read(), child.read())}
    assert answers[1] in ("", "''")
    assert set(answers) == {1, 2}


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


def test_stdin_and_stdout_may_be_files(app_directory: Path, run: Run) -> None:
    wanted = b"".join(request(n, "app/echo", {"n": n, "pad": "x" * 5000}) for n in range(200))
    (app_directory / "in").write_bytes(wanted)
    with (app_directory / "in").open("rb") as stdin, (app_directory / "out").open("wb") as stdout:
        done = run("serve", "./app.py:app", stdin=stdin, stdout=stdout)
    assert done.returncode == 0
    assert [m["result"]["n"] for m in messages((app_directory / "out").read_bytes())] == list(range(200))


def test_stdin_may_be_the_null_device_or_closed(app_directory: Path, command: list[str], run: Run) -> None:
    null = run(stdin=subprocess.DEVNULL)
    assert (null.returncode, null.stdout) == (0, b"")
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


def test_one_socket_may_serve_both_ways(app_directory: Path, command: list[str]) -> None:
    ours, theirs = socket.socketpair()
    with (
        ours,
        theirs,
        subprocess.Popen(
            [*command, "serve", "./app.py:app"], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, cwd=app_directory
        ) as child,
    ):
        theirs.close()
        ours.settimeout(DEADLINE_SECONDS)
        ours.sendall(request(1, "app/echo", {"pad": "x" * 300_000}) + request(2, "version"))
        ours.shutdown(socket.SHUT_WR)
        received = b""
        while data := ours.recv(1 << 16):
            received += data
        assert [m["id"] for m in messages(received)] == [1, 2]
        assert child.wait(DEADLINE_SECONDS) == 0


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
    ("variables", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),  # no-color.org: when present and not an empty string
        ({"DISCREET_NO_COLOR": "true"}, False),
        ({"NO_COLOR": "1", "DISCREET_NO_COLOR": "false"}, True),
    ],
)
def test_the_variable_of_this_program_decides_about_colours_before_that_of_all(
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


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_large_replies_reach_a_slow_reader_whole(spawn: Spawn, backend: str) -> None:
    child = spawn("serve", "./app.py:app", "--backend", backend)
    size = 9_000_000
    child.write(b"".join(request(n, "app/big", {"size": size}) for n in range(3)) + request("v", "version"))
    answers = {message["id"]: message for message in (child.read() for _ in range(4))}
    assert {len(answers[n]["result"]) for n in range(3)} == {size}
    assert child.end() == 0


def test_descriptors_inherited_as_non_blocking_serve_and_stay_as_they_are(
    app_directory: Path, command: list[str]
) -> None:
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    os.set_blocking(read_in, False)
    os.set_blocking(write_out, False)
    with subprocess.Popen(
        [*command, "serve", "./app.py:app"], stdin=read_in, stdout=write_out, stderr=subprocess.PIPE, cwd=app_directory
    ) as child:
        os.write(write_in, request(1, "app/big", {"size": 500_000}))
        received = b""
        while len(received) < 500_000:
            received += os.read(read_out, 1 << 16)
        os.close(write_in)
        assert child.wait(DEADLINE_SECONDS) == 0
        assert not os.get_blocking(read_in)
        assert not os.get_blocking(write_out)
    os.close(write_out)
    while data := os.read(read_out, 1 << 16):
        received += data
    assert len(messages(received)[0]["result"]) == 500_000
    for fd in (read_in, read_out):
        os.close(fd)


def test_newline_framing_speaks_lines_both_ways(run: Run) -> None:
    lines = b'{"jsonrpc":"2.0","id":1,"method":"version"}\nnonsense\r\n\n{"jsonrpc":"2.0","id":2,"method":"version"}'
    for framing in ("newline", "auto"):
        done = run("--framing", framing, input=lines)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["id"] for answer in answers] == [1, None, 2]
        assert answers[1]["error"]["code"] == -32700
        assert done.returncode == 0


def test_auto_framing_hears_headers_too(run: Run) -> None:
    done = run("--framing", "auto", input=request(1, "version"))
    assert [m["id"] for m in messages(done.stdout)] == [1]
