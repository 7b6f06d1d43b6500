"""Counts the tasks in memory against the daemon's budget, and refuses what does not fit. Holds no task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ...errors.exceptions import FailureError
from ...errors.failures import Overloaded
from ..memory import MemoryBudget

TASKS_SHARE: Final = 0.75
"""How much of the budget tasks may take: the rest stays for the requests that read and cancel them."""


@final
class TaskMemory:
    """One per daemon. Counts the tasks that are in use, the buffers of their watchers, and the tasks of a store in memory.

    Without a `budget` nothing is refused. `copies` is how often each byte of a task is in memory: once while the task is in
    use, and once more in a store in memory. `free(size)` has the store delete ended tasks.
    """

    __slots__ = ("_budget", "_copies", "_free")

    def __init__(
        self, budget: MemoryBudget | None = None, *, copies: int = 1, free: Callable[[int], None] = lambda _: None
    ) -> None:
        self._budget = budget
        self._copies = copies
        self._free = free

    def add(self, size: int) -> None:
        """Count so many bytes more; fewer where `size` is negative."""
        if self._budget is not None and size:
            self._budget.add("tasks", size)

    @property
    def full(self) -> bool:
        """Whether nothing more fits."""
        return not self._fits(0)

    def check(self, size: int) -> None:
        """Raises `FailureError(Overloaded)` unless a task may take so many bytes more. Ended tasks make room first."""
        wanted = size * self._copies
        if not self._fits(wanted):
            self._free(wanted)
            if not self._fits(wanted):
                raise FailureError(Overloaded())

    def _fits(self, size: int) -> bool:
        budget = self._budget
        return budget is None or (budget.fits(size) and budget.by_kind()["tasks"] + size <= TASKS_SHARE * budget.limit)
