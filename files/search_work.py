"""Counts the work of one search against its budget, and shares the machine: gives way to other threads, and ends a search
that was cancelled. Knows nothing of files.
"""

from __future__ import annotations

from time import monotonic, sleep
from typing import Final, final

from .types import Cancellable

STEP_WORK: Final = 256 * 1024
"""Work between two pauses: about a millisecond, and at most a few thousand places where a text stands."""

PAUSE_SECONDS: Final = 20e-6
"""A thread that only let go of Python's lock would mostly take it again before another wakes up."""


@final
class SearchWork:
    """`budget` is in bytes read and compared, `seconds` from now on. Used in one thread."""

    def __init__(self, ctx: Cancellable, budget: int, seconds: float) -> None:
        self._ctx = ctx
        self._left = budget
        self._latest = monotonic() + seconds
        self._step = 0

    @property
    def exhausted(self) -> bool:
        """True when the search should end at the next place from which it can go on."""
        return self._left <= 0

    def spend(self, work: int) -> None:
        """Count so many bytes. Every step's end gives way to other threads, and raises if the search was cancelled."""
        self._left -= work
        self._step -= work
        if self._step <= 0:
            self._step = STEP_WORK
            self._ctx.check_cancelled()
            if monotonic() >= self._latest:
                self._left = 0
            sleep(PAUSE_SECONDS)
