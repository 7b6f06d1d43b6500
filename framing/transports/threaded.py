"""Makes a descriptor awaitable that no event loop can wait for: a thread copies between it and a socket pair.

For all of Windows, whose pipes and consoles can't be polled, and for odd devices elsewhere. It costs a copy and a thread's
wake-up, so that nothing that can be polled comes here. The socket's buffers are the bound: a full one stops the copying,
which is back-pressure.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, final

from .descriptors import READ_BYTES, Inlet, Outlet

if TYPE_CHECKING:
    from queue import Queue

FLUSH_SECONDS = 0.5
"""How long closing an outlet waits for bytes that were taken but are not written; part of the drain window."""


def pumped_inlet(fd: int) -> Inlet:
    """Reads by a thread, which lives until the input ends. Failures of the descriptor are its end."""
    import socket
    import threading

    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    copied = os.dup(fd)  # the thread's own: it can outlive the number that was given

    def copy() -> None:
        with theirs:
            try:
                while chunk := _read(copied):
                    theirs.sendall(chunk)
            except OSError:
                return  # the input failed, or nobody wants it any more: closing `theirs` says so
            finally:
                os.close(copied)

    threading.Thread(target=copy, name="discreet-stdin", daemon=True).start()
    return Inlet(get=lambda: ours.recv(READ_BYTES), wait_on=ours, close=ours.close)


def pumped_outlet(fd: int) -> Outlet:
    """Writes by a thread. `close` waits a bounded time for it; the descriptor's failure shows at a later `put`."""
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

    def finish() -> None:
        try:
            ours.shutdown(socket.SHUT_WR)
        except OSError:
            return  # the thread has ended: there is nothing left to say

    def close() -> None:
        finish()
        thread.join(FLUSH_SECONDS)
        ours.close()

    thread = threading.Thread(target=copy, name="discreet-stdout", daemon=True)
    thread.start()
    return Outlet(put=ours.send, wait_on=ours, finish=finish, close=close)


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:  # somebody else made the description non-blocking; this thread may wait
            select.select([fd], [], [])


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            select.select([], [fd], [])


@final
class PumpedInbox:
    """Reads several pipes by a thread each; what has been read waits in a bounded queue."""

    settle = 0.05

    def __init__(self, *pipes: int) -> None:
        import threading
        from queue import Queue

        self._arrived: Queue[tuple[int, bytes] | None] = Queue(maxsize=16)
        for fd in pipes:
            threading.Thread(target=self._copy, args=(fd,), name="discreet-inbox", daemon=True).start()

    def take(self, timeout: float | None) -> list[tuple[int, bytes]]:
        from queue import Empty

        try:
            item = self._arrived.get(timeout=timeout)
        except Empty:
            return []
        return [item] if item else []

    def wake(self) -> None:
        self._arrived.put(None)

    def close(self) -> None:
        """Nothing: each thread ends with its pipe."""

    def _copy(self, fd: int) -> None:
        try:
            while chunk := os.read(fd, READ_BYTES):
                self._arrived.put((fd, chunk))
        except OSError:
            return  # closed under the thread: nobody wants what comes
