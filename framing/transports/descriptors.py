"""What a file descriptor is, and the two structs that tell how to read and write one. Knows no frames, no event loop.

The functions that fill these structs are in `polled` and `threaded`; `stdio` chooses among them.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import socket

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
