"""Deletes tasks that ended long ago, a few at a time.

Runs in the writer's thread. Touches no task that has not ended, and none whose log is being read in this process. No server
tells the time here: by a clock that has jumped, or that is ahead of another daemon's, it deletes nothing.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Final, final

from ....daemon.logs import log
from ..checks import RetainedTasks, Retention
from .owner_locks import OwnerLock, clock_of
from .reader import expired_tasks, last_end_ms, list_owners
from .writer import SqliteWriter

INTERVAL_SECONDS: Final = 10.0
"""Between two looks for expired tasks."""

BATCH: Final = 200
"""Tasks deleted in one transaction. Commits may run between two of them."""


MAX_JUMP_SECONDS: Final = 600.0
"""How far a clock may be ahead of what is known of the time."""

HOLD_SECONDS: Final = 3600.0
"""How long no task is deleted for its age after the clock looked wrong: time to set it right."""


@final
class ExpiredTasks:
    """Deletes what `limits` does not keep. `clock` is in seconds since 1970."""

    def __init__(
        self,
        writer: SqliteWriter,
        retained: RetainedTasks,
        limits: Retention,
        owner_lock: OwnerLock,
        clock: Callable[[], float],
    ) -> None:
        self._writer = writer
        self._retained = retained
        self._limits = limits
        self._time = CheckedTime(writer.connection, owner_lock, clock)

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
        now = self._time.read(self._limits)
        ended_before_ms = -1.0 if now is None else max(self._limits.ended_before(now) * 1000, -1.0)
        return expired_tasks(
            connection,
            self._retained,
            ended_before_ms=ended_before_ms,
            max_tasks=self._limits.max_tasks,
            limit=BATCH,
        )


@final
class CheckedTime:
    """The time by which ages are measured, where nothing speaks against it."""

    def __init__(self, connection: sqlite3.Connection, owner_lock: OwnerLock, clock: Callable[[], float]) -> None:
        self._connection = connection
        self._owner_lock = owner_lock
        self._clock = clock
        self._last: tuple[float, float] | None = None
        self._held_until = 0.0

    def read(self, limits: Retention) -> float | None:
        """In seconds since 1970. None for `HOLD_SECONDS` from the last moment at which the clock looked wrong."""
        now, steady = self._clock(), time.monotonic()
        ahead = self._seconds_ahead(now, steady, limits)
        self._last = now, steady
        if ahead > MAX_JUMP_SECONDS:
            if steady >= self._held_until:
                log.warning("store.clock_ahead", seconds=round(ahead), held=HOLD_SECONDS)
            self._held_until = steady + HOLD_SECONDS
        return None if steady < self._held_until else now

    def _seconds_ahead(self, now: float, steady: float, limits: Retention) -> float:
        """How far this clock is ahead: of its own time before, of the furthest of the other daemons' clocks, and at the start of
        a file whose last task to end would be deleted at once."""
        if self._last is None:
            last_end = last_end_ms(self._connection)
            ahead = 0.0
            if last_end is not None and last_end / 1000 < limits.ended_before(now):
                ahead = now - last_end / 1000
        else:
            before, steady_before = self._last
            ahead = (now - before) - (steady - steady_before)
        daemons, _ = list_owners(self._connection)
        clocks = [clock_of(self._owner_lock.store_path, owner) for owner in daemons - {self._owner_lock.owner_id}]
        known = [clock for clock in clocks if clock is not None]
        return max(ahead, now - max(known)) if known else ahead
