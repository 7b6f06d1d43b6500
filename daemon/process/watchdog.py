"""Ends the process when the drain window has passed, whatever still runs."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from os import _exit as exit_process  # here, as all that is needed at the end: an app may patch its module
from sys import setswitchinterval
from time import monotonic, sleep
from typing import Final, final

from ..lifecycle import EXIT_FAILED

GRACE_SECONDS: Final = 0.25
"""How much longer an orderly end may take on a busy machine."""

SWITCH_SECONDS: Final = 0.0005
"""The interpreter's switch interval while the daemon ends: handlers that spin must not use up the window."""


@final
class Watchdog:
    """Once armed, ends the process `window` seconds later with the status that `last_words()` returns.

    Its thread stands from `start` on: at the end there may be none left to start. `last_words()` runs in it and flushes
    what it can within its own bound.
    """

    def __init__(self, window: float, last_words: Callable[[], int]) -> None:
        self._window = window
        self._last_words = last_words
        self._ends_at: float | None = None
        self._armed = allocate_lock()
        self._armed.acquire()

    def start(self) -> None:
        """Start the thread. Raises `RuntimeError` where none can be had."""
        start_new_thread(self._wait, ())

    def arm(self) -> None:
        """Start the clock. Later calls change nothing. May be called in a signal handler."""
        if self._ends_at is not None:
            return
        self._ends_at = monotonic() + self._window + GRACE_SECONDS
        setswitchinterval(SWITCH_SECONDS)
        self._armed.release()

    def _wait(self) -> None:
        self._armed.acquire()
        assert self._ends_at is not None
        sleep(max(0.0, self._ends_at - monotonic()))
        status = EXIT_FAILED
        try:
            status = self._last_words()
        finally:
            exit_process(status)
