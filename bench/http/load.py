"""An HTTP client that does as little as possible: keep-alive connections, one request at a time on each, every answer checked.

Knows HTTP/1.1 as uvicorn writes it, `Content-Length` and chunked. Knows no A2A.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

HEAD = b"\r\n".join(
    (
        b"POST / HTTP/1.1",
        b"host: 127.0.0.1:%d",
        b"content-type: application/json",
        b"a2a-version: %b",
        b"content-length: %d",
        b"\r\n%b",
    )
)


@dataclass
class Load:
    """What came of a number of requests. `seconds` is the time that all took, `latencies` those of each, in seconds."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    """The last answer of each connection."""


class _Connection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes], load: Load, done: asyncio.Future[None], expected: bytes) -> None:
        self._requests = requests
        self._load = load
        self._done = done
        self._expected = expected
        self._buffer = b""
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def begin(self) -> None:
        request = next(self._requests, None)
        if request is None:
            if not self._done.done():
                self._load.bodies.append(self._last)
                self._done.set_result(None)
            return
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer = buffer = self._buffer + data if self._buffer else data
        if not _is_whole(buffer):
            return
        self._load.latencies.append(time.perf_counter() - self._began)
        if not buffer.startswith(b"HTTP/1.1 200") or self._expected not in buffer:
            self._fail(f"not the answer that was expected: {buffer[:600]!r}")
            return
        self._last, self._buffer = buffer, b""
        self.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("the server closed the connection")

    def _fail(self, reason: str) -> None:
        if not self._done.done():
            self._done.set_exception(ValueError(reason))


def _is_whole(buffer: bytes) -> bool:
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return False
    place = buffer.find(b"content-length: ", 0, end)
    if place < 0:
        return buffer.endswith(b"\r\n0\r\n\r\n")
    return len(buffer) >= end + 4 + int(buffer[place + 16 : buffer.index(b"\r", place)])


def post(port: int, version: str, body: bytes) -> bytes:
    return HEAD % (port, version.encode(), len(body), body)


def request(port: int, path: str, body: bytes) -> bytes:
    """A POST of JSON to a path."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    return b"%bcontent-length: %d\r\n\r\n%b" % (head.encode(), len(body), body)


async def send(port: int, requests: list[bytes], *, connections: int, expected: bytes = b'"result":') -> Load:
    """Send them all, over so many connections. Raises `ValueError` for an answer without what is expected in it."""
    loop, load = asyncio.get_running_loop(), Load()
    queue = iter(requests)
    done = [loop.create_future() for _ in range(connections)]
    made = [
        await loop.create_connection(lambda future=each: _Connection(queue, load, future, expected), "127.0.0.1", port)
        for each in done
    ]
    began = time.perf_counter()
    for _, connection in made:
        connection.begin()
    await asyncio.gather(*done)
    load.seconds = time.perf_counter() - began
    for transport, _ in made:
        transport.close()
    return load
