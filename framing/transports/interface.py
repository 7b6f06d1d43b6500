"""What a byte transport promises. Knows nothing of frames, descriptors or logs.

Each `x_nowait` does the work at once; `x` waits and then does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...lazy import anyio


class PeerGone(Exception):
    """Nothing that is sent can arrive any more: the reader went away, the device failed, or this end was closed.

    Final for the transport. `__cause__` is the `OSError` behind it, if there was one.
    """


class ByteTransport(Protocol):
    """Two independent directions of bytes. Not thread-safe; each direction has one user at a time."""

    def receive_nowait(self) -> bytes | None:
        """The bytes that are there now; None if there are none, b"" at the end of input and ever after.

        Never blocks and needs no event loop. A failing peer is the end of input, never an exception.
        """
        ...

    async def receive(self) -> bytes:
        """The next bytes as soon as there are any, b"" at the end of input. Always a checkpoint.

        Cancelling it loses nothing: the next call returns what arrives later.
        """
        ...

    def watch_input(self, on_input: Callable[[], None]) -> Callable[[], object] | None:
        """Have the running event loop call `on_input()` whenever `receive_nowait` is worth calling, outside of all tasks.

        Returns what ends that. None where this loop or this transport has no such way: then `receive` is to be awaited.
        """
        ...

    def send_nowait(self, data: bytes | bytearray | memoryview) -> int:
        """Send as many of the leading bytes as possible now; returns how many, from 0 to all.

        Never blocks and needs no event loop. Raises `PeerGone`.
        """
        ...

    async def wait_sendable(self) -> None:
        """Return when `send_nowait` would send something or raise. Never raises `PeerGone` itself."""
        ...

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of it; raises `PeerGone`. Always a checkpoint, before the first byte.

        If it is cancelled after that, a part was sent, and the stream can't carry frames any more.
        """
        ...

    def send_eof(self) -> None:
        """Close the outgoing direction: the peer reads what was sent, then the end. Receiving goes on. Idempotent."""
        ...

    def close(self) -> None:
        """Close both directions and wake all waiters: receivers get b"", senders `PeerGone`. Idempotent."""
        ...


async def send_all(transport: ByteTransport, data: bytes | bytearray | memoryview) -> None:
    """Implements `ByteTransport.send` with `send_nowait` and `wait_sendable`."""
    await anyio.lowlevel.checkpoint()
    rest = memoryview(data)
    while True:
        rest = rest[transport.send_nowait(rest) :]
        if not rest:
            return
        await transport.wait_sendable()
