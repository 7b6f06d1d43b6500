"""The memory that tasks take, and the events of one task that its watchers have not read yet.

Both are bounded: a task that does not fit is refused, and a full buffer drops its oldest events. Never waits and never reads the
store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ...daemon.memory import MemoryBudget
from ...errors.exceptions import FailureError
from ...errors.failures import Overloaded
from ..stores.interface import LoggedEvent

TASKS_SHARE: Final = 0.75
"""How much of the budget tasks may take: the rest stays for the requests that read and cancel them."""


MAX_EVENTS: Final = 65_536
"""Events that one task's buffer may hold."""

MAX_BYTES: Final = 64 * 1024 * 1024
"""Approximate size of the events that one task's buffer may hold."""

MAX_TOTAL_BYTES: Final = 512 * 1024 * 1024
"""The same for the buffers of all tasks together. The buffer that is added to beyond it drops its own oldest events."""

BACKPRESSURE_BYTES: Final = 4 * 1024 * 1024
"""Above this size an executor waits a moment for its watchers. Each wait in vain doubles it: 4, 8, 16 and 32 MiB."""

BATCH_EVENTS: Final = 64
"""Events that a watcher takes from the buffer at once."""


@final
class TaskMemory:
    """One per daemon. Counts the tasks that are in use, the buffers of their watchers, and the tasks of a store in memory.

    Without a `budget` nothing is refused. Each byte of a task that is in use is in memory twice: in a store in memory, which
    counts it itself, or else (`durable`) in encoded form on its way to or from the store. `free(size)` has the store delete
    ended tasks.
    """

    __slots__ = ("_budget", "_buffered", "_copies", "_free")

    def __init__(
        self, budget: MemoryBudget | None = None, *, durable: bool = False, free: Callable[[int], None] = lambda _: None
    ) -> None:
        self._budget = budget
        self._copies = 2 if durable else 1
        self._free = free
        self._buffered = 0

    def add_task(self, size: int) -> None:
        """Count so many bytes more of a task in use; fewer where `size` is negative."""
        if self._budget is not None and size:
            self._budget.add("tasks", size * self._copies)

    def add_buffered(self, size: int) -> None:
        """Count so many bytes more in the buffers of watchers."""
        self._buffered += size
        if self._budget is not None and size:
            self._budget.add("tasks", size)

    @property
    def buffers_full(self) -> bool:
        """Whether a buffer that grows must drop something."""
        return self._buffered > MAX_TOTAL_BYTES or not self._fits(0)

    def check(self, size: int) -> None:
        """Raises `FailureError(Overloaded)` unless a task may take so many bytes more. Ended tasks make room first."""
        wanted = 2 * size
        if not self._fits(wanted):
            self._free(wanted)
            if not self._fits(wanted):
                raise FailureError(Overloaded())

    def _fits(self, size: int) -> bool:
        budget = self._budget
        return budget is None or (budget.fits(size) and budget.held("tasks") + size <= TASKS_SHARE * budget.limit)


@final
class EventBuffer:
    """Consecutive events of one task, for its watchers; empty without one. `bytes` is their approximate size.

    A watcher that falls behind reads on in the store. `on_relief()` is called when the buffer is congested no more.
    """

    __slots__ = ("_backpressure_bytes", "_base", "_events", "_memory", "_on_relief", "_sizes", "_watchers", "bytes")

    def __init__(self, memory: TaskMemory, on_relief: Callable[[], None] = lambda: None) -> None:
        self._base = 0  # the generation before the first event
        self._memory = memory
        self._on_relief = on_relief
        self._watchers: set[Watcher] = set()
        self._backpressure_bytes = BACKPRESSURE_BYTES
        self._events: list[LoggedEvent] = []
        self._sizes: list[int] = []
        self.bytes = 0

    def watch(self, generation: int) -> Watcher:
        """A watcher of the events after this generation, which is the task's present one. It must be closed."""
        if not self._watchers:
            self._reset(generation)
        watcher = Watcher(self, generation)
        self._watchers.add(watcher)
        return watcher

    def close(self, watcher: Watcher) -> None:
        """Buffer nothing more for this watcher. Closing it again does nothing."""
        self._watchers.discard(watcher)
        self.trim()

    def add(self, logged: LoggedEvent, size: int) -> None:
        """Append the next event if anybody watches; drop an eighth of the buffer where it exceeds a limit."""
        if not self._watchers:
            return
        self._events.append(logged)
        self._sizes.append(size)
        self.bytes += size
        self._memory.add_buffered(size)
        if self.bytes > MAX_BYTES or self._memory.buffers_full or len(self._events) > MAX_EVENTS:
            self._drop(1 + len(self._events) // 8)

    def read(self, after: int, upto: int, limit: int) -> list[LoggedEvent] | None:
        """At most `limit` events after generation `after`, none after `upto`. None where the next one was dropped."""
        start = after - self._base
        if start < 0:
            return None
        return self._events[start : max(start, min(start + limit, upto - self._base))]

    def trim(self) -> None:
        """Drop what every watcher has read: in batches, so that the cost of dropping stays linear."""
        if not self._watchers:
            return self._reset(0)  # `watch` sets the base
        count = min(watcher.position for watcher in self._watchers) - self._base
        if count < min(256, 1 + len(self._events) // 2):
            return
        was_congested = self.congested
        self._drop(count)
        if self.bytes < BACKPRESSURE_BYTES // 2:
            self._backpressure_bytes = BACKPRESSURE_BYTES
        if was_congested and not self.congested:
            self._on_relief()

    @property
    def congested(self) -> bool:
        """Whether publishers should wait a moment for the watchers."""
        return self.bytes > self._backpressure_bytes

    def raise_backpressure_limit(self) -> None:
        """The watchers did not catch up: publishers may go twice as far."""
        self._backpressure_bytes *= 2

    def _reset(self, base: int) -> None:
        """Drop all events, and continue after this generation."""
        self._drop(len(self._events))
        self._base = base
        self._backpressure_bytes = BACKPRESSURE_BYTES

    def _drop(self, count: int) -> None:
        freed = sum(self._sizes[:count])
        self.bytes -= freed
        self._memory.add_buffered(-freed)
        del self._events[:count], self._sizes[:count]
        self._base += count


@final
class Watcher:
    """A reader of one task's events. `position` is the generation of the last event that it has read."""

    __slots__ = ("_buffer", "position")

    def __init__(self, buffer: EventBuffer, position: int) -> None:
        self._buffer = buffer
        self.position = position

    def take(self, upto: int, limit: int = BATCH_EVENTS) -> list[LoggedEvent] | None:
        """The next events, none after generation `upto`; empty where there are none yet, None where the buffer dropped them."""
        found = self._buffer.read(self.position, upto, limit)
        if found:
            self.position = found[-1].generation
            self._buffer.trim()
        return found

    def close(self) -> None:
        self._buffer.close(self)
