"""Ends the process when the drain window has passed, whatever still runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, final

GRACE_SECONDS: Final = 0.25
"""How much longer an orderly end may take on a busy machine."""

SWITCH_SECONDS: Final = 0.0005
"""The interpreter's switch interval while the daemon ends: handlers that spin must not use up the window."""


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
        import sys  # late: needed at the end only
        import threading

        sys.setswitchinterval(SWITCH_SECONDS)
        threading.Thread(target=self._wait, name="discreet-watchdog", daemon=True).start()

    def _wait(self) -> None:
        import time

        time.sleep(self._window + GRACE_SECONDS)
        os._exit(self._last_words())
