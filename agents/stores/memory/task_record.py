"""One task in the memory store: encoded, so that the garbage collector does not traverse it. Decides nothing."""

from __future__ import annotations

from typing import Final

import msgspec

from ....a2a.types import TaskState

RECORD_BYTES: Final = 1024
"""About what a task takes beside its snapshot and its log: its ids and its places in the indexes."""


class TaskRecord(msgspec.Struct, gc=False):
    """One task. `sequence` numbers its last change among those of all tasks; `log` holds the events after the snapshot;
    `counted` is its size in the budget."""

    id: str
    scope: str
    context_id: str
    state: TaskState
    status_timestamp: str
    sequence: int
    generation: int
    owner: str | None
    snapshot: bytes
    log: list[bytes] | None = None
    log_bytes: int = 0
    counted: int = 0

    @property
    def snapshot_generation(self) -> int:
        return self.generation - len(self.log or ())

    @property
    def size(self) -> int:
        return len(self.snapshot) + self.log_bytes
