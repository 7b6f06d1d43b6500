"""The last events that the snapshots of tasks in memory cover. Whoever was cut off just before such a snapshot, as one is made
when a task ends, reads them and goes on without a loss. Bounded in bytes. Never part of a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import msgspec

from ....daemon.memory import MemoryBudget

MAX_TAIL_BYTES: Final = 32 * 1024 * 1024
"""Total size of the tails of all tasks."""

_TASK_SHARE: Final = 4
"""The tail of one task takes at most this part of the total."""

_BUDGET_SHARE: Final = 16
"""All tails take at most this part of the memory budget."""

_EVENT_BYTES: Final = 48
"""What an event takes beside its bytes."""

_TAIL_BYTES: Final = 512
"""What a tail takes beside its events."""


class _Tail(msgspec.Struct, gc=False):
    events: list[bytes]
    size: int = _TAIL_BYTES


@final
class EventTails:
    """One per memory store. Counts in `budget`. The tails to which nothing was added for the longest time are dropped first."""

    def __init__(self, limit: int, budget: MemoryBudget) -> None:
        self._limit = min(limit, budget.limit // _BUDGET_SHARE)
        self._budget = budget
        self._tails: dict[str, _Tail] = {}
        self._bytes = 0

    def get(self, task_id: str) -> Sequence[bytes]:
        """Events without gaps, the last of which is the last that the task's snapshot covers. None where none are kept."""
        tail = self._tails.get(task_id)
        return () if tail is None else tail.events

    def extend(self, task_id: str, events: Sequence[bytes]) -> None:
        """The task's snapshot covers these events now, which follow those that it covered before."""
        tail = self._tails.pop(task_id, None)
        if tail is None:
            tail = _Tail([])
            self._count(tail.size)
        self._tails[task_id] = tail
        tail.events += events
        self._resize(tail, sum(map(_size, events)))
        count = 0
        surplus = tail.size - self._limit // _TASK_SHARE
        while surplus > 0 and count < len(tail.events):
            surplus -= _size(tail.events[count])
            count += 1
        self._resize(tail, -sum(map(_size, tail.events[:count])))
        del tail.events[:count]
        self.free(self._bytes - self._limit)

    def drop(self, task_id: str) -> None:
        """The task has no tail any more."""
        tail = self._tails.pop(task_id, None)
        if tail is not None:
            self._count(-tail.size)

    def free(self, size: int) -> int:
        """Drop tails until so many bytes are free; returns how many are."""
        before = self._bytes
        while self._tails and before - self._bytes < size:
            self.drop(next(iter(self._tails)))
        return before - self._bytes

    def _resize(self, tail: _Tail, size: int) -> None:
        tail.size += size
        self._count(size)

    def _count(self, size: int) -> None:
        self._bytes += size
        self._budget.add("tasks", size)


def _size(event: bytes) -> int:
    return len(event) + _EVENT_BYTES
