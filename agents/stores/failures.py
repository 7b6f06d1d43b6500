"""Names damaged data of stores, and logs their failures. A failure that lasts is logged once: every commit and every poll
would repeat it."""

from __future__ import annotations

from typing import final

from ...daemon.logs import log
from .interface import DamagedTaskError, StoreError


@final
class DamagedRecordError(Exception):
    """A part of a task is missing, or is not as it was stored. `what` says which. Stores raise a `DamagedTaskError` for it."""

    def __init__(self, what: str, task_id: str) -> None:
        super().__init__(f"{what} of task {task_id} is not as it was written")
        self.task_id = task_id


def damaged_task_error(label: str, exc: DamagedRecordError) -> DamagedTaskError:
    """Return the error of a damaged task in the store with this label."""
    return DamagedTaskError(f"{label} is damaged: {exc}")


def unknown_version(label: str, found: object, known: object) -> StoreError:
    """Return the error of a store whose tables are of a version that this one does not know. Nothing is converted."""
    return StoreError(f"{label} is a store of version {found}, and this version of discreet uses version {known}")


def log_failure(exc: BaseException) -> None:
    """Log `store.failed`, unless the store has raised this before."""
    if not (isinstance(exc, StoreError) and exc.repeated):
        log.error("store.failed", exc=exc)
