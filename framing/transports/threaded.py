"""Reads and writes descriptors that can't be polled: a thread copies between the descriptor and a socket pair.

For all of Windows, whose pipes and consoles can't be polled, and for odd devices elsewhere. It costs a copy and a thread's
wake-up, so descriptors that can be polled never use it. The socket's buffers are bounded: a full one stops the copying,
which is back-pressure.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, final

from .interface import READ_BYTES, DescriptorReader, DescriptorWriter

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
                while chunk := read_blocking(copied):
                    theirs.sendall(chunk)
            except OSError:
                return  # the input failed, or our end was closed; closing `theirs` tells the reader
            finally:
                os.close(copied)

    threading.Thread(target=copy, name="discreet-stdin", daemon=True).start()
    return DescriptorReader(read=lambda: ours.recv(READ_BYTES), wait_on=ours, close=ours.close)


def threaded_writer(fd: int) -> DescriptorWriter:
    """Writes in a thread. `close` waits for it, at most `CLOSE_FLUSH_SECONDS`. A failure raises from a later `write`."""
    writer = _ThreadedWriter(fd)
    return DescriptorWriter(
        write=writer.write,
        wait_on=writer.ours,
        shut_down=writer.shut_down,
        close=writer.close,
        unwritten=writer.unwritten,
    )


@final
class _ThreadedWriter:
    def __init__(self, fd: int) -> None:
        import socket
        import threading

        self.ours, self._theirs = socket.socketpair()
        self.ours.setblocking(False)
        self._fd = os.dup(fd)
        self._taken = 0
        self._written = 0  # counted by the thread
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._copy, name="discreet-stdout", daemon=True)
        self._thread.start()

    def write(self, data: memoryview) -> int:
        try:
            sent = self.ours.send(data)
        except BlockingIOError:
            raise
        except OSError as exc:  # the thread has closed its end
            raise self._failure or exc from None
        self._taken += sent
        return sent

    def unwritten(self) -> int:
        return self._taken - self._written

    def shut_down(self) -> None:
        import socket

        try:
            self.ours.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the thread has ended

    def close(self) -> OSError | None:
        self.shut_down()
        self._thread.join(CLOSE_FLUSH_SECONDS)
        self.ours.close()
        return self._failure

    def _copy(self) -> None:
        with self._theirs:
            try:
                while chunk := self._theirs.recv(READ_BYTES):
                    self._write(memoryview(chunk))
            except OSError as exc:
                self._failure = exc
            finally:
                os.close(self._fd)

    def _write(self, rest: memoryview) -> None:
        while rest:
            try:
                size = os.write(self._fd, rest)
            except BlockingIOError:
                select.select([], [self._fd], [])
                continue
            self._written += size
            rest = rest[size:]


def read_blocking(fd: int) -> bytes:
    """Read some bytes, also of a descriptor that does not block; none at the end. Raises `OSError`."""
    while True:
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:  # another process made the description non-blocking; this thread may wait
            select.select([fd], [], [])


@final
class ThreadedPipeReader:
    """Reads several pipes, each in a thread, through a bounded queue. Implements `stdio_guard.PipeReader`."""

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
