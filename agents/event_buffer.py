"""The buffer of one task's events for those who watch it. Knows no task and never waits for a watcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, final

from .stores.interface import LoggedEvent

MAX_EVENTS: Final = 65_536
"""Events that one task's buffer may hold."""

MAX_BYTES: Final = 64 * 1024 * 1024
"""Approximate size of the events that one task's buffer may hold."""

BACKPRESSURE_BYTES: Final = 4 * 1024 * 1024
"""Above this size an executor waits a moment for its watchers. Each wait in vain doubles it: 4, 8, 16 and 32 MiB."""

BATCH_EVENTS: Final = 64
"""Events that a reader takes from the buffer at once."""


class Positioned(Protocol):
    """A reader of a buffer. `position` is the generation of the last event that it has."""

    position: int


@final
class EventBuffer:
    """Consecutive events of one task, for its readers; empty without one. `bytes` is their approximate size.

    `count(size)` counts so many bytes more, and returns whether a buffer that grows must drop something. A reader that falls
    behind reads on in the store.
    """

    __slots__ = ("_backpressure_bytes", "_base", "_count", "_events", "_sizes", "bytes", "readers")

    def __init__(self, count: Callable[[int], bool]) -> None:
        self._base = 0  # the generation before the first event
        self._count = count
        self.readers: Final[set[Positioned]] = set()
        self._backpressure_bytes = BACKPRESSURE_BYTES
        self._events: list[LoggedEvent] = []
        self._sizes: list[int] = []
        self.bytes = 0

    def open(self, reader: Positioned, generation: int) -> None:
        """Keep what comes after this generation, which is the task's present one, until `reader` is closed."""
        if not self.readers:
            self._base = generation
        self.readers.add(reader)

    def add(self, logged: LoggedEvent, size: int) -> None:
        """Append the next event if anybody reads; drop an eighth of the buffer where it exceeds a limit."""
        if not self.readers:
            return
        self._events.append(logged)
        self._sizes.append(size)
        self.bytes += size
        full = self._count(size)
        if full or self.bytes > MAX_BYTES or len(self._events) > MAX_EVENTS:
            self._drop(1 + len(self._events) // 8)

    def read(self, after: int, upto: int) -> Sequence[LoggedEvent]:
        """Some events after generation `after`, none after `upto`. None where the next one was dropped, or is yet to come."""
        start = after - self._base
        return () if start < 0 else self._events[start : max(start, min(start + BATCH_EVENTS, upto - self._base))]

    def trim(self) -> bool:
        """Drop what every reader has: in batches, so that the cost of dropping stays linear. Returns whether the buffer was
        congested before and is no more."""
        was_congested = self.congested
        if not self.readers:
            self._backpressure_bytes = BACKPRESSURE_BYTES
            self._drop(len(self._events))
            return was_congested
        count = min(reader.position for reader in self.readers) - self._base
        count = min(count, len(self._events))  # the store may have been ahead of what was heard here
        if count < min(256, 1 + len(self._events) // 2):
            return False
        self._drop(count)
        if self.bytes < BACKPRESSURE_BYTES // 2:
            self._backpressure_bytes = BACKPRESSURE_BYTES
        return was_congested and not self.congested

    @property
    def congested(self) -> bool:
        """Whether publishers should wait a moment for the readers."""
        return self.bytes > self._backpressure_bytes

    def raise_backpressure_limit(self) -> None:
        """The readers did not catch up: publishers may go twice as far."""
        self._backpressure_bytes *= 2

    def _drop(self, count: int) -> None:
        freed = sum(self._sizes[:count])
        self.bytes -= freed
        self._count(-freed)
        del self._events[:count], self._sizes[:count]
        self._base += count
