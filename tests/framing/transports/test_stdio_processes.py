"""Processes whose stdin and stdout are of any kind, or missing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
import tty
from collections.abc import Callable
from pathlib import Path

import pytest

from support.descriptors import null_device, raw_terminal, socket_pair
from support.waits import DEADLINE_SECONDS

ECHO = """
import anyio
from discreet.framing.stdio_guard import redirect
from discreet.framing.transports.stdio import StdioTransport
from discreet.framing.transports.threaded import threaded_writer

async def main():
    transport = StdioTransport(streams.stdin, streams.stdout, closefd=False)
    received = bytearray()
    while chunk := await transport.receive():
        received += chunk
    print("stray")
    await transport.send(b"got " + received)

streams = redirect()
anyio.run(main)
"""


MESSAGE = b"Content-Length: 2\r\n\r\n{}"


def feeding(kind: str, tmp_path: Path) -> tuple[int, Callable[[], None]]:
    """A stdin of this kind, and what the parent does once the child has its copy."""
    if kind == "file":
        (tmp_path / "in").write_bytes(MESSAGE)
        return os.open(tmp_path / "in", os.O_RDONLY), lambda: None
    if kind == "null":
        return null_device(), lambda: None
    if kind == "terminal":
        controlling, controlled = pty.openpty()
        tty.setraw(controlled)
        settings = termios.tcgetattr(controlled)
        settings[3] |= termios.ICANON  # lines and Control-D, but no translation of CR
        termios.tcsetattr(controlled, termios.TCSANOW, settings)
        os.write(controlling, MESSAGE + b"\x04\x04")  # the first ends the line, the second the input
        return controlled, lambda: os.close(controlling)
    there, here = os.pipe() if kind == "pipe" else socket_pair()

    def feed() -> None:
        os.write(here, MESSAGE)
        os.close(here)

    return there, feed


def taking(kind: str, tmp_path: Path) -> tuple[int, Callable[[], bytes]]:
    """A stdout of this kind, and how the parent reads it."""
    if kind == "file":
        return os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT), (tmp_path / "out").read_bytes
    if kind == "null":
        return null_device(), lambda: b"got " + MESSAGE
    here, there = {"pipe": os.pipe, "socket": socket_pair, "terminal": raw_terminal}[kind]()

    def take() -> bytes:
        data = os.read(here, 65536)
        os.close(here)
        return data

    return there, take


KINDS = ["pipe", "socket", "file", "terminal", "null"]


COMBINATIONS = [(kind, "pipe") for kind in KINDS] + [("pipe", kind) for kind in KINDS[1:]]


@pytest.mark.parametrize(("stdin_kind", "stdout_kind"), COMBINATIONS)
def test_a_process_speaks_through_whatever_its_parent_gives_it(
    stdin_kind: str, stdout_kind: str, tmp_path: Path
) -> None:
    stdin, feed = feeding(stdin_kind, tmp_path)
    stdout, take = taking(stdout_kind, tmp_path)
    child = subprocess.Popen([sys.executable, "-P", "-c", ECHO], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE)
    os.close(stdin)
    if stdout_kind != "terminal":  # a terminal whose last user has gone would lose what it holds
        os.close(stdout)
    if stdin_kind != "terminal":
        feed()
    _, errors = child.communicate(timeout=DEADLINE_SECONDS)
    assert (child.returncode, errors) == (0, b"")
    assert take() == b"got " + (b"" if stdin_kind == "null" else MESSAGE)
    if stdin_kind == "terminal":
        feed()
    if stdout_kind == "terminal":
        os.close(stdout)


def test_a_process_without_stdin_finds_the_end_of_input() -> None:
    child = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-P", "-c", ECHO],
        capture_output=True,
        timeout=DEADLINE_SECONDS,
        check=True,
    )
    assert (child.stdout, child.stderr) == (b"got ", b"")


@pytest.mark.parametrize("redirection", [">&-", "1</dev/null"])
def test_a_process_without_stdout_is_told_so(redirection: str) -> None:
    script = "from discreet.framing.stdio_guard import redirect\nredirect()"
    child = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-P", "-c", script],
        stderr=subprocess.PIPE,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert child.returncode == 1
    assert b"StdoutClosed: stdout is " in child.stderr
