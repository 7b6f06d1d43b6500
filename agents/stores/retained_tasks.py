"""Counts who reads the log of a task, so that no store deletes it meanwhile. Deletes nothing itself."""

from __future__ import annotations

from typing import final


@final
class RetainedTasks:
    """Changed on the event loop. `in` may be used from any thread."""

    def __init__(self) -> None:
        self._readers: dict[str, int] = {}

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._readers

    def __len__(self) -> int:
        return len(self._readers)

    def add(self, task_id: str) -> None:
        """One more reader."""
        self._readers[task_id] = self._readers.get(task_id, 0) + 1

    def remove(self, task_id: str) -> bool:
        """One reader less. True if that was the last one."""
        self._readers[task_id] -= 1
        if self._readers[task_id]:
            return False
        del self._readers[task_id]
        return True
