"""An index of tasks in the order of their last change. Holds sequence numbers and timestamps, never tasks."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import final


@final
class TaskIndex:
    """Sequence numbers in ascending order, and the timestamps of the tasks' statuses.

    Both are dense sorted arrays. Most changes concern recent tasks, so few entries move; a change in the middle of 100,000
    entries costs one `memmove` of some hundred kilobytes.
    """

    __slots__ = ("_max_timestamps", "_sequences", "_timestamps")

    def __init__(self) -> None:
        self._sequences = array("Q")
        self._timestamps: list[str] = []
        self._max_timestamps: list[str] = []  # by position: no task up to here has a later timestamp

    def __len__(self) -> int:
        return len(self._sequences)

    def add(self, sequence: int, timestamp: str) -> None:
        """Add a task. `sequence` is larger than every one in the index."""
        self._sequences.append(sequence)
        insort(self._timestamps, timestamp)
        self._max_timestamps.append(max(timestamp, self._max_timestamps[-1]) if self._max_timestamps else timestamp)

    def remove(self, sequence: int, timestamp: str) -> None:
        """Remove a task that was added with these values."""
        position = bisect_left(self._sequences, sequence)
        del self._sequences[position], self._max_timestamps[position]
        del self._timestamps[bisect_left(self._timestamps, timestamp)]

    def count(self, from_timestamp: str | None) -> int:
        """How many tasks have this timestamp or a later one."""
        return len(self._timestamps) - (
            bisect_left(self._timestamps, from_timestamp) if from_timestamp is not None else 0
        )

    def descending(self, below: int, from_timestamp: str | None) -> Iterator[int]:
        """Sequence numbers smaller than `below`, largest first.

        Ends where no further task can have `from_timestamp` or a later one. Tasks with earlier ones may be among the results.
        """
        sequences, max_timestamps = self._sequences, self._max_timestamps
        for position in range(bisect_left(sequences, below) - 1, -1, -1):
            if from_timestamp is not None and max_timestamps[position] < from_timestamp:
                return
            yield sequences[position]
