"""Defines the Protocol of byte transports. Knows nothing of frames, descriptors or logs.

Each `x_nowait` does the work at once; `x` waits and then does the same.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from ...lazy import anyio

if TYPE_CHECKING:
    import asyncio
    import socket


def asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread; None where it is trio's, or none runs."""
    loaded, sniffio = sys.modules.get("asyncio"), sys.modules.get("sniffio")  # by now, if they are of use
    if sniffio is not None and sniffio.thread_local.name == "trio":  # as a guest of asyncio
        return None
    try:
        return None if loaded is None else loaded.get_running_loop()
    except RuntimeError:
        return None


# What a file descriptor is, and the two structs that tell how to read and write one. Knows no frames, no event loop.
#
# The functions that fill these structs are in `stdio` and `threaded`; `stdio` chooses among them.


READ_BYTES = 64 * 1024
"""Bytes of one read: the capacity of a pipe. A larger buffer would cost every small request its allocation (13 µs for
256 KiB)."""


class StdoutClosed(Exception):
    """There is no descriptor to send replies to: the parent closed it, or it is open for reading only."""


class DescriptorReader(msgspec.Struct, frozen=True):
    """`read` returns bytes, b"" at the end, None if there are none now; it may raise `OSError`.

    `wait_on` becomes readable when `read` is worth calling; None means that it always is.
    """

    read: Callable[[], bytes | None]
    wait_on: int | socket.socket | None
    close: Callable[[], None]


class DescriptorWriter(msgspec.Struct, frozen=True):
    """`write` returns how many bytes it wrote; it may raise `OSError`, also `BlockingIOError`.

    `wait_on` becomes writable when `write` is worth calling; None means that it always is. `shut_down` tells the reader
    that no more will come, if that is possible without `close`. `unwritten` counts the bytes that `write` took and the
    descriptor has not; any thread may call it. `close` returns why the descriptor did not take them, if it is known.
    """

    write: Callable[[memoryview], int]
    wait_on: int | socket.socket | None
    shut_down: Callable[[], None]
    close: Callable[[], OSError | None]
    unwritten: Callable[[], int] = int


def do_nothing() -> None:
    """For a `shut_down` or `close` without an effect."""


EMPTY_READER = DescriptorReader(read=bytes, wait_on=None, close=do_nothing)
"""An input that is at its end from the start."""


def is_open(fd: int) -> bool:
    """Whether the number stands for an open descriptor."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def require_output(fd: int) -> None:
    """Raise `StdoutClosed` unless the descriptor is open and may be written."""
    if not is_open(fd):
        raise StdoutClosed("stdout is closed: there is nowhere to send replies")
    if _access_mode(fd) == os.O_RDONLY:
        raise StdoutClosed("stdout is open for reading only: there is nowhere to send replies")


def is_readable(fd: int) -> bool:
    """Whether the descriptor is open and may be read."""
    return is_open(fd) and _access_mode(fd) != os.O_WRONLY


def is_always_ready(fd: int) -> bool:
    """Whether it is a regular file, a block device, a directory (its reads fail at once) or the null device."""
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) or stat.S_ISBLK(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return True
    return stat.S_ISCHR(found.st_mode) and sys.platform != "win32" and found.st_rdev == os.stat(os.devnull).st_rdev


def is_null_device(status: os.stat_result) -> bool:
    """Whether this is the status of the null device. False where there is none."""
    try:
        return os.path.samestat(status, os.stat(os.devnull))
    except OSError:
        return False


def reader_is_gone(fd: int) -> bool:
    """Whether the reader of a pipe, a socket or a terminal is gone for good. False if the system can't say."""
    if sys.platform == "win32":
        return False
    poll = select.poll()
    poll.register(fd, select.POLLOUT)  # macOS watches nothing where nothing is asked for
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def enlarge_pipe(fd: int, size: int) -> None:
    """Give a pipe a capacity of `size` bytes. Does nothing if it is no pipe or the system refuses."""
    if sys.platform == "linux":
        import fcntl

        try:
            if fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) < size:
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, size)
        except OSError:
            return  # no pipe, or the user's budget for pipes is used up


def _access_mode(fd: int) -> int | None:
    """O_RDONLY, O_WRONLY or O_RDWR; None if the system can't tell."""
    if sys.platform == "win32":
        return None
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE


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
