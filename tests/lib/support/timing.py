"""Clocks that a test or sleeping moves on, and random numbers of the test's choice."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Final

import anyio

ALMOST_ONE: Final = 1 - 2**-53
"""The largest jitter."""


class Clock:
    """Stands still until the test sets `now`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeTiming:
    """A `Timing`. The test may set `time` too; `slept` holds the seconds of every sleep."""

    def __init__(self, jitter: Iterable[float] = repeat(ALMOST_ONE)) -> None:
        self.time = 1000.0
        self.slept: list[float] = []
        self._jitter = iter(jitter)

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await anyio.lowlevel.checkpoint()

    def jitter(self) -> float:
        return next(self._jitter)
