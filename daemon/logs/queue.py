"""The bounded backlog between whoever logs and the one thread that writes. Never blocks, never formats, never raises.

There is no lock, so that a signal handler, a destructor or a thread that is stopped half-way can't hold anybody up:
`deque.append` and `deque.popleft` are atomic, and the counters are changed where CPython doesn't switch threads. On a
build without the global lock a counter may lose an update under contention: sizes are approximate anyway and are set
right whenever the backlog runs empty.
"""

from __future__ import annotations

from _thread import get_ident
from collections import deque
from collections.abc import Callable
from time import time
from typing import Final, final

import msgspec

from .snapshot import take

MAX_EVENTS: Final = 4096
"""About a second of a busy debug log, and no memory to speak of."""

MAX_BYTES: Final = 2 * 1024 * 1024
"""Approximate size of all events that wait. The last one accepted may reach beyond it."""

EVENT_BYTES: Final = 128
"""What an event costs beside its fields."""


class Event(msgspec.Struct, frozen=True):
    """One event as it happened: `when` in seconds since the epoch, `refused` events before it."""

    when: float
    rank: int
    name: str
    fields: dict[str, object]
    refused: int
    size: int


def _nobody() -> None:
    """Who is roused while no writer is attached."""


@final
class Backlog:
    """Events in the order of their `put`. When full it refuses the newest and counts it in `refused`."""

    __slots__ = ("_bytes", "_events", "_rouse", "idle", "open", "refused", "writer")

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._bytes = 0
        self._rouse: Callable[[], None] = _nobody
        self.idle = False
        """The writer is not looking: whoever puts must rouse it."""
        self.open = True
        self.refused = 0
        """How many events were turned away since the writer was attached."""
        self.writer = 0
        """The writer's thread. What it causes itself, such as a warning while it renders, is ignored: it never ends."""

    def __len__(self) -> int:
        return len(self._events)

    def put(self, rank: int, name: str, fields: dict[str, object], when: float | None = None) -> None:
        """Takes one event, or counts it as refused. `fields` belongs to the backlog from here on."""
        if get_ident() == self.writer:
            return
        if not self.open or len(self._events) >= MAX_EVENTS or self._bytes >= MAX_BYTES:
            self.refused += 1
            return
        size = take(fields) + EVENT_BYTES
        self._bytes += size
        self._events.append(Event(time() if when is None else when, rank, name, fields, self.refused, size))
        if self.idle:
            self._rouse()

    def get(self) -> Event | None:
        """The oldest event, or None. For the writer alone."""
        try:
            event = self._events.popleft()
        except IndexError:
            self._bytes = 0
            return None
        self._bytes -= event.size
        return event

    @property
    def attached(self) -> bool:
        """Whether there is a writer."""
        return self._rouse is not _nobody

    def attach(self, rouse: Callable[[], None], *, rank: int) -> None:
        """From here on `rouse` is called when the writer must wake. Events below `rank` that waited are forgotten."""
        for _ in range(len(self._events)):
            event = self._events.popleft()
            if event.rank >= rank:
                self._events.append(event)
        self._rouse, self.open, self.idle = rouse, True, True
        if self._events:
            rouse()

    def shut(self) -> None:
        """From here on every event is refused; those that wait can still be read."""
        self.open = False

    def detach(self) -> int:
        """Forgets the writer and what waits; returns how many events were refused or forgotten since `attach`."""
        self._rouse, self.idle = _nobody, False
        lost = self.refused + len(self._events)
        self.forget()
        return lost

    def forget(self) -> None:
        """Empties the backlog without a word: a forked child inherits events that its parent writes."""
        self._events.clear()
        self._bytes = self.refused = 0
