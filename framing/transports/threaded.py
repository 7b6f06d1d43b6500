"""Reads and writes descriptors that can't be polled: a thread copies between the descriptor and a socket pair.

For all of Windows, whose pipes and consoles can't be polled, and for odd devices elsewhere. It costs a copy and a thread's
wake-up, so descriptors that can be polled never use it. The socket's buffers are bounded: a full one stops the copying,
which is back-pressure.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, final

from .descriptors import READ_BYTES, DescriptorReader, DescriptorWriter

if TYPE_CHECKING:
    from queue import Queue

CLOSE_FLUSH_SECONDS = 0.5
"""How long closing a writer waits for bytes that the thread has not written yet; part of the drain window."""


def threaded_reader(fd: int) -> DescriptorReader:
    """Reads in a thread, which lives until the input ends. A failing descriptor is the end of input."""
    import socket
    import threading

    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    copied = os.dup(fd)  # the thread's own: it may outlive the caller's descriptor

    def copy() -> None:
        with theirs:
            try:
                while chunk := _read(copied):
                    theirs.sendall(chunk)
            except OSError:
                return  # the input failed, or our end was closed; closing `theirs` tells the reader
            finally:
                os.close(copied)

    threading.Thread(target=copy, name="discreet-stdin", daemon=True).start()
    return DescriptorReader(read=lambda: ours.recv(READ_BYTES), wait_on=ours, close=ours.close)


def threaded_writer(fd: int) -> DescriptorWriter:
    """Writes in a thread. `close` waits for it, at most `CLOSE_FLUSH_SECONDS`. A failure raises from a later `write`."""
    import socket
    import threading

    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    copied = os.dup(fd)

    def copy() -> None:
        with theirs:
            try:
                while chunk := theirs.recv(READ_BYTES):
                    _write_all(copied, chunk)
            except OSError:
                return
            finally:
                os.close(copied)

    def shut_down() -> None:
        try:
            ours.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the thread has ended

    def close() -> None:
        shut_down()
        thread.join(CLOSE_FLUSH_SECONDS)
        ours.close()

    thread = threading.Thread(target=copy, name="discreet-stdout", daemon=True)
    thread.start()
    return DescriptorWriter(write=ours.send, wait_on=ours, shut_down=shut_down, close=close)


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:  # another process made the description non-blocking; this thread may wait
            select.select([fd], [], [])


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            select.select([], [fd], [])


@final
class ThreadedPipeReader:
    """Reads several pipes, each in a thread, through a bounded queue. Implements `stray_output.PipeReader`."""

    empty_seconds = 0.05

    def __init__(self, *pipes: int) -> None:
        import threading
        from queue import Queue

        self._arrived: Queue[tuple[int, bytes] | None] = Queue(maxsize=16)
        for fd in pipes:
            threading.Thread(target=self._copy, args=(fd,), name="discreet-stray-pipe", daemon=True).start()

    def read(self, timeout: float | None) -> list[tuple[int, bytes]]:
        from queue import Empty

        try:
            item = self._arrived.get(timeout=timeout)
        except Empty:
            return []
        return [item] if item else []

    def wake(self) -> None:
        self._arrived.put(None)

    def close(self) -> None:
        """Does nothing: each thread ends with its pipe."""

    def _copy(self, fd: int) -> None:
        try:
            while chunk := os.read(fd, READ_BYTES):
                self._arrived.put((fd, chunk))
        except OSError:
            return  # the pipe was closed
