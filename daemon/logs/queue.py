"""The bounded queue between the threads that log and the one that writes. Never blocks, never formats, never raises.

There is no lock, so that nothing can wait here: a signal handler, a destructor or a thread that was stopped half-way
could otherwise block all others. `deque.append` and `deque.popleft` are atomic, and CPython does not switch threads
where the counters change. On a build without the global lock a counter may lose an update under contention: sizes are
approximate anyway, and are corrected whenever the queue runs empty.
"""

from __future__ import annotations

from _thread import get_ident
from collections import deque
from collections.abc import Callable
from time import time
from typing import Final, final

import msgspec

from .bound import add_bound
from .field_copy import copy_fields

MAX_EVENTS: Final = 4096
"""About a second of a busy debug log, and little memory."""

MAX_BYTES: Final = 2 * 1024 * 1024
"""Approximate size of all queued events. The last one accepted may exceed it."""

EVENT_BYTES: Final = 128
"""The size of an event without its fields."""


class LogEvent(msgspec.Struct, frozen=True):
    """One event. `when` is its time in seconds since the epoch, `refused` counts the events refused before it."""

    when: float
    rank: int
    name: str
    fields: dict[str, object]
    refused: int
    size: int


def _no_writer() -> None:
    """The wake-up call while no writer is attached."""


@final
class LogQueue:
    """Events in the order of their `put`. A full queue refuses the newest event and counts it in `refused`."""

    __slots__ = ("_bytes", "_events", "_wake", "annotate", "lost", "open", "refused", "writer", "writer_idle")

    def __init__(self) -> None:
        self._events: deque[LogEvent] = deque()
        self._bytes = 0
        self._wake: Callable[[], None] = _no_writer
        self.annotate: Callable[[dict[str, object]], None] | None = None
        """Adds to the fields of an event what the thread that logs it stands in. It must not raise."""
        self.writer_idle = False
        """The writer waits: `put` must wake it."""
        self.open = True
        self.refused = 0
        """How many events were refused since the writer was attached."""
        self.lost = 0
        """How many events the writer has taken and could not write."""
        self.writer = 0
        """The writer's thread. Events that it causes itself, such as warnings while it renders, are ignored: they would
        never end."""

    def __len__(self) -> int:
        return len(self._events)

    def put(self, rank: int, name: str, fields: dict[str, object], when: float | None = None) -> None:
        """Queue one event, or count it as refused. The queue owns `fields` from now on."""
        if get_ident() == self.writer:
            return
        if not self.open or len(self._events) >= MAX_EVENTS or self._bytes >= MAX_BYTES:
            self.refused += 1
            return
        add_bound(fields)
        if self.annotate is not None:
            self.annotate(fields)
        size = copy_fields(fields) + EVENT_BYTES
        self._bytes += size
        self._events.append(LogEvent(time() if when is None else when, rank, name, fields, self.refused, size))
        if self.writer_idle:
            self._wake()

    def get(self) -> LogEvent | None:
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
        return self._wake is not _no_writer

    def attach(self, wake: Callable[[], None], *, rank: int) -> None:
        """Attach the writer: from now on `wake` is called when it is idle. Queued events below `rank` are discarded."""
        for _ in range(len(self._events)):
            event = self._events.popleft()
            if event.rank >= rank:
                self._events.append(event)
        self._wake, self.open, self.writer_idle = wake, True, True
        if self._events:
            wake()

    @property
    def dropped(self) -> int:
        """How many events no line was written for."""
        return self.refused + self.lost

    def close(self) -> None:
        """Refuse every event from now on. Queued events can still be read."""
        self.open = False

    def open_again(self) -> None:
        """Take events again, for a writer that is still to be attached."""
        self.open = True

    def detach(self) -> int:
        """Detach the writer and clear the queue. Returns how many events were dropped or cleared since `attach`."""
        self._wake, self.writer_idle = _no_writer, False
        lost = self.dropped + len(self._events)
        self.clear()
        return lost

    def clear(self) -> None:
        """Empty the queue without counting: a forked child has copies of events that its parent writes."""
        self._events.clear()
        self._bytes = self.refused = self.lost = 0
