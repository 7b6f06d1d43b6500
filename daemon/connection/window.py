"""The window that a client opens for one subscription: what it may be sent beyond what it has taken (section 5 of the protocol).

So several streams share a connection, and one whose consumer is slow stops its own producer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final, final

WINDOW_BYTES: Final = 256 * 1024
"""Bytes beyond which a producer waits, however few events they are."""

MOST_EVENTS: Final = 1024

_LONGEST: Final = len(str(MOST_EVENTS))


@final
class Window:
    """The events of one subscription that were sent and not taken yet."""

    __slots__ = ("_bytes", "_most", "_sizes", "_taken")

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._taken = 0

    @property
    def full(self) -> bool:
        return len(self._sizes) >= self._most or self._bytes >= WINDOW_BYTES

    def add(self, size: int) -> None:
        """Another event of so many bytes is sent."""
        self._sizes.append(size)
        self._bytes += size

    def take(self, number: int) -> None:
        """The client has taken the events up to this number. One that was never sent counts as the last."""
        while self._taken < number and self._sizes:
            self._taken += 1
            self._bytes -= self._sizes.popleft()


def window_of(service_params: Mapping[str, str]) -> Window | None:
    """The window that a request asks for; None where it asks for none, or for what is no number of events."""
    text = service_params.get(STREAM_WINDOW, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST and int(text) > 0):
        return None
    return Window(min(int(text), MOST_EVENTS))


STREAM_WINDOW: Final = "stream-window"
"""The service parameter."""
