"""Deletes tasks that ended long ago, a few at a time.

Runs in the writer's thread. Touches no task that has not ended, and none whose log is being read in this process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final, final

from ..checks import Retention
from ..retained_tasks import RetainedTasks
from .reader import expired_tasks
from .writer import SqliteWriter

INTERVAL_SECONDS: Final = 10.0
"""Between two looks for expired tasks."""

BATCH: Final = 200
"""Tasks deleted in one transaction. Commits may run between two of them."""


@final
class ExpiredTasks:
    """Deletes what `limits` does not keep. `clock` is in seconds since 1970."""

    def __init__(
        self,
        writer: SqliteWriter,
        retained: RetainedTasks,
        limits: Retention,
        clock: Callable[[], float],
    ) -> None:
        self._writer = writer
        self._retained = retained
        self._limits = limits
        self._clock = clock

    def run(self) -> float:
        """Delete one batch. Returns the seconds until the next run. A run that fails is made up for by the next one."""
        try:
            if not self._expired(self._writer.connection):
                return INTERVAL_SECONDS
            with self._writer.transaction():
                return 0.0 if self.delete_batch(self._writer.connection) else INTERVAL_SECONDS
        except (sqlite3.Error, UnicodeDecodeError):  # the second for a damaged text
            return INTERVAL_SECONDS

    def delete_batch(self, connection: sqlite3.Connection) -> bool:
        """Delete one batch inside a transaction. Returns whether there may be more to delete."""
        keys = self._expired(connection)
        connection.executemany("DELETE FROM tasks WHERE key = ?", keys)
        return len(keys) == BATCH

    def _expired(self, connection: sqlite3.Connection) -> list[tuple[int]]:
        ended_before_ms = self._limits.ended_before(self._clock()) * 1000
        return expired_tasks(
            connection,
            self._retained,
            ended_before_ms=ended_before_ms,
            max_tasks=self._limits.max_tasks,
            limit=BATCH,
        )
