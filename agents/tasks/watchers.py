"""The watchers of one task: where each of them is in its event log, and which events the buffer still holds for them.

Never waits: a watcher that falls behind the buffer reads on in the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ..stores.interface import LoggedEvent
from .event_buffer import EventBuffer

BATCH_EVENTS: Final = 64
"""Events that a watcher takes from the buffer at once."""


@final
class Watchers:
    """One per task in memory. `on_relief()` is called when the buffer is congested no more."""

    __slots__ = ("_buffer", "_on_relief", "_open")

    def __init__(self, buffer: EventBuffer, on_relief: Callable[[], None]) -> None:
        self._buffer = buffer
        self._on_relief = on_relief
        self._open: set[Watcher] = set()

    def add(self, logged: LoggedEvent, size: int) -> None:
        """Buffer the next event if anybody watches."""
        if self._open:
            self._buffer.add(logged, size)

    def open(self, generation: int) -> Watcher:
        """A watcher of the events after this generation, which is the task's present one. It must be closed."""
        if not self._open:
            self._buffer.reset(generation)
        watcher = Watcher(self, self._buffer, generation)
        self._open.add(watcher)
        return watcher

    def close(self, watcher: Watcher) -> None:
        """Buffer nothing more for this watcher. Closing it again does nothing."""
        self._open.discard(watcher)
        self.trim()

    def trim(self) -> None:
        """Drop the events that every watcher has read."""
        if not self._open:
            self._buffer.reset(0)  # `open` sets the base of the next watcher
        elif self._buffer.acknowledge(min(watcher.position for watcher in self._open)):
            self._on_relief()


@final
class Watcher:
    """A reader of one task's events. `position` is the generation of the last event that it has read."""

    __slots__ = ("_buffer", "_watchers", "position")

    def __init__(self, watchers: Watchers, buffer: EventBuffer, position: int) -> None:
        self._watchers = watchers
        self._buffer = buffer
        self.position = position

    def take(self, upto: int, limit: int = BATCH_EVENTS) -> list[LoggedEvent] | None:
        """The next events, none after generation `upto`; empty where there are none yet, None where the buffer dropped them."""
        found = self._buffer.read(self.position, upto, limit)
        if found:
            self.position = found[-1].generation
            self._watchers.trim()
        return found

    def close(self) -> None:
        self._watchers.close(self)
