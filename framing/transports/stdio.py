"""A byte transport over any two descriptors. Never parses, never logs, never blocks the event loop.

`open_reader` and `open_writer` choose how a descriptor is read and written: at once, by polling, or in a thread if
nothing else works. `StdioTransport` adds waiting and closing.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, final

from ...lazy import anyio
from .interface import (
    EMPTY_READER,
    READ_BYTES,
    DescriptorReader,
    DescriptorWriter,
    PeerGone,
    asyncio_loop,
    do_nothing,
    enlarge_pipe,
    is_always_ready,
    is_open,
    is_readable,
    require_output,
    send_all,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable


# Reads and writes descriptors that can be polled. Never blocks, and never changes a file description that others share.
#
# Other processes share an open file description: a shell, a parent, a sibling on the same terminal. Making it non-blocking
# would break them, so O_NONBLOCK is never set on an inherited description. POSIX only.
#
# Reading polls first and then reads once: a descriptor that is ready does not block.
#
# Writing is harder: a large write to a blocking pipe waits until the reader has read. The options:
#
# * Open `/proc/self/fd/N` anew with O_NONBLOCK, for a description of our own: one system call for a write of any size. Linux
#   only; not for sockets; refused (EACCES) if another user made the pipe. Elsewhere terminals can be opened by name.
# * MSG_DONTWAIT: the same for sockets, on every system.
# * RWF_NOWAIT (`pwritev2`): would serve both, but pipes support it only since Linux 6.4. Not used.
# * Write at most PIPE_BUF bytes when `poll` reports that the pipe is writable: POSIX promises that such a write does not
#   block. The fallback for pipes, since it writes only 4 KiB (macOS: 512 bytes) at a time.
# * A thread (`threaded`): for the rest, such as a terminal that can't be opened anew, and for all of Windows.


LARGE_TRANSFER_BYTES = 1024 * 1024
"""Bytes that justify a larger pipe: so many read without a short read, or passed to one `write`."""

LARGE_PIPE_BYTES = 1024 * 1024
"""The capacity of an enlarged pipe: the most that Linux gives an unprivileged user. An echo of 8 MiB then takes 60 % of the
time. Not done at the start: all pipes of a user share a budget (64 MiB), and most daemons see only small messages."""

PTMX = (5, 2)
"""The device numbers of the controlling side of a Linux pseudo-terminal. Opened anew it is another terminal, not the same one."""


def polled_reader(fd: int) -> DescriptorReader | None:
    """A reader for a pipe, a socket or a terminal; None for anything else."""
    mode = os.fstat(fd).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)):
        return None
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    full_reads = 0  # bytes since the last short read

    def read() -> bytes | None:
        nonlocal full_reads
        if not poll.poll(0):
            return None
        chunk = os.read(fd, READ_BYTES)
        full_reads = full_reads + len(chunk) if len(chunk) == READ_BYTES else 0
        if full_reads == LARGE_TRANSFER_BYTES:
            enlarge_pipe(fd, LARGE_PIPE_BYTES)
        return chunk

    return DescriptorReader(read=read, wait_on=fd, close=do_nothing)


def polled_writer(fd: int) -> DescriptorWriter | None:
    """The first of the options above that works for a pipe, a socket or a terminal; None if none does."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        return _socket_writer(fd)
    if not (stat.S_ISFIFO(mode) or os.isatty(fd)):
        return None
    if (own := _reopen_nonblocking(fd)) is not None:
        return _nonblocking_writer(own)
    return pipe_writer(fd) if stat.S_ISFIFO(mode) else None


def _nonblocking_writer(own: int) -> DescriptorWriter:
    """Writes to a non-blocking description that no other process shares; `close` closes it."""
    enlarged = False

    def write(data: memoryview) -> int:
        nonlocal enlarged
        if len(data) >= LARGE_TRANSFER_BYTES and not enlarged:
            enlarged = True
            enlarge_pipe(own, LARGE_PIPE_BYTES)
        return os.write(own, data)

    return DescriptorWriter(write=write, wait_on=own, shut_down=do_nothing, close=lambda: os.close(own))


def _socket_writer(fd: int) -> DescriptorWriter:
    """Writes to a socket with MSG_DONTWAIT, which does not change its description."""
    import socket  # late: 1.5 ms, and only sockets need it

    flag = socket.MSG_DONTWAIT
    peer = socket.socket(fileno=os.dup(fd))

    def shut_down() -> None:
        with suppress(OSError):  # the peer has gone
            peer.shutdown(socket.SHUT_WR)

    return DescriptorWriter(
        write=lambda data: peer.send(data, flag), wait_on=peer.fileno(), shut_down=shut_down, close=peer.close
    )


def pipe_writer(fd: int) -> DescriptorWriter:
    """Writes to a blocking pipe, in pieces that do not block after a `poll`."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT)

    def write(data: memoryview) -> int:
        sent = 0
        while sent < len(data) and poll.poll(0):
            sent += os.write(fd, data[sent : sent + select.PIPE_BUF])
        return sent

    return DescriptorWriter(write=write, wait_on=fd, shut_down=do_nothing, close=do_nothing)


def _reopen_nonblocking(fd: int) -> int | None:
    """Open the pipe or terminal once more as non-blocking; None if that is impossible.

    On macOS and the BSDs, opening `/dev/fd/N` returns the shared description itself, so only terminals can be reopened.
    """
    device = os.fstat(fd).st_rdev
    if (os.major(device), os.minor(device)) == PTMX:
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
    """Reads several pipes from one thread. Implements `stdio_guard.PipeReader`."""

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


FILE_WRITE_BYTES = 1024 * 1024
"""Bytes of one write to a regular file, so that other tasks run between two writes. The system would write any size."""


def open_reader(fd: int) -> DescriptorReader:
    """Choose how to read this descriptor, which stays the caller's. A closed or unreadable one is at its end."""
    if not is_readable(fd):
        return EMPTY_READER
    if is_always_ready(fd):
        return DescriptorReader(read=lambda: os.read(fd, READ_BYTES), wait_on=None, close=do_nothing)
    if sys.platform != "win32":
        if (reader := polled_reader(fd)) is not None:
            return reader
    from .threaded import threaded_reader

    return threaded_reader(fd)


def open_writer(fd: int) -> DescriptorWriter:
    """Choose how to write this descriptor, which stays the caller's. Raises `StdoutClosed`."""
    require_output(fd)
    if is_always_ready(fd):
        return DescriptorWriter(
            write=lambda data: os.write(fd, data[:FILE_WRITE_BYTES]),
            wait_on=None,
            shut_down=do_nothing,
            close=do_nothing,
        )
    if sys.platform != "win32":
        if (writer := polled_writer(fd)) is not None:
            return writer
    from .threaded import threaded_writer

    return threaded_writer(fd)


@final
class StdioTransport:
    """A `ByteTransport` that reads `stdin_fd` and writes `stdout_fd` (they may be the same).

    Every failure to read is the end of input: a terminal that hung up (EIO), a reset connection, a descriptor that was
    never open. Every failure to write is `PeerGone`: a reader that went away, a full disk; a frame that was cut can't be
    completed. Both are final. Raises `StdoutClosed` if stdout is not open for writing.

    With `closefd` the transport owns the two descriptors and closes them. Without it they stay the caller's, and the
    peer sees the end of the stream when the caller closes them. `reader` and `writer` open the descriptors.
    """

    def __init__(
        self,
        stdin_fd: int,
        stdout_fd: int,
        *,
        closefd: bool = True,
        reader: Callable[[int], DescriptorReader] = open_reader,
        writer: Callable[[int], DescriptorWriter] = open_writer,
    ) -> None:
        require_output(stdout_fd)
        self._owned = {fd for fd in (stdin_fd, stdout_fd) if closefd and is_open(fd)}
        self._reader = reader(stdin_fd)
        self._writer = writer(stdout_fd)
        self._stdin_fd = stdin_fd
        self._input_ended = False
        self._output_ended = False
        self._input_closed = False
        self._output_closed = False
        self._peer_gone = False
        self._failure: OSError | None = None
        self._waiters = 0
        self._on_input: Callable[[], None] | None = None

    def receive_nowait(self) -> bytes | None:
        if self._input_ended:
            return b""
        try:
            chunk = self._reader.read()
        except BlockingIOError:
            return None
        except OSError:
            chunk = b""
        self._input_ended = chunk == b""
        return chunk

    async def receive(self) -> bytes:
        await anyio.lowlevel.checkpoint()
        while (chunk := self.receive_nowait()) is None:
            await self._wait(anyio.wait_readable, self._reader.wait_on)
        return chunk

    def watch_input(self, on_input: Callable[[], None]) -> Callable[[], object] | None:
        if self._reader.wait_on is None:
            return None
        self._on_input = on_input
        return watch_readable(self._reader.wait_on, on_input)

    def send_nowait(self, data: bytes | bytearray | memoryview) -> int:
        if self._output_ended:
            raise PeerGone from self._failure
        try:
            return self._writer.write(memoryview(data))
        except BlockingIOError:
            return 0
        except OSError as error:
            self._output_ended = self._peer_gone = True
            self._failure = error
            raise PeerGone from error

    async def wait_sendable(self) -> None:
        await self._wait(anyio.wait_writable, None if self._output_ended else self._writer.wait_on)

    async def send(self, data: bytes | bytearray | memoryview) -> None:
        await send_all(self, data)

    def send_eof(self) -> None:
        if self._output_closed:
            return
        self._output_closed = self._output_ended = True
        self._wake(self._writer.wait_on)
        if self._owned:
            self._writer.shut_down()
        self._failure = self._writer.close() or self._failure
        self._release(self._owned - {self._stdin_fd})

    @property
    def unwritten(self) -> int:
        """Bytes that `send` took and stdout did not, unless `PeerGone` has told. Any thread may ask, also after `close`.

        Not 0 only where a thread writes, which learns of a failure late.
        """
        return 0 if self._peer_gone else self._writer.unwritten()

    @property
    def failure(self) -> OSError | None:
        """Why stdout did not take what was sent, as far as it is known."""
        return self._failure

    def close(self) -> None:
        self.send_eof()
        if self._input_closed:
            return
        self._input_closed = self._input_ended = True
        self._wake(self._reader.wait_on)
        if self._on_input is not None:
            self._on_input()  # finds the end
        self._reader.close()
        self._release(self._owned)

    def _release(self, descriptors: set[int]) -> None:
        self._owned = self._owned - descriptors
        for fd in descriptors:
            os.close(fd)

    async def _wait(
        self, until: Callable[[int | socket.socket], Awaitable[None]], what: int | socket.socket | None
    ) -> None:
        if what is None:  # always ready: let other tasks run, then the caller tries again
            await anyio.lowlevel.checkpoint()
            return
        self._waiters += 1
        try:
            await until(what)
        except anyio.ClosedResourceError:
            return  # from `_wake`: the caller tries again and finds the end
        finally:
            self._waiters -= 1

    def _wake(self, what: int | socket.socket | None) -> None:
        if self._waiters and what is not None:
            with suppress(RuntimeError):  # the event loop has failed, and its tasks with it
                anyio.notify_closing(what)


def watch_readable(what: int | socket.socket, on_readable: Callable[[], None]) -> Callable[[], object] | None:
    """Have the running event loop call `on_readable()` in each of its turns in which `what` is readable.

    Returns what ends that. None where the loop has no such way: trio, and asyncio's loop for Windows. What can be waited for
    by `anyio.wait_readable` can be watched; not both at once.
    """
    loop = asyncio_loop()
    if loop is None:
        return None
    try:
        loop.add_reader(what, _named(on_readable))
    except NotImplementedError:
        return None
    return partial(loop.remove_reader, what)


def _named(call: Callable[[], None]) -> Callable[[], None]:
    """The same, told to run on asyncio where anyio asks sniffio, which looks for a task. There is none in a callback."""
    sniffio = sys.modules.get("sniffio")
    if sniffio is None:
        return call
    state = sniffio.thread_local

    def named() -> None:
        before, state.name = state.name, "asyncio"
        try:
            call()
        finally:
            state.name = before

    return named
