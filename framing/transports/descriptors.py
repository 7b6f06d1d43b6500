"""What a descriptor is, and the two shapes in which the ways of reading and writing one are handed over.

The ways themselves are in `polled` and `pump`; `ways` chooses. Knows no frames and no event loop.
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
"""One read: what a pipe holds. Of a larger buffer every small request would pay the allocation (13 µs for 256 KiB)."""


class StdoutClosed(Exception):
    """There is no descriptor to send replies to: closed by the parent, or open for reading only."""


class Inlet(msgspec.Struct, frozen=True):
    """`get` returns bytes, b"" at the end, None when nothing is there; it may raise `OSError`."""

    get: Callable[[], bytes | None]
    wait_on: int | socket.socket | None
    close: Callable[[], None]


class Outlet(msgspec.Struct, frozen=True):
    """`put` returns how many bytes it took; it may raise `OSError`, `BlockingIOError` among them.

    `finish` says that no more will come, as far as that can be said without `close`.
    """

    put: Callable[[memoryview], int]
    wait_on: int | socket.socket | None
    finish: Callable[[], None]
    close: Callable[[], None]


def nothing() -> None:
    """What `finish` and `close` do where there is nothing to do."""


ENDED = Inlet(get=bytes, wait_on=None, close=nothing)
"""An input that has ended before it began."""


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


def readable(fd: int) -> bool:
    """Whether the descriptor is open and may be read."""
    return is_open(fd) and _access_mode(fd) != os.O_WRONLY


def always_ready(fd: int) -> bool:
    """Regular files, block devices, directories (whose reads fail at once) and the null device."""
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) or stat.S_ISBLK(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return True
    return stat.S_ISCHR(found.st_mode) and sys.platform != "win32" and found.st_rdev == os.stat(os.devnull).st_rdev


def enlarge(fd: int, size: int) -> None:
    """Give a pipe room for `size` bytes, if it is a pipe and the system lets us: a convenience that may be refused."""
    if sys.platform == "linux":
        import fcntl

        try:
            if fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ) < size:
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, size)
        except OSError:
            return  # no pipe, or the user's budget for pipes is used up


def _access_mode(fd: int) -> int | None:
    """O_RDONLY, O_WRONLY or O_RDWR; None where the system can't say."""
    if sys.platform == "win32":
        return None
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
