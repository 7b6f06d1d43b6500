"""Wakes the event loop from worker threads and signal handlers, by a byte in a pipe.

A pipe of our own instead of either event loop's way, because a signal may come before there is a loop.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import final

from ...framing.transports.readiness import watch_readable
from ...lazy import anyio


@final
class Wakeup:
    """`notify()` from any thread or signal handler makes one `wait()` return, soon or at once; many may fold into one.

    `sockets`: a pair of sockets in place of a pipe. Windows can wait for nothing else, and its sockets are no descriptors.
    """

    def __init__(self, *, sockets: bool = sys.platform == "win32") -> None:
        self._pending = False
        if sockets:
            import socket

            reading, writing = socket.socketpair()
            self._read, self._write = partial(reading.recv, 512), partial(writing.send, b"\0")
            self._wait_on = reading.fileno()
            self._close = reading.close, writing.close
        else:
            end, start = os.pipe()
            self._read, self._write = partial(os.read, end, 512), partial(os.write, start, b"\0")
            self._wait_on = end
            self._close = partial(os.close, end), partial(os.close, start)

    def __del__(self) -> None:  # when no thread can call `notify` any more, and so write to what the number means then
        for close in self._close:
            close()

    def notify(self) -> None:
        if not self._pending:
            self._pending = True
            self._write()

    def watch(self, on_wakeup: Callable[[], None]) -> Callable[[], object] | None:
        """Have the running event loop call `on_wakeup()` after `notify`, outside of all tasks; many may fold into one call.

        Returns what ends that. None where the loop has no such way: then `wait` is to be awaited.
        """

        def take() -> None:
            self._take()
            on_wakeup()

        return watch_readable(self._wait_on, take)

    async def wait(self) -> None:
        """Wait for the next `notify`, or take the one that came meanwhile. What is new is to be looked for afterwards."""
        await anyio.wait_readable(self._wait_on)
        self._take()

    def _take(self) -> None:
        self._read()
        self._pending = False  # before anyone looks, so that what comes later notifies again
