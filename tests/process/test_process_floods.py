"""Clients that write without end, whatever they write: the daemon hears signals, ends in time and answers what came before."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from discreet.framing.encoder import encode_frame
from support.backends import BACKENDS
from support.waits import DEADLINE_SECONDS

Spawn = Callable[..., Any]


def framed(**members: object) -> bytes:
    return encode_frame(json.dumps({"jsonrpc": "2.0", **members}).encode(), "content-length")


FLOODS = {
    "lines without a meaning": b"y\n" * 5000,
    "a header that never ends": b"a: " + b"b" * 60_000,
    "a body that is always late": b"Content-Length: 9000000\r\n\r\n" + b"x" * 1000,
    "notifications": framed(method="app/echo", params={"text": "x" * 100}) * 500,
    "requests of one id": framed(id=2, method="app/sleep", params={"seconds": 0}) * 500,
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("flood", FLOODS)
def test_a_signal_ends_a_daemon_whose_client_writes_without_end(spawn: Spawn, flood: str, backend: str) -> None:
    child = spawn("serve", "./app.py:app", "--backend", backend, stderr=subprocess.DEVNULL)
    child.process.stdin.write(framed(id=1, method="app/echo", params={"text": "first"}))
    child.process.stdin.flush()
    assert b'"first"' in next(lines_of(child.process))

    def write() -> None:
        try:
            while True:
                child.process.stdin.write(FLOODS[flood])
        except (OSError, ValueError):
            return  # the daemon has ended, and perhaps the test

    reader = threading.Thread(target=lambda: [*lines_of(child.process)], daemon=True)
    writer = threading.Thread(target=write, daemon=True)
    reader.start()
    writer.start()
    time.sleep(0.3)  # the flood has begun
    child.process.send_signal(signal.SIGTERM)
    assert child.process.wait(DEADLINE_SECONDS) == 0
    writer.join(DEADLINE_SECONDS)
    reader.join(DEADLINE_SECONDS)


def lines_of(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """What the daemon writes, in pieces, until its end."""
    assert process.stdout is not None
    while piece := process.stdout.read1():  # type: ignore[attr-defined]
        yield piece
