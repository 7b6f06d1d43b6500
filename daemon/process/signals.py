"""Handles the signals that the daemon takes. The first that ends it asks it to end, the second ends it at once; two others ask
for a new log file and for a report.

The handlers are our own rather than the loop's: they work from the first line on, before any loop runs, and while a handler
blocks the loop. A signal that was ignored when the process started (nohup, a background job) stays ignored.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, Final, final

from ...framing.transports.stdio import watch_readable
from ...lazy import anyio

# Wakes the event loop from worker threads and signal handlers, by a byte in a pipe.
#
# A pipe of our own instead of either event loop's way, because a signal may come before there is a loop.


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


ENDING: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""SIGHUP is POSIX's, SIGBREAK Windows'; a platform takes those that it has."""

_REOPEN: Final = "SIGUSR1"

_REPORT: Final = "SIGUSR2"


@final
class Signals:
    """While entered, the first signal to end calls `on_first()`, every further one `on_second()`.

    SIGUSR1 calls `on_reopen()`, SIGUSR2 calls `on_report()`. All are called in the main thread, and must not raise.

    If the process `ends_after` the block, further signals are ignored from there on: its status is known by then.
    """

    def __init__(
        self,
        on_first: Callable[[], None],
        on_second: Callable[[], None],
        *,
        on_reopen: Callable[[], None],
        on_report: Callable[[], None],
        ends_after: bool = False,
    ) -> None:
        self._on_first = on_first
        self._on_second = on_second
        self._handlers = dict.fromkeys(ENDING, self._end)
        self._handlers |= {_REOPEN: lambda *_: on_reopen(), _REPORT: lambda *_: on_report()}
        self._before: dict[int, Any] = {}  # Any: whatever `signal.signal` says stood there
        self._seen = False
        self._ends_after = ends_after

    def __enter__(self) -> Signals:
        for name, handler in self._handlers.items():
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, handler)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_IGN if self._seen and self._ends_after else handler)
        self._before.clear()

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self._seen:
            self._on_second()
        else:
            self._seen = True
            self._on_first()


def hold() -> None:
    """Block these signals from now on, also past an `exec`: for the moments without a handler."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_BLOCK, _numbers())


def let_through() -> None:
    """Undo `hold`; what came meanwhile is handled now."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _numbers())


def _numbers() -> list[int]:
    return [getattr(signal, name) for name in (*ENDING, _REOPEN, _REPORT) if hasattr(signal, name)]
