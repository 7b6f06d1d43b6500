"""A byte transport over any two descriptors. Never parses, never logs, never blocks the event loop.

`open_reader` and `open_writer` choose how a descriptor is read and written: at once, by polling, or in a thread if
nothing else works. `StdioTransport` adds waiting and closing.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, final

from ...lazy import anyio
from .descriptors import (
    EMPTY_READER,
    READ_BYTES,
    DescriptorReader,
    DescriptorWriter,
    do_nothing,
    is_always_ready,
    is_open,
    is_readable,
    require_output,
)
from .interface import PeerGone, send_all
from .readiness import watch_readable

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable

FILE_WRITE_BYTES = 1024 * 1024
"""Bytes of one write to a regular file, so that other tasks run between two writes. The system would write any size."""


def open_reader(fd: int) -> DescriptorReader:
    """Choose how to read this descriptor, which stays the caller's. A closed or unreadable one is at its end."""
    if not is_readable(fd):
        return EMPTY_READER
    if is_always_ready(fd):
        return DescriptorReader(read=lambda: os.read(fd, READ_BYTES), wait_on=None, close=do_nothing)
    if sys.platform != "win32":
        from .polled import polled_reader  # late, as `threaded`: a process needs one of the two

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
        from .polled import polled_writer

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
