"""The process and broken frames: errors that mean "send the next request", second signals, and stdin without a client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.programs import environment
from support.waits import DEADLINE_SECONDS
from support.wire import frame, request

BODY = b'{"jsonrpc":"2.0","id":1,"method":"quick"}'


def declared(length: int, body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (length, body)


BROKEN = {
    **{f"too long by {n}": declared(len(BODY) + n, BODY) + frame(BODY) for n in (1, 5, 20, 22, 30)},
    "too short": declared(len(BODY) - 3, BODY),
    "no JSON and junk": frame(b"{bad") + b"junk",
    "no JSON and no length": frame(b"{bad") + b"X: y\r\n\r\n",
    "junk": b"junk\r\n\r\n" * 100,
    "text": BODY,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_request_that_is_sent_on_seeing_the_error_is_answered(spawn: Any, name: str) -> None:
    daemon = spawn("serve", "./app.py:app")
    for number in range(10, 13):
        daemon.write(BROKEN[name])
        error = daemon.read()
        assert "error" in error
        assert error["id"] is None
        daemon.write(request(number, "app/pid"))
        while (answer := daemon.read()).get("id") != number:
            assert answer["id"] is None
        assert "result" in answer


def test_two_signals_are_no_failure_if_the_client_has_gone(spawn: Any) -> None:
    daemon = spawn("serve", "./app.py:app")
    daemon.call(1, "app/pid")
    daemon.process.stdout.close()
    daemon.signal(signal.SIGINT)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0


def test_a_daemon_without_a_client_says_so_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "discreet", "serve", "--root", str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE_SECONDS,
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert len(done.stderr.splitlines()) == 1


def test_a_server_of_the_network_ends_with_the_process_that_it_is_told_to_follow(tmp_path: Path) -> None:
    followed = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    command = [sys.executable, "-P", "-m", "discreet", "serve", "--root", str(tmp_path), "--http", "127.0.0.1:0"]
    daemon = subprocess.Popen(
        [*command, "--no-stdio", f"--parent-pid={followed.pid}"], stderr=subprocess.PIPE, env=environment()
    )
    assert daemon.stderr is not None
    while b"http.listening" not in os.read(daemon.stderr.fileno(), 4096):
        assert daemon.poll() is None
    followed.communicate(b"\n", timeout=DEADLINE_SECONDS)
    daemon.communicate(timeout=DEADLINE_SECONDS)
    assert daemon.returncode == 0
