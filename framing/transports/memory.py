"""Two byte transports wired together in memory, with the back-pressure of a pipe. Never opens a descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...lazy import anyio
from .interface import PeerGone, send_all

if TYPE_CHECKING:
    from collections.abc import Callable


# anyio is imported inside the coroutines: a daemon's first replies leave before any event loop is loaded.

CHUNK_BYTES = 64 * 1024
"""The most that one `receive` returns; also the usual capacity of a pipe."""


def memory_pair(capacity: int = 65536) -> tuple[MemoryTransport, MemoryTransport]:
    """Two connected transports; each direction holds at most `capacity` bytes that were not received yet."""
    there, back = _Pipe(capacity), _Pipe(capacity)
    return MemoryTransport(back, there), MemoryTransport(there, back)


@final
class MemoryTransport:
    """One end of `memory_pair`. Implements `ByteTransport`."""

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def receive_nowait(self) -> bytes | None:
        return self._incoming.read()

    async def receive(self) -> bytes:
        await anyio.lowlevel.checkpoint()
        while (chunk := self._incoming.read()) is None:
            await self._incoming.wait_until(self._incoming.is_readable)
        return chunk

    def watch_input(self, on_input: Callable[[], None]) -> None:
        """There is no way in memory."""

    def send_nowait(self, data: bytes | bytearray | memoryview) -> int:
        return self._outgoing.write(data)

    async def wait_sendable(self) -> None:
        await anyio.lowlevel.checkpoint()
        await self._outgoing.wait_until(self._outgoing.is_writable)

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        await send_all(self, data)

    def send_eof(self) -> None:
        self._outgoing.close_writer()

    def close(self) -> None:
        self._outgoing.close_writer()
        self._incoming.close_reader()


@final
class _Pipe:
    """Bytes from one writer to one reader."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._buffer = bytearray()
        self._writer_closed = False
        self._reader_closed = False
        self._changed: anyio.Event | None = None

    def is_readable(self) -> bool:
        return bool(self._buffer) or self._writer_closed or self._reader_closed

    def is_writable(self) -> bool:
        return len(self._buffer) < self._capacity or self._writer_closed or self._reader_closed

    def read(self) -> bytes | None:
        if self._reader_closed:
            return b""
        if not self._buffer:
            return b"" if self._writer_closed else None
        chunk = bytes(self._buffer[:CHUNK_BYTES])
        del self._buffer[:CHUNK_BYTES]
        self._notify()
        return chunk

    def write(self, data: bytes | bytearray | memoryview) -> int:
        if self._writer_closed or self._reader_closed:
            raise PeerGone
        taken = memoryview(data)[: self._capacity - len(self._buffer)]
        self._buffer += taken
        self._notify()
        return len(taken)

    def close_writer(self) -> None:
        self._writer_closed = True
        self._notify()

    def close_reader(self) -> None:
        self._reader_closed = True
        self._buffer.clear()
        self._notify()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed = self._changed or anyio.Event()
            await self._changed.wait()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
