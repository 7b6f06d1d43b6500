"""The events of one subscription on their way to an HTTP client: lossless, in order and bounded.

While its client does not read, the producer waits. Nobody else does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, final

import msgspec

from ..daemon.memory import SMALL, MemoryBudget
from ..errors.exceptions import FailureError
from ..errors.failures import Overloaded
from ..lazy import anyio

MAX_UNDELIVERED: Final = 32
"""Events that may wait for the client before their producer waits, as over stdio."""

TURN_BYTES: Final = 64 * 1024
"""About how much goes out at once. The server copies it, and holds it until the client has taken it: it counts nowhere."""


class QueuedEvent(msgspec.Struct, frozen=True):
    """`value` is a JSON text, `number` the event's number in the log that it comes from, where it has one."""

    value: bytes
    number: int | None = None


@final
class EventQueue:
    """The `EventSink` of one subscription. `on_event()` is called when there is something to take."""

    def __init__(self, memory: MemoryBudget, on_event: Callable[[], None]) -> None:
        self.events = 0
        self.discarded = False
        self._memory = memory
        self._on_event = on_event
        self._waiting: deque[QueuedEvent] = deque()
        self._bytes = 0
        self._undelivered = 0
        self._room: anyio.Event | None = None

    @property
    def full(self) -> bool:
        return self._undelivered >= MAX_UNDELIVERED or (self._undelivered > 0 and self._memory.congested)

    def put(self, value: bytes, number: int | None = None) -> None:
        """Queue the next event. Dropped after `discard`. Raises `FailureError(Overloaded)` where there is no memory for it."""
        if self.discarded:
            return
        if len(value) > SMALL and not self._memory.fits(len(value)):
            raise FailureError(Overloaded())
        self.events += 1
        self._undelivered += 1
        self._hold(len(value))
        self._waiting.append(QueuedEvent(value, number))
        self._on_event()

    async def wait_for_room(self) -> None:
        while self.full and not self.discarded:
            self._room = anyio.Event()
            with anyio.move_on_after(MEMORY_POLL_SECONDS if self._memory.congested else None):
                await self._room.wait()

    def take(self) -> list[QueuedEvent]:
        """Remove and return what waits, but no more than goes out at once. It counts as undelivered until `delivered`, which
        must follow.
        """
        taken: list[QueuedEvent] = []
        size = 0
        while self._waiting and size < TURN_BYTES:
            event = self._waiting.popleft()
            taken.append(event)
            size += len(event.value)
        return taken

    def delivered(self, events: list[QueuedEvent]) -> None:
        """The client has taken these."""
        if self.discarded:
            return
        self._undelivered -= len(events)
        self._hold(-sum(len(each.value) for each in events))
        self._wake()

    def discard(self) -> None:
        """The client has gone: drop what waits, and all that follows."""
        if not self.discarded:
            self.discarded = True
            self._waiting.clear()
            self._hold(-self._bytes)
            self._wake()

    def _hold(self, size: int) -> None:
        self._bytes += size
        self._memory.add("events", size)

    def _wake(self) -> None:
        if self._room is not None:
            self._room.set()
            self._room = None


MEMORY_POLL_SECONDS: Final = 0.05
"""How often a producer looks again that waits because the whole daemon is short of memory."""
