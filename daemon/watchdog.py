"""The end that comes in any case: when the drain window has passed, the process is gone, whatever still runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import final


@final
class Watchdog:
    """Once armed, ends the process after `window` seconds with the status that `last_words()` returns.

    `last_words()` runs in the watchdog's thread; it flushes what it can within its own bound.
    """

    def __init__(self, window: float, last_words: Callable[[], int]) -> None:
        self._window = window
        self._last_words = last_words
        self._armed = False

    def arm(self) -> None:
        """Start the clock. Later calls change nothing. May be called in a signal handler."""
        if self._armed:
            return
        self._armed = True
        import threading  # late: needed at the end only

        threading.Thread(target=self._wait, name="discreet-watchdog", daemon=True).start()

    def _wait(self) -> None:
        import time

        time.sleep(self._window)
        os._exit(self._last_words())
