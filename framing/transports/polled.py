"""The ways of reading and writing what can be polled, without blocking and without changing what others share.

An open file description is shared with whoever passed it on: a shell, a parent, a sibling on the same terminal. Making
it non-blocking would break them, so O_NONBLOCK is never set on a description that came from outside. POSIX only.

Reading asks `poll` first and then reads once: what is ready does not block, whether its description is blocking or not.

Writing has no such rule, since a blocking pipe takes a large write only as its reader reads. The ways weighed:

* a description of our own, from opening `/proc/self/fd/N` anew with O_NONBLOCK: one system call a write and any size.
  Linux only; not for sockets; refused (EACCES) when another user made the pipe. Terminals elsewhere: by their name.
* MSG_DONTWAIT: the same for sockets, and everywhere.
* RWF_NOWAIT (`pwritev2`): would serve both, but pipes know it only since Linux 6.4, so that it replaces nothing.
* after `poll` says writable, at most PIPE_BUF bytes: POSIX promises that such a write does not block. For pipes only, and
  4 KiB (macOS: 512 bytes) at a time, so it is what a pipe falls back on.
* a thread (`pump`): for what is left, such as a terminal that can't be opened anew, and for all of Windows.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import final

from .descriptors import READ_BYTES, Inlet, Outlet, enlarge, nothing

assert sys.platform != "win32"  # tells type checkers what is here; `stdio` never loads this module there

LARGE_TRANSFER_BYTES = 1024 * 1024
"""Traffic that is worth a larger pipe: this much read without a short read, or this much offered in one write."""

LARGE_PIPE_BYTES = 1024 * 1024
"""What such a pipe is enlarged to: the most that Linux gives an unprivileged user. An echo of 8 MiB then takes 60 % of the
time. Not done at the start, since all pipes of a user share a budget (64 MiB) and most daemons see only small messages."""


PTMX = os.makedev(5, 2)
"""The controlling side of a Linux pseudo-terminal. Opened anew it is another terminal, not the same one."""


def polled_inlet(fd: int) -> Inlet | None:
    """Reads a pipe, a socket or a terminal; None for anything else."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd):
        return Inlet(get=_PolledReader(fd).get, wait_on=fd, close=nothing)
    return None


def polled_outlet(fd: int) -> Outlet | None:
    """Writes a pipe, a socket or a terminal in the best of the ways above; None where there is none."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        return socket_outlet(fd)
    if not (stat.S_ISFIFO(mode) or os.isatty(fd)):
        return None
    if (own := _own_description(fd)) is not None:
        return own_outlet(own)
    return pipe_outlet(fd) if stat.S_ISFIFO(mode) else None


def own_outlet(own: int) -> Outlet:
    """Writes a non-blocking description that nobody shares; `close` closes it."""
    return Outlet(put=_OwnWriter(own).put, wait_on=own, finish=nothing, close=lambda: os.close(own))


def socket_outlet(fd: int) -> Outlet:
    """Writes a socket with MSG_DONTWAIT, which leaves its description as it is."""
    import socket  # late: 1.5 ms, and only sockets need it

    flag = socket.MSG_DONTWAIT
    peer = socket.socket(fileno=os.dup(fd))

    def finish() -> None:
        try:
            peer.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the other side has gone: there is nobody to tell

    return Outlet(put=lambda data: peer.send(data, flag), wait_on=peer.fileno(), finish=finish, close=peer.close)


def pipe_outlet(fd: int) -> Outlet:
    """Writes a blocking pipe in pieces that fit whenever `poll` says so."""
    return Outlet(put=_PipeWriter(fd).put, wait_on=fd, finish=nothing, close=nothing)


@final
class _PolledReader:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._full = 0  # bytes since the last read that came back short
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def get(self) -> bytes | None:
        if not self._poll.poll(0):
            return None
        chunk = os.read(self._fd, READ_BYTES)
        self._full = self._full + len(chunk) if len(chunk) == READ_BYTES else 0
        if self._full == LARGE_TRANSFER_BYTES:
            enlarge(self._fd, LARGE_PIPE_BYTES)
        return chunk


@final
class _OwnWriter:
    def __init__(self, own: int) -> None:
        self._own = own
        self._enlarged = False

    def put(self, data: memoryview) -> int:
        if len(data) >= LARGE_TRANSFER_BYTES and not self._enlarged:
            self._enlarged = True
            enlarge(self._own, LARGE_PIPE_BYTES)
        return os.write(self._own, data)


@final
class _PipeWriter:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    def put(self, data: memoryview) -> int:
        sent = 0
        while sent < len(data) and self._poll.poll(0):
            sent += os.write(self._fd, data[sent : sent + select.PIPE_BUF])
        return sent


def _own_description(fd: int) -> int | None:
    """The same pipe or terminal, opened once more and non-blocking; None where that is not to be had.

    macOS and the BSDs answer an opening of `/dev/fd/N` with the shared description itself: there only names help.
    """
    if os.fstat(fd).st_rdev == PTMX:
        return None
    try:
        path = f"/proc/self/fd/{fd}" if sys.platform == "linux" else os.ttyname(fd)
        own = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None
    if os.path.samestat(os.fstat(fd), os.fstat(own)):
        return own
    os.close(own)
    return None


@final
class PolledInbox:
    """Reads several pipes from one thread; `wake` may be called from any other."""

    settle = 0.0

    def __init__(self, *pipes: int) -> None:
        self._woken, self._waker = os.pipe()
        self._poll = select.poll()
        for fd in (*pipes, self._woken):
            self._poll.register(fd, select.POLLIN)

    def take(self, timeout: float | None) -> list[tuple[int, bytes]]:
        arrived: list[tuple[int, bytes]] = []
        for fd, _ in self._poll.poll(None if timeout is None else timeout * 1000):
            chunk = os.read(fd, READ_BYTES)
            if not chunk:
                self._poll.unregister(fd)  # the last writer has gone
            elif fd != self._woken:
                arrived.append((fd, chunk))
        return arrived

    def wake(self) -> None:
        os.write(self._waker, b"!")

    def close(self) -> None:
        os.close(self._woken)
        os.close(self._waker)
