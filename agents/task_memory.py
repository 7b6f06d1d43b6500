"""Counts the tasks in memory against the daemon's budget, and refuses what does not fit. Holds no task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ..daemon.memory import MemoryBudget
from ..errors.exceptions import FailureError
from ..errors.failures import Overloaded

TASKS_SHARE: Final = 0.75
"""How much of the budget tasks may take: the rest stays for the requests that read and cancel them."""


@final
class TaskMemory:
    """One per daemon. Counts the tasks that are in use, the buffers of their watchers, and the tasks of a store in memory.

    Without a `budget` nothing is refused. Each byte of a task that is in use is in memory twice: in a store in memory, which
    counts it itself, or else (`durable`) in encoded form on its way to or from the store. `free(size)` has the store delete
    ended tasks.
    """

    __slots__ = ("_budget", "_copies", "_free")

    def __init__(
        self, budget: MemoryBudget | None = None, *, durable: bool = False, free: Callable[[int], None] = lambda _: None
    ) -> None:
        self._budget = budget
        self._copies = 2 if durable else 1
        self._free = free

    def add_task(self, size: int) -> None:
        """Count so many bytes more of a task in use; fewer where `size` is negative."""
        self.add(size * self._copies)

    def add(self, size: int) -> None:
        """Count so many bytes more of anything else."""
        if self._budget is not None and size:
            self._budget.add("tasks", size)

    @property
    def full(self) -> bool:
        """Whether nothing more fits."""
        return self._budget is not None and not self._fits(0)

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
