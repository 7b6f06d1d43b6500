"""A reply that can't be written is never lost without a word: a log line and status 1, whatever stdout is."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's own devices")

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}\n'
"""Its answer is larger than the limit of a file below, and several are larger than a pipe or a terminal holds."""

FILE_LIMIT = 2048


@contextmanager
def full_device(_: Path) -> Iterator[int]:
    with open("/dev/full", "wb") as device:
        yield device.fileno()


@contextmanager
def pipe_without_reader(_: Path) -> Iterator[int]:
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@contextmanager
def pipe_never_read(_: Path) -> Iterator[int]:
    reading, writing = os.pipe()
    yield writing
    os.close(writing)
    os.close(reading)


@contextmanager
def terminal_never_read(_: Path) -> Iterator[int]:
    """The controlling side of a terminal: it can't be polled or opened anew, so a thread writes to it."""
    controlling, controlled = os.openpty()
    tty.setraw(controlled)
    yield controlling
    os.close(controlling)
    os.close(controlled)


@contextmanager
def limited_file(folder: Path) -> Iterator[int]:
    with open(folder / "out", "wb") as file:
        yield file.fileno()


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))


# (stdout, requests, drain window, words of the log); the window is short where nobody will ever read, and else not waited for.
WHEN_INPUT_ENDS = {
    "full device": (full_device, 1, DEADLINE_SECONDS, ["replies.lost", "stdout.failed", "ENOSPC"]),
    "pipe without a reader": (pipe_without_reader, 1, DEADLINE_SECONDS, ["stdout.closed", "EPIPE"]),
    "pipe that is never read": (pipe_never_read, 60, 1.0, ["replies.lost"]),
    "terminal that is never read": (terminal_never_read, 60, 1.0, ["replies.lost"]),
    "file at its limit": (limited_file, 1, DEADLINE_SECONDS, ["stdout.failed", "EFBIG"]),
}


@pytest.mark.parametrize("case", WHEN_INPUT_ENDS)
def test_what_was_not_written_when_the_input_ended_is_said_and_is_a_failure(
    command: list[str], tmp_path: Path, case: str
) -> None:
    opened, count, window, words = WHEN_INPUT_ENDS[case]
    with opened(tmp_path) as stdout:
        done = subprocess.run(
            [*command, "--framing", "newline", "--drain-timeout", str(window)],
            input=REQUEST * count,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            timeout=DEADLINE_SECONDS,
            preexec_fn=limit_files if opened is limited_file else None,
        )
    log = done.stderr.decode()
    assert done.returncode == 1, log
    assert all(word in log for word in words), log
    assert "Traceback" not in log


SLOW_APP = """
import time
from discreet import Service

time.sleep(1.5)  # several drain windows
app = Service("app")

@app.query(inline=True)
def large() -> str:
    return "x" * 20_000
"""


def test_a_client_that_hangs_up_during_a_slow_start_and_reads_nothing_is_given_up(
    command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(SLOW_APP)
    with terminal_never_read(tmp_path) as stdout:
        done = subprocess.run(
            [*command, "serve", "./slow.py:app", "--framing", "newline", "--drain-timeout", "0.3"],
            input=REQUEST.replace(b"rpc.discover", b"app/large") * 60,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            timeout=DEADLINE_SECONDS,
        )
    assert done.returncode == 1
    assert b"replies.lost" in done.stderr


@pytest.mark.parametrize("case", ["pipe without a reader", "file at its limit"])
def test_what_can_not_be_written_ends_the_daemon_though_its_input_goes_on(
    command: list[str], tmp_path: Path, case: str
) -> None:
    opened, _, _, words = WHEN_INPUT_ENDS[case]
    with opened(tmp_path) as stdout:
        child = subprocess.Popen(
            [*command, "--framing", "newline"],
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
        )
    with child:
        if opened is limited_file:
            resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))
        assert child.stdin is not None
        assert child.stderr is not None
        child.stdin.write(REQUEST)
        child.stdin.flush()
        try:
            assert child.wait(DEADLINE_SECONDS) == 1
        finally:
            child.kill()
        log = child.stderr.read().decode()
    assert all(word in log for word in words), log
