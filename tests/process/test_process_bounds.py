"""Nothing grows without bound in the real process, and it answers afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

import pytest

from support.backends import BACKENDS
from support.waits import DEADLINE_SECONDS, wait_until
from support.wire import frame, request

Spawn = Callable[..., Any]

MIB = 1 << 20
ALLOWED_GROWTH = 64 * MIB
CHUNK = 1 << 18
PIPE_BYTES = 1 << 20
"""More than any pipe holds."""


def peak_rss(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def junk_and_its_reason() -> dict[str, tuple[str, Callable[[], Iterator[bytes]]]]:
    """Floods, each of which would be more than may be held, and what each is refused for."""
    size = ALLOWED_GROWTH * 3 // 2
    line = (b"X-" + b"a" * 1020 + b": b\r\n") * 256
    every_byte = bytes(range(256)) * (CHUNK // 256)

    def many(piece: bytes, *last: bytes, first: bytes = b"") -> Callable[[], Iterator[bytes]]:
        return lambda: chain([first], repeat(piece, size // len(piece)), last)

    return {
        "a body of the announced length": ("oversize", many(b"x" * CHUNK, first=b"Content-Length: %d\r\n\r\n" % size)),
        "a header block that ends at last": ("header-too-large", many(line, b"\r\n")),
        "one header line": ("header-too-large", many(b"a" * CHUNK, b"\r\n\r\n")),
        "an unframed text": ("missing-content-length", many(b'"' + b"x" * (CHUNK - 3) + b'",', b"0]", first=b"[")),
        "every kind of byte": ("malformed-header", lambda: repeat(every_byte, 16)),
        "the shortest blocks that are none": ("malformed-header", lambda: iter([b"garbage\r\n\r\n" * 95_000])),
    }


def test_a_flood_is_a_loss_in_bounded_memory_and_the_next_request_is_answered(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", stderr=None)
    child.call(1, "app/echo", {})
    before = peak_rss(child.process.pid)
    for name, (reason, pieces) in junk_and_its_reason().items():
        writer = threading.Thread(target=lambda: [child.write(piece) for piece in pieces()], daemon=True)
        writer.start()
        errors = [child.read()]
        writer.join(60)
        child.write(request(name, "version"))
        while (got := child.read())["id"] is None:
            errors.append(got)  # on a machine that makes a pause in the flood, what follows is another loss
        assert got["id"] == name
        assert [error["error"]["data"] for error in errors] == [{"reason": reason}] * len(errors), name
        assert peak_rss(child.process.pid) - before < ALLOWED_GROWTH, name
    assert child.end() == 0


@pytest.mark.parametrize("method", ["app/echo", "app/big"])
def test_a_client_that_does_not_read_stops_the_daemon_from_reading(spawn: Spawn, method: str) -> None:
    child = spawn("serve", "./app.py:app")
    child.call("first", "app/echo", {})
    before = peak_rss(child.process.pid)
    count = 8_000
    params = {"pad": "x" * 4096} if method == "app/echo" else {"size": 20_000}
    sent = 0

    def send() -> None:
        nonlocal sent
        for number in range(count):
            child.write(request(number, method, params))
            sent += 1

    writer = threading.Thread(target=send, daemon=True)
    writer.start()
    writer.join(0.5)
    assert sent < count
    assert peak_rss(child.process.pid) - before < ALLOWED_GROWTH
    ids = {child.read()["id"] for _ in range(count)}
    writer.join(20)
    assert ids == set(range(count))
    assert peak_rss(child.process.pid) - before < ALLOWED_GROWTH
    assert child.end() == 0


def test_frames_that_never_end_are_timed_out_and_any_number_of_them_is_survived(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", "--frame-timeout", "0.1")
    for _ in range(3):
        child.write(b"Content-Length: 100\r\n\r\n{")
        assert child.read()["error"] == {
            "code": -32700, "message": "Parse error", "data": {"reason": "length-mismatch"},
        }  # fmt: skip
    assert child.call(1, "version")["id"] == 1
    child.write(b"Content-Le")
    assert child.read()["error"]["data"] == {"reason": "malformed-header"}
    assert child.call(2, "version")["id"] == 2
    stderr = "".join(child.stderr_until("frame.timed_out") for _ in range(4))
    assert child.end() == 0
    assert (stderr + child.stderr()).count("frame.timed_out") == 4


def test_no_thread_or_descriptor_is_left_over_by_ten_thousand_requests(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", "--max-concurrency", "8", "--max-threads", "8")
    pid = child.process.pid

    def load(start: int) -> None:
        batch = b"".join(
            request(start + n, ("app/echo", "app/sleep", "app/pid")[n % 3], {} if n % 3 != 1 else {"seconds": 0})
            for n in range(2500)
        )
        writer = threading.Thread(target=child.write, args=(batch,))
        writer.start()
        assert len({child.read()["id"] for _ in range(2500)}) == 2500
        writer.join()

    load(0)
    load(2500)  # by now every thread that there may be has begun
    threads, files = len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd"))
    for start in (5000, 7500):
        load(start)
    assert len(os.listdir(f"/proc/{pid}/task")) <= max(threads, 8 + 4)
    assert len(os.listdir(f"/proc/{pid}/fd")) <= files
    assert child.end() == 0


# -- writing without end ----------------------------------------------------------------------------------------------

FLOODS = {
    "lines without a meaning": b"y\n" * 5000,
    "a header that never ends": b"a: " + b"b" * 60_000,
    "a body that is always late": b"Content-Length: 9000000\r\n\r\n" + b"x" * 1000,
    "notifications": frame({"jsonrpc": "2.0", "method": "app/echo", "params": {"text": "x" * 100}}) * 500,
    "requests of one id": request(2, "app/sleep", {"seconds": 0}) * 500,
}


@pytest.mark.parametrize(
    ("flood", "backend"),
    [*((flood, "asyncio") for flood in FLOODS), *(("requests of one id", backend) for backend in BACKENDS[1:])],
)
def test_a_signal_ends_a_daemon_whose_client_writes_without_end(spawn: Spawn, flood: str, backend: str) -> None:
    child = spawn("serve", "./app.py:app", "--backend", backend, stderr=subprocess.DEVNULL)
    assert child.call(1, "app/echo", {"text": "first"})["result"] == {"text": "first"}
    written = 0

    def write() -> None:
        nonlocal written
        try:
            while True:
                written += child.process.stdin.write(FLOODS[flood])
        except (OSError, ValueError):
            return  # the daemon has ended, and perhaps the test

    def read() -> None:
        while child.process.stdout.read1():
            pass

    threads = [threading.Thread(target=each, daemon=True) for each in (read, write)]
    for thread in threads:
        thread.start()
    wait_until(lambda: written > PIPE_BYTES)  # the flood has begun
    child.signal(signal.SIGTERM)
    assert child.wait() == 0
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
