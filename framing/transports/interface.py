"""The seam between bytes and frames: what a byte transport promises, and a pair of them in memory.

Knows nothing of frames, descriptors or logs. The `x_nowait` forms are the truth; `x` waits for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, final

if TYPE_CHECKING:
    from collections.abc import Callable

    import anyio

# anyio is imported inside the coroutines: a daemon's first replies leave before any event loop is loaded.

CHUNK_BYTES = 64 * 1024
"""The most that one `receive` of the pair in memory returns; also a pipe's usual capacity."""


class PeerGone(Exception):
    """Nothing sent can arrive any more: the reader went away, the device failed, or this end was closed.

    Final for the transport's life. `__cause__` is the `OSError` behind it, where there was one.
    """


class ByteTransport(Protocol):
    """Two independent directions of bytes. Not thread-safe; each direction has one user at a time."""

    def receive_nowait(self) -> bytes | None:
        """What is there now: some bytes, None when nothing is, b"" at the end of input and ever after.

        Never blocks, never raises for a failing peer (that is the end of input), needs no event loop.
        """
        ...

    async def receive(self) -> bytes:
        """The next bytes as soon as there are any, b"" at the end of input. Always a checkpoint.

        Cancelling it loses nothing: what arrives later is for the next call.
        """
        ...

    def send_nowait(self, data: bytes | bytearray | memoryview) -> int:
        """How many of the leading bytes were taken, from 0 to all. Never blocks, needs no event loop.

        Raises `PeerGone`.
        """
        ...

    async def wait_sendable(self) -> None:
        """Return when `send_nowait` would take something or raise. Never raises `PeerGone` itself."""
        ...

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of it; raises `PeerGone`. Always a checkpoint, before the first byte.

        Cancelled after that, a part has gone: the stream can't be used for frames again.
        """
        ...

    def send_eof(self) -> None:
        """Nothing more will be sent: the peer reads what was sent, then the end. Receiving goes on. Idempotent."""
        ...

    def close(self) -> None:
        """End both directions and wake whoever waits: receivers get b"", senders `PeerGone`. Idempotent."""
        ...


async def send_all(transport: ByteTransport, data: bytes | bytearray | memoryview) -> None:
    """`ByteTransport.send` made of the two primitives."""
    from anyio.lowlevel import checkpoint

    await checkpoint()
    rest = memoryview(data)
    while True:
        rest = rest[transport.send_nowait(rest) :]
        if not rest:
            return
        await transport.wait_sendable()


def memory_pair(capacity: int = 65536) -> tuple[MemoryTransport, MemoryTransport]:
    """Two ends wired together, each direction holding at most `capacity` bytes that were not received yet."""
    there, back = _Direction(capacity), _Direction(capacity)
    return MemoryTransport(back, there), MemoryTransport(there, back)


@final
class MemoryTransport:
    """One end of `memory_pair`: a `ByteTransport` with the back-pressure of a pipe and no descriptor."""

    def __init__(self, incoming: _Direction, outgoing: _Direction) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def receive_nowait(self) -> bytes | None:
        return self._incoming.take()

    async def receive(self) -> bytes:
        from anyio.lowlevel import checkpoint

        await checkpoint()
        while (chunk := self._incoming.take()) is None:
            await self._incoming.until(self._incoming.readable)
        return chunk

    def send_nowait(self, data: bytes | bytearray | memoryview) -> int:
        return self._outgoing.put(data)

    async def wait_sendable(self) -> None:
        from anyio.lowlevel import checkpoint

        await checkpoint()
        await self._outgoing.until(self._outgoing.writable)

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        await send_all(self, data)

    def send_eof(self) -> None:
        self._outgoing.finish()

    def close(self) -> None:
        self._outgoing.finish()
        self._incoming.abandon()


@final
class _Direction:
    """Bytes on their way from one writer to one reader."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held = bytearray()
        self._finished = False  # the writer will send no more
        self._abandoned = False  # the reader will take no more
        self._changed: anyio.Event | None = None

    def readable(self) -> bool:
        return bool(self._held) or self._finished or self._abandoned

    def writable(self) -> bool:
        return len(self._held) < self._capacity or self._finished or self._abandoned

    def take(self) -> bytes | None:
        if self._abandoned:
            return b""
        if not self._held:
            return b"" if self._finished else None
        chunk = bytes(self._held[:CHUNK_BYTES])
        del self._held[:CHUNK_BYTES]
        self._wake()
        return chunk

    def put(self, data: bytes | bytearray | memoryview) -> int:
        if self._finished or self._abandoned:
            raise PeerGone
        taken = memoryview(data)[: self._capacity - len(self._held)]
        self._held += taken
        self._wake()
        return len(taken)

    def finish(self) -> None:
        self._finished = True
        self._wake()

    def abandon(self) -> None:
        self._abandoned = True
        self._held.clear()
        self._wake()

    async def until(self, ready: Callable[[], bool]) -> None:
        import anyio

        while not ready():
            self._changed = self._changed or anyio.Event()
            await self._changed.wait()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None
