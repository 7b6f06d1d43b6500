"""Wakes the event loop from worker threads and signal handlers, by a byte in a pipe.

A pipe of our own instead of either event loop's way, because a signal may come before there is a loop.
"""

from __future__ import annotations

import os
import sys
from typing import final

from ...lazy import anyio


@final
class Wakeup:
    """`notify()` from any thread or signal handler makes one `wait()` return, soon or at once; many may fold into one."""

    def __init__(self) -> None:
        self._reading, self._writing = _pair()
        self._pending = False

    def __del__(self) -> None:  # when no thread can call `notify` any more, and so write to what the number means then
        os.close(self._reading)
        os.close(self._writing)

    def notify(self) -> None:
        if not self._pending:
            self._pending = True
            os.write(self._writing, b"\0")

    async def wait(self) -> None:
        """Wait for the next `notify`, or take the one that came meanwhile. What is new is to be looked for afterwards."""
        await anyio.wait_readable(self._reading)
        os.read(self._reading, 512)
        self._pending = False  # before anyone looks, so that what comes later notifies again


def _pair() -> tuple[int, int]:
    if sys.platform == "win32":  # only sockets can be polled there
        import socket

        first, second = socket.socketpair()
        return first.detach(), second.detach()
    return os.pipe()
