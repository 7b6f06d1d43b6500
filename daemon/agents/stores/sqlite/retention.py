"""Lets go of tasks that ended long ago, a few at a time, in the writer's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Final, final

from .reader import expired
from .writer import SqliteWriter

EVERY_SECONDS: Final = 10.0

STEP: Final = 200
"""Tasks. Commits may come in between two steps."""


@final
class Retention:
    """Keeps so many tasks that have ended, for so many seconds; and, until it comes round again, some more.

    `clock` is in seconds since 1970.
    """

    def __init__(self, writer: SqliteWriter, *, keep: int, seconds: float, clock: Callable[[], float]) -> None:
        self._writer = writer
        self._keep = keep
        self._seconds = seconds
        self._clock = clock

    def pause(self) -> float:
        """Do one step; in how many seconds the next one is due. What can't be done now can be done later."""
        try:
            if not self._due(self._writer.connection):
                return EVERY_SECONDS
            with self._writer.transaction():
                return 0.0 if self.step(self._writer.connection) else EVERY_SECONDS
        except sqlite3.Error:
            return EVERY_SECONDS

    def step(self, connection: sqlite3.Connection) -> bool:
        """Do some of it, inside a transaction: whether there may be more to do."""
        keys = self._due(connection)
        connection.executemany("DELETE FROM tasks WHERE key = ?", keys)
        return len(keys) == STEP

    def _due(self, connection: sqlite3.Connection) -> list[tuple[int]]:
        before = int((self._clock() - self._seconds) * 1000)
        return expired(connection, before=before, keep=self._keep, most=STEP)
