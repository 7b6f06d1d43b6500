"""Decides when a stream that was cut off is taken up again: after which pause, and how often in a row. Sends nothing."""

from __future__ import annotations

from typing import Final, final

from ...errors.backoff import SYSTEM_TIMING, Timing, exponential_backoff

MAX_RECONNECTIONS: Final = 8
"""Attempts in a row without an event. With the pauses between them about half a minute: time for a restart."""

RECONNECT_INITIAL: Final = 0.2
RECONNECT_CAP: Final = 8.0
"""Seconds before the second attempt, and at most."""

MAX_ASKED_SECONDS: Final = 60.0
"""How long a server may ask to wait."""


@final
class Reconnection:
    """The attempts to go on with one stream.

    Only the first one is immediate, whatever comes in between: a server that cuts off each stream behind one event must not be
    asked without end. Later pauses are random, so that clients that lost a server together do not return together.
    """

    def __init__(self, timing: Timing = SYSTEM_TIMING) -> None:
        self._timing = timing
        self._failures = 0
        self._began = False

    def progressed(self) -> None:
        """An event came: later attempts are counted anew."""
        self._failures = 0

    def may_go_on(self) -> bool:
        """Count a failure. Returns whether another attempt is due."""
        self._failures += 1
        return self._failures <= MAX_RECONNECTIONS

    async def pause(self, asked: float | None = None) -> None:
        """Wait before the next attempt, at least as long as the server asks."""
        backoff = (
            exponential_backoff(RECONNECT_INITIAL, RECONNECT_CAP, max(self._failures - 2, 0)) if self._began else 0.0
        )
        self._began = True
        seconds = backoff * (1 + self._timing.jitter()) / 2
        await self._timing.sleep(max(seconds, min(asked or 0.0, MAX_ASKED_SECONDS)))
