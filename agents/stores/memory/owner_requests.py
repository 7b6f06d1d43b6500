"""The requests to the owners of tasks in memory, in the order in which they came. Knows no task and no owner."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final, final

from ....daemon.memory import MemoryBudget
from ..interface import OwnerRequest

_REQUEST_BYTES: Final = 256
"""What a request takes beside its body."""


@final
class OwnerRequests:
    """One per memory store. Counts in `budget`."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._numbers = count()
        self._by_task: dict[str, dict[OwnerRequest, int]] = {}
        self._deliverable: set[str] = set()

    def add(self, request: OwnerRequest) -> None:
        """An equal one that is there already stays where it is."""
        requests = self._by_task.setdefault(request.task_id, {})
        if request not in requests:
            requests[request] = next(self._numbers)
            self._budget.add("tasks", _size(request))

    def deliver(self, task_id: str) -> None:
        """Let the next `take` see whether the task is owned. To be called when that may have begun, and after `add`."""
        if task_id in self._by_task:
            self._deliverable.add(task_id)

    def take(self, is_owned: Callable[[str], bool]) -> list[OwnerRequest]:
        """Remove and return, oldest first, the requests of tasks that were delivered and are owned."""
        taken = [item for task_id in self._deliverable if is_owned(task_id) for item in self._remove(task_id).items()]
        self._deliverable.clear()
        return [request for request, _ in sorted(taken, key=lambda item: item[1])]

    def delete(self, task_id: str) -> None:
        """Remove the requests of this task."""
        self._remove(task_id)
        self._deliverable.discard(task_id)

    def _remove(self, task_id: str) -> dict[OwnerRequest, int]:
        removed = self._by_task.pop(task_id, {})
        if removed:
            self._budget.add("tasks", -sum(map(_size, removed)))
        return removed


def _size(request: OwnerRequest) -> int:
    return _REQUEST_BYTES + len(request.body)
