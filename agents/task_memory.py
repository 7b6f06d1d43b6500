"""The memory that tasks and their watchers take: how much there is, and the buffers of events. Knows no task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, final

from ..daemon.memory import MemoryBudget
from ..errors.exceptions import FailureError
from ..errors.failures import Overloaded
from .stores.interface import LoggedEvent

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
"""Events that a reader takes from the buffer at once."""


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
        budget = self._budget
        return self._buffered > MAX_TOTAL_BYTES or not (budget is None or budget.fits_share("tasks", 0, TASKS_SHARE))

    def check(self, size: int) -> None:
        """Raises `FailureError(Overloaded)` unless a task may take so many bytes more. Ended tasks make room first."""
        wanted, budget = 2 * size, self._budget
        if budget is None or budget.fits_share("tasks", wanted, TASKS_SHARE):
            return
        self._free(wanted)
        if not budget.fits_share("tasks", wanted, TASKS_SHARE):
            raise FailureError(Overloaded())


class Positioned(Protocol):
    """A reader of a buffer. `position` is the generation of the last event that it has."""

    position: int


@final
class EventBuffer:
    """Consecutive events of one task, for its readers; empty without one. `bytes` is their approximate size.

    A reader that falls behind reads on in the store.
    """

    __slots__ = ("_backpressure_bytes", "_base", "_events", "_memory", "_sizes", "bytes", "readers")

    def __init__(self, memory: TaskMemory) -> None:
        self._base = 0  # the generation before the first event
        self._memory = memory
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
        self._memory.add_buffered(size)
        if self.bytes > MAX_BYTES or self._memory.buffers_full or len(self._events) > MAX_EVENTS:
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
        self._memory.add_buffered(-freed)
        del self._events[:count], self._sizes[:count]
        self._base += count
