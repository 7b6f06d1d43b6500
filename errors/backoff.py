"""Exponential backoff, and the clock and random source behind it, which tests replace. Never decides what is retried."""

from __future__ import annotations

from typing import Final, Protocol, final


class Timing(Protocol):
    """A monotonic clock and a source of random numbers."""

    def now(self) -> float:
        """Seconds since an arbitrary moment; never decreases."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds. Can be cancelled."""
        ...

    def jitter(self) -> float:
        """A random number in [0, 1), uniformly distributed."""
        ...


@final
class SystemTiming:
    """The event loop's clock and Python's random numbers."""

    def now(self) -> float:
        import anyio  # late: the first replies leave without an event loop

        return anyio.current_time()

    async def sleep(self, seconds: float) -> None:
        import anyio  # late, as above

        await anyio.sleep(seconds)

    def jitter(self) -> float:
        from random import random  # late: slow to load, and calls seldom fail

        return random()


SYSTEM_TIMING: Final = SystemTiming()


def exponential_backoff(initial: float, cap: float, times: int) -> float:
    """Seconds to wait: `initial` doubled so many `times`, at most `cap`. Never overflows."""
    return min(cap, initial * 2.0 ** min(times, 64))
