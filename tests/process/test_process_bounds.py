"""Nothing grows without bound in the real process, and it answers afterwards."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from support.wire import request

Spawn = Callable[..., Any]

MIB = 1 << 20
ALLOWED_GROWTH = 64 * MIB
CHUNK = 1 << 18


def peak_rss(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def announced(child: Any) -> None:
    """A body of 512 MiB is announced, and comes."""
    child.write(b"Content-Length: 536870912\r\n\r\n")
    for _ in range((1 << 29) // CHUNK):
        child.write(b"x" * CHUNK)


def headers(child: Any) -> None:
    """A header block of 256 MiB that ends at last."""
    line = (b"X-" + b"a" * 1020 + b": b\r\n") * 256
    for _ in range((1 << 28) // len(line)):
        child.write(line)
    child.write(b"\r\n")


def one_header(child: Any) -> None:
    """One header line that has no end for 128 MiB."""
    for _ in range((1 << 27) // CHUNK):
        child.write(b"a" * CHUNK)
    child.write(b"\r\n\r\n")


def garbage(child: Any) -> None:
    """Junk of every kind of byte, 16 MiB of it."""
    junk = bytes(range(256)) * (CHUNK // 256)
    for _ in range(64):
        child.write(junk)


def unframed(child: Any) -> None:
    """An unframed JSON text of 64 MiB."""
    child.write(b"[")
    for _ in range((1 << 26) // CHUNK):
        child.write(b'"' + b"x" * (CHUNK - 3) + b'",')
    child.write(b"0]")


def junk_blocks(child: Any) -> None:
    """A megabyte of the shortest blocks that are none."""
    child.write(b"garbage\r\n\r\n" * 95_000)


@pytest.mark.parametrize(
    ("flood", "reason"),
    [
        (announced, "oversize"),
        (headers, "header-too-large"),
        (one_header, "header-too-large"),
        (garbage, "malformed-header"),
        (unframed, "missing-content-length"),
        (junk_blocks, "malformed-header"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_flood_is_a_loss_in_bounded_memory_and_the_next_request_is_answered(
    spawn: Spawn, flood: Callable[[Any], None], reason: str
) -> None:
    child = spawn("serve", "./app.py:app", stderr=None)
    child.call(1, "app/echo", {})
    before = peak_rss(child.process.pid)
    writer = threading.Thread(target=flood, args=(child,), daemon=True)
    writer.start()
    errors = [child.read()]
    writer.join(60)
    child.write(request(2, "version"))
    while (got := child.read())[
        "id"
    ] is None:  # on a machine that makes a pause in the flood, what follows is another loss
        errors.append(got)
    assert got["id"] == 2
    assert [error["error"]["data"] for error in errors] == [{"reason": reason}] * len(errors)
    assert peak_rss(child.process.pid) - before < ALLOWED_GROWTH
    assert child.end() == 0


@pytest.mark.parametrize("method", ["app/echo", "app/big"])
def test_a_client_that_does_not_read_stops_the_daemon_from_reading(spawn: Spawn, method: str) -> None:
    child = spawn("serve", "./app.py:app")
    child.call("first", "app/echo", {})
    before = peak_rss(child.process.pid)
    count = 20_000
    params = {"pad": "x" * 4096} if method == "app/echo" else {"size": 20_000}
    sent = 0

    def send() -> None:
        nonlocal sent
        for number in range(count):
            child.write(request(number, method, params))
            sent += 1

    writer = threading.Thread(target=send, daemon=True)
    writer.start()
    writer.join(1.0)
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
    threads, files = len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd"))
    for start in (2500, 5000, 7500):
        load(start)
    assert len(os.listdir(f"/proc/{pid}/task")) <= max(threads, 8 + 4)
    assert len(os.listdir(f"/proc/{pid}/fd")) <= files
    assert child.end() == 0
