"""The signals that the daemon takes. The first that ends it asks it to end, the second ends it at once; two others ask for a
new log file and for a report.

Handlers of our own rather than the loop's: they work from the first line on, before any loop runs, and while a handler
blocks the loop. What was ignored when the process started (nohup, a background job) stays so.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, final

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
    """Keep these signals waiting from now on, also past an `exec`: for the moments in which nobody could handle them."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_BLOCK, _numbers())


def let_through() -> None:
    """Undo `hold`; what came meanwhile is handled now."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _numbers())


def _numbers() -> list[int]:
    return [getattr(signal, name) for name in (*ENDING, _REOPEN, _REPORT) if hasattr(signal, name)]
