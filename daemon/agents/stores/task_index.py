"""Tasks of one kind in the order of their last change. Knows their numbers and times, not the tasks."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import final


@final
class TaskIndex:
    """`times` are those of the tasks' status.

    Everything is in order and dense. What changes or goes was mostly among the last to come, so little moves up for it; and
    even in the middle of 100,000 that is one `memmove` of some hundred kilobytes.
    """

    __slots__ = ("_numbers", "_peaks", "_times")

    def __init__(self) -> None:
        self._numbers = array("Q")
        self._times: list[str] = []
        self._peaks: list[str] = []  # by place: no task up to here has a later time

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int, time: str) -> None:
        """The task that changed last of all."""
        self._numbers.append(number)
        insort(self._times, time)
        self._peaks.append(time if not self._peaks or time > self._peaks[-1] else self._peaks[-1])

    def remove(self, number: int, time: str) -> None:
        place = bisect_left(self._numbers, number)
        del self._numbers[place], self._peaks[place]
        del self._times[bisect_left(self._times, time)]

    def count(self, after: str | None) -> int:
        """How many have this time or a later one."""
        return len(self._times) - (bisect_left(self._times, after) if after is not None else 0)

    def down(self, below: int, after: str | None) -> Iterator[int]:
        """The numbers smaller than `below`, the largest first; ends early where no time is as late as `after`."""
        numbers, peaks = self._numbers, self._peaks
        for place in range(bisect_left(numbers, below) - 1, -1, -1):
            if after is not None and peaks[place] < after:
                return
            yield numbers[place]
