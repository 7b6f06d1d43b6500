"""The clock, the waiting and the chance that whatever is tried again goes by, as one seam for tests to play."""

from __future__ import annotations

from typing import Final, Protocol, final


class Timing(Protocol):
    """Seconds of a clock that never goes back, and numbers that nobody can guess."""

    def now(self) -> float:
        """The clock, in seconds since whenever."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait. Can be cancelled."""
        ...

    def jitter(self) -> float:
        """A number in [0, 1), any one as likely as another."""
        ...


@final
class SystemTiming:
    """The event loop's clock."""

    def now(self) -> float:
        import anyio  # late: the first replies leave without an event loop

        return anyio.current_time()

    async def sleep(self, seconds: float) -> None:
        import anyio  # late, as above

        await anyio.sleep(seconds)

    def jitter(self) -> float:
        from random import random  # late: it loads much, and what is tried seldom fails

        return random()


SYSTEM: Final = SystemTiming()


def doubling(initial: float, cap: float, times: int) -> float:
    """`initial` doubled so many times, at most `cap`; seconds. Never overflows."""
    return min(cap, initial * 2.0 ** min(times, 64))
