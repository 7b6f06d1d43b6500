"""Reads and writes descriptors that can be polled. Never blocks, and never changes a file description that others share.

Other processes share an open file description: a shell, a parent, a sibling on the same terminal. Making it non-blocking
would break them, so O_NONBLOCK is never set on an inherited description. POSIX only.

Reading polls first and then reads once: a descriptor that is ready does not block.

Writing is harder: a large write to a blocking pipe waits until the reader has read. The options:

* Open `/proc/self/fd/N` anew with O_NONBLOCK, for a description of our own: one system call for a write of any size. Linux
  only; not for sockets; refused (EACCES) if another user made the pipe. Elsewhere terminals can be opened by name.
* MSG_DONTWAIT: the same for sockets, on every system.
* RWF_NOWAIT (`pwritev2`): would serve both, but pipes support it only since Linux 6.4. Not used.
* Write at most PIPE_BUF bytes when `poll` reports that the pipe is writable: POSIX promises that such a write does not
  block. The fallback for pipes, since it writes only 4 KiB (macOS: 512 bytes) at a time.
* A thread (`threaded`): for the rest, such as a terminal that can't be opened anew, and for all of Windows.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import final

from .descriptors import READ_BYTES, DescriptorReader, DescriptorWriter, do_nothing, enlarge_pipe

assert sys.platform != "win32"  # for type checkers; `stdio` never loads this module there

LARGE_TRANSFER_BYTES = 1024 * 1024
"""Bytes that justify a larger pipe: so many read without a short read, or passed to one `write`."""

LARGE_PIPE_BYTES = 1024 * 1024
"""The capacity of an enlarged pipe: the most that Linux gives an unprivileged user. An echo of 8 MiB then takes 60 % of the
time. Not done at the start: all pipes of a user share a budget (64 MiB), and most daemons see only small messages."""

PTMX = os.makedev(5, 2)
"""The controlling side of a Linux pseudo-terminal. Opened anew it is another terminal, not the same one."""


def polled_reader(fd: int) -> DescriptorReader | None:
    """A reader for a pipe, a socket or a terminal; None for anything else."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd):
        return DescriptorReader(read=_PolledReader(fd).read, wait_on=fd, close=do_nothing)
    return None


def polled_writer(fd: int) -> DescriptorWriter | None:
    """The first of the options above that works for a pipe, a socket or a terminal; None if none does."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        return socket_writer(fd)
    if not (stat.S_ISFIFO(mode) or os.isatty(fd)):
        return None
    if (own := _reopen_nonblocking(fd)) is not None:
        return nonblocking_writer(own)
    return pipe_writer(fd) if stat.S_ISFIFO(mode) else None


def nonblocking_writer(own: int) -> DescriptorWriter:
    """Writes to a non-blocking description that nobody shares; `close` closes it."""
    return DescriptorWriter(
        write=_NonblockingWriter(own).write, wait_on=own, shut_down=do_nothing, close=lambda: os.close(own)
    )


def socket_writer(fd: int) -> DescriptorWriter:
    """Writes to a socket with MSG_DONTWAIT, which does not change its description."""
    import socket  # late: 1.5 ms, and only sockets need it

    flag = socket.MSG_DONTWAIT
    peer = socket.socket(fileno=os.dup(fd))

    def shut_down() -> None:
        try:
            peer.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the peer has gone

    return DescriptorWriter(
        write=lambda data: peer.send(data, flag), wait_on=peer.fileno(), shut_down=shut_down, close=peer.close
    )


def pipe_writer(fd: int) -> DescriptorWriter:
    """Writes to a blocking pipe, in pieces that do not block after a `poll`."""
    return DescriptorWriter(write=_PipeWriter(fd).write, wait_on=fd, shut_down=do_nothing, close=do_nothing)


@final
class _PolledReader:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._full_reads = 0  # bytes since the last short read
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def read(self) -> bytes | None:
        if not self._poll.poll(0):
            return None
        chunk = os.read(self._fd, READ_BYTES)
        self._full_reads = self._full_reads + len(chunk) if len(chunk) == READ_BYTES else 0
        if self._full_reads == LARGE_TRANSFER_BYTES:
            enlarge_pipe(self._fd, LARGE_PIPE_BYTES)
        return chunk


@final
class _NonblockingWriter:
    def __init__(self, own: int) -> None:
        self._own = own
        self._enlarged = False

    def write(self, data: memoryview) -> int:
        if len(data) >= LARGE_TRANSFER_BYTES and not self._enlarged:
            self._enlarged = True
            enlarge_pipe(self._own, LARGE_PIPE_BYTES)
        return os.write(self._own, data)


@final
class _PipeWriter:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    def write(self, data: memoryview) -> int:
        sent = 0
        while sent < len(data) and self._poll.poll(0):
            sent += os.write(self._fd, data[sent : sent + select.PIPE_BUF])
        return sent


def _reopen_nonblocking(fd: int) -> int | None:
    """The same pipe or terminal, opened once more as non-blocking; None if that is impossible.

    On macOS and the BSDs, opening `/dev/fd/N` returns the shared description itself, so only terminals can be reopened.
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
class PollingPipeReader:
    """Reads several pipes from one thread. Implements `stray_output.PipeReader`."""

    empty_seconds = 0.0

    def __init__(self, *pipes: int) -> None:
        self._woken, self._waker = os.pipe()
        self._poll = select.poll()
        for fd in (*pipes, self._woken):
            self._poll.register(fd, select.POLLIN)

    def read(self, timeout: float | None) -> list[tuple[int, bytes]]:
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
